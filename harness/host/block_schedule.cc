// Which thread of the block runs next.
#include <bit>

#include "harness/host/block_runner.h"

namespace attn_diag::host {
std::uint64_t BlockRunner::random() {
  // xorshift64*
  x_random ^= x_random >> 12;
  x_random ^= x_random << 25;
  x_random ^= x_random >> 27;
  return x_random * 0x2545F4914F6CDD1Du;
}

Fiber& BlockRunner::first_thread() {
  switch (x_kind) {
    case ScheduleKind::kForward:
      for (unsigned w = 0;; ++w)
        if (x_runnable[w] != 0) return x_fibers[w * 64 + std::countr_zero(x_runnable[w])];
    case ScheduleKind::kReverse:
      for (unsigned w = x_words - 1;; --w)
        if (x_runnable[w] != 0) return x_fibers[w * 64 + 63 - std::countl_zero(x_runnable[w])];
    case ScheduleKind::kLockstep:
      x_step_warp = 0;
      x_step_lanes = 0;
      return *next_lockstep();
    case ScheduleKind::kSeeded:
      break;
  }
  return *next_thread();
}

Fiber& BlockRunner::first_lane(unsigned warp, std::uint32_t lanes) {
  unsigned lane = 0;
  switch (x_kind) {
    case ScheduleKind::kForward:
      lane = static_cast<unsigned>(std::countr_zero(lanes));
      break;
    case ScheduleKind::kReverse:
      lane = 31 - static_cast<unsigned>(std::countl_zero(lanes));
      break;
    case ScheduleKind::kSeeded:
    case ScheduleKind::kLockstep:
      return *next_thread();
  }
  return x_fibers[warp * kWarpSize + lane];
}

Fiber* BlockRunner::next_thread() {
  const unsigned at = x_current->index.linear;
  const unsigned word = at / 64;
  switch (x_kind) {
    case ScheduleKind::kForward: {
      const std::uint64_t above = x_runnable[word] & (~0ull << (at % 64) << 1);
      if (above != 0) return &x_fibers[word * 64 + std::countr_zero(above)];
      for (unsigned w = word + 1; w < x_words; ++w)
        if (x_runnable[w] != 0) return &x_fibers[w * 64 + std::countr_zero(x_runnable[w])];
      for (unsigned w = 0; w <= word; ++w)
        if (x_runnable[w] != 0) return &x_fibers[w * 64 + std::countr_zero(x_runnable[w])];
      return nullptr;
    }
    case ScheduleKind::kReverse: {
      const std::uint64_t below = x_runnable[word] & ((1ull << (at % 64)) - 1);
      if (below != 0) return &x_fibers[word * 64 + 63 - std::countl_zero(below)];
      for (unsigned w = word; w-- > 0;)
        if (x_runnable[w] != 0) return &x_fibers[w * 64 + 63 - std::countl_zero(x_runnable[w])];
      for (unsigned w = x_words; w-- > word;)
        if (x_runnable[w] != 0) return &x_fibers[w * 64 + 63 - std::countl_zero(x_runnable[w])];
      return nullptr;
    }
    case ScheduleKind::kSeeded: {
      unsigned count = 0;
      for (unsigned w = 0; w < x_words; ++w)
        count += static_cast<unsigned>(std::popcount(x_runnable[w]));
      if (count == 0) return nullptr;
      // The high half of a product maps 32 random bits onto [0, count).
      auto chosen = static_cast<unsigned>(((random() >> 32) * count) >> 32);
      for (unsigned w = 0;; ++w) {
        const auto here = static_cast<unsigned>(std::popcount(x_runnable[w]));
        if (chosen >= here) {
          chosen -= here;
          continue;
        }
        std::uint64_t bits = x_runnable[w];
        for (; chosen > 0; --chosen) bits &= bits - 1;
        return &x_fibers[w * 64 + std::countr_zero(bits)];
      }
    }
    case ScheduleKind::kLockstep:
      return next_lockstep();
  }
  return nullptr;
}

// A step takes the lanes of one warp that stand at the same place on to their next load, store or
// synchronisation point, one after another. Of lanes that have diverged, those in the deepest call
// go first, and of these those at the lowest address, so that lanes ahead wait for the others where
// the paths meet again (Collange, "Stack-less SIMT reconvergence at low cost", 2011).
bool BlockRunner::choose_step(unsigned warp) {
  const std::uint32_t candidates = runnable_lanes(warp);
  if (candidates == 0) return false;
  const Position* const position = &x_position[warp * kWarpSize];
  const Position* best = nullptr;
  for (std::uint32_t lanes = candidates; lanes != 0; lanes &= lanes - 1) {
    const Position& at = position[std::countr_zero(lanes)];
    if (best == nullptr || at.depth > best->depth || (at.depth == best->depth && at.pc < best->pc))
      best = &at;
  }
  x_step_warp = warp;
  x_step_lanes = 0;
  for (std::uint32_t lanes = candidates; lanes != 0; lanes &= lanes - 1) {
    const Position& at = position[std::countr_zero(lanes)];
    if (at.depth == best->depth && at.pc == best->pc) x_step_lanes |= lanes & -lanes;
  }
  x_step_group = x_step_lanes;
  return true;
}

// Warps run one after another between barriers.
Fiber* BlockRunner::next_lockstep() {
  x_step_lanes &= runnable_lanes(x_step_warp);
  if (x_step_lanes == 0 && !choose_step(x_step_warp)) {
    const unsigned warps = (x_threads + kWarpSize - 1) / kWarpSize;
    unsigned tried = 1;
    while (tried < warps && !choose_step((x_step_warp + tried) % warps)) ++tried;
    if (tried >= warps) return nullptr;
  }
  const auto lane = static_cast<unsigned>(std::countr_zero(x_step_lanes));
  x_step_lanes &= x_step_lanes - 1;
  return &x_fibers[x_step_warp * kWarpSize + lane];
}

}  // namespace attn_diag::host
