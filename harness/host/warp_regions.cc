#include "harness/host/warp_regions.h"

#include <bit>

namespace attn_diag::host {

void WarpRegions::clear() {
  x_instances.clear();
  x_free.clear();
  for (auto& begun : x_begun) begun.clear();
  x_last_step = 0;
}

WarpRegions::Lanes WarpRegions::enter(unsigned lane, std::uint32_t region, std::uintptr_t frame,
                                      std::uint64_t step, Lanes together) {
  const Lanes released = leave_frames_below(lane, frame);
  if (step != x_last_step) {
    x_last_step = step;
    if (x_free.empty()) {
      x_last = static_cast<std::uint32_t>(x_instances.size());
      x_instances.emplace_back();
    } else {
      x_last = x_free.back();
      x_free.pop_back();
    }
    x_instances[x_last] = {region, together, 0};
  }
  x_begun[lane].push_back({x_last, frame});
  return released;
}

WarpRegions::Joined WarpRegions::join(unsigned lane, std::uint32_t region, std::uintptr_t frame) {
  Lanes released = leave_frames_below(lane, frame);
  auto& begun = x_begun[lane];
  std::size_t at = begun.size();
  while (at > 0 && x_instances[begun[at - 1].instance].region != region) --at;
  if (at == 0) return {false, released};
  released |= leave_above(lane, at);
  const std::uint32_t instance = begun.back().instance;
  x_instances[instance].waiting |= Lanes{1} << lane;
  released |= release_if_complete(instance);
  return {(released >> lane & 1u) == 0, released};
}

WarpRegions::Lanes WarpRegions::release_innermost() {
  const std::vector<Begun>* deepest = nullptr;
  for (const auto& begun : x_begun)
    if (!begun.empty() && x_instances[begun.back().instance].waiting != 0 &&
        (deepest == nullptr || begun.size() > deepest->size()))
      deepest = &begun;
  return deepest == nullptr ? 0 : release(deepest->back().instance);
}

WarpRegions::Lanes WarpRegions::leave_above(unsigned lane, std::size_t kept) {
  Lanes released = 0;
  auto& begun = x_begun[lane];
  while (begun.size() > kept) {
    const std::uint32_t instance = begun.back().instance;
    begun.pop_back();
    Lanes& inside = x_instances[instance].inside;
    inside &= ~(Lanes{1} << lane);
    if (inside == 0)
      x_free.push_back(instance);
    else
      released |= release_if_complete(instance);
  }
  return released;
}

// Stacks grow down: calls below this one have ended, by an exception.
WarpRegions::Lanes WarpRegions::leave_frames_below(unsigned lane, std::uintptr_t frame) {
  const auto& begun = x_begun[lane];
  std::size_t kept = begun.size();
  while (kept > 0 && begun[kept - 1].frame < frame) --kept;
  return kept == begun.size() ? 0 : leave_above(lane, kept);
}

WarpRegions::Lanes WarpRegions::release_if_complete(std::uint32_t instance) {
  const Instance& region = x_instances[instance];
  return region.waiting == region.inside ? release(instance) : 0;
}

WarpRegions::Lanes WarpRegions::release(std::uint32_t instance) {
  Instance& region = x_instances[instance];
  const Lanes lanes = region.waiting;
  for (Lanes rest = lanes; rest != 0; rest &= rest - 1) x_begun[std::countr_zero(rest)].pop_back();
  region.inside &= ~lanes;
  region.waiting = 0;
  if (region.inside == 0) x_free.push_back(instance);
  return lanes;
}

}  // namespace attn_diag::host
