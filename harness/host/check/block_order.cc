// What orders threads other than barriers of the whole block: flags and counters, fences, barrier objects.
#include <algorithm>

#include "harness/host/check/block_checker.h"

namespace attn_diag::host {
namespace {

// Addresses at which what was not fenced is kept too, to tell a missing fence from a race.
constexpr std::size_t kMostUnfenced = 1 << 14;

}  // namespace

// What the thread itself has done and knows of its own block.
BlockView BlockChecker::own_view(unsigned thread) const {
  BlockView view;
  view.segment = x_segment;
  const unsigned first = thread / 32 * 32;
  const WarpClock& warp = x_warps[thread / 32];
  for (unsigned t = first; t < std::min(first + 32, x_threads); ++t) {
    const std::uint32_t known = warp.met.before(thread, t);
    if (known > 0) view.raise(t, known);
  }
  view.raise(thread, tick_of(x_thread[thread].epoch) + 1);
  if (const SharedClock& clock = x_thread[thread].clock)
    if (const BlockView* known = clock->find(x_block)) view.join(*known);
  return view;
}

// What the thread may publish about its own block: what threads had done when they fenced.
BlockView BlockChecker::fenced_view(unsigned thread) const {
  BlockView view;
  const unsigned first = thread / 32 * 32;
  const WarpClock& warp = x_warps[thread / 32];
  for (unsigned t = first; t < std::min(first + 32, x_threads); ++t) {
    const BlockView& fenced = x_thread[t].fenced;
    if (fenced.segment != x_segment) continue;
    // The fences of lanes that the thread has met since count too.
    if (t == thread || warp.met.before(thread, t) >= fenced.ticks[t]) view.join(fenced);
  }
  if (view.segment == x_segment) return view;
  for (const Thread& t : x_thread)
    view.segment = std::max(view.segment, t.fenced.segment < x_segment ? t.fenced.segment : 0);
  if (view.segment == 0) return view;
  for (const Thread& t : x_thread)
    if (t.fenced.segment == view.segment) view.join(t.fenced);
  return view;
}

// Accesses from now on are not part of what was handed over.
void BlockChecker::advance(unsigned thread) {
  WarpClock& warp = x_warps[thread / 32];
  if (warp.tick + 2 >= 1u << kTickBits) return;
  ++warp.tick;
  const unsigned first = thread / 32 * 32;
  for (unsigned t = first; t < std::min(first + 32, x_threads); ++t)
    x_thread[t].epoch = make_epoch(x_segment, t, warp.tick);
}

void BlockChecker::fence(unsigned thread, bool device) {
  x_checker->settle();
  Thread& mine = x_thread[thread];
  if (device) {
    ++x_checker->summary().fences;
    mine.fenced = own_view(thread);
  }
  mine.fenced_tick = tick_of(mine.epoch) + 1;
  x_warps[thread / 32].fenced = true;
  advance(thread);
}

void BlockChecker::learn(unsigned thread, const SharedClock& clock) {
  if (clock == nullptr) return;
  SharedClock& mine = x_thread[thread].clock;
  mine = joined(mine, clock);
  x_any_clock = true;
}

void BlockChecker::hand_over(unsigned thread, std::uintptr_t at) {
  Handovers& all =
      x_static.contains(at) || x_dynamic.contains(at) ? x_handovers : x_checker->handovers();
  const auto known = all.find(at);
  const bool crowded = all.size() >= kMostUnfenced;
  const BlockView fenced = fenced_view(thread);
  if (known == all.end() && crowded && fenced.segment == 0) return;
  Handover& place = known == all.end() ? all[at] : known->second;
  const auto add = [&](SharedClock& to, const BlockView& view) {
    auto clock = to == nullptr ? std::make_shared<Clock>() : std::make_shared<Clock>(*to);
    if (x_thread[thread].clock != nullptr) clock->join(*x_thread[thread].clock);
    if (view.segment != 0) clock->view(x_block).join(view);
    to = clock;
  };
  if (fenced.segment != 0) add(place.done, fenced);
  if (!crowded) add(place.unfenced, own_view(thread));
  advance(thread);
}

void BlockChecker::take_over(unsigned thread, std::uintptr_t at) {
  const bool shared = x_static.contains(at) || x_dynamic.contains(at);
  Handovers& all = shared ? x_handovers : x_checker->handovers();
  const auto known = all.find(at);
  if (known == all.end()) return;
  learn(thread, known->second.done);
  // Within a block no fence is asked for: the hardware keeps shared memory in order.
  if (known->second.unfenced == nullptr) return;
  if (const BlockView* own = known->second.unfenced->find(x_block)) {
    auto clock = std::make_shared<Clock>();
    clock->view(x_block) = *own;
    learn(thread, clock);
  }
  x_any_clock = true;
  x_thread[thread].unfenced = joined(x_thread[thread].unfenced, known->second.unfenced);
}

void BlockChecker::arrive(unsigned thread, std::uintptr_t object) {
  x_checker->settle();
  Handover& place = x_objects[object];
  if (x_thread[thread].clock != nullptr) place.arrived.join(*x_thread[thread].clock);
  place.arrived.view(x_block).join(own_view(thread));
  advance(thread);
}

void BlockChecker::complete(std::uintptr_t object) {
  Handover& place = x_objects[object];
  place.done = std::make_shared<const Clock>(place.arrived);
}

void BlockChecker::leave(unsigned thread, std::uintptr_t object) {
  x_checker->settle();
  learn(thread, x_objects[object].done);
}

// All threads of the block have met: what one has learned of other blocks, all know.
void BlockChecker::share_clocks() {
  if (!x_any_clock) return;
  SharedClock all = x_block_clock, unfenced;
  for (const Thread& t : x_thread) {
    all = joined(all, t.clock);
    unfenced = joined(unfenced, t.unfenced);
  }
  x_block_clock = all;
  for (Thread& t : x_thread) {
    t.clock = all;
    t.unfenced = unfenced;
  }
}

void BlockChecker::share_clocks_of_warp(unsigned number, std::uint32_t lanes) {
  if (!x_any_clock) return;
  SharedClock all, unfenced;
  const auto each = [&](const auto& act) {
    for (unsigned lane = 0; lane < 32 && number * 32 + lane < x_threads; ++lane)
      if ((lanes >> lane & 1u) != 0) act(x_thread[number * 32 + lane]);
  };
  each([&](const Thread& t) {
    all = joined(all, t.clock);
    unfenced = joined(unfenced, t.unfenced);
  });
  each([&](Thread& t) {
    t.clock = all;
    t.unfenced = unfenced;
  });
}

}  // namespace attn_diag::host
