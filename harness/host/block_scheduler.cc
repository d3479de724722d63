// Which thread of the block runs next.
#include "harness/host/block_scheduler.h"

#include <bit>

#include "harness/host/random.h"

namespace attn_diag::host {
namespace {

constexpr double kTickSeconds = 5e-3;

}  // namespace

BlockScheduler::BlockScheduler() : x_watchdog(&tick, this) {}

void BlockScheduler::begin_launch(const LaunchPlan& plan, void (*fiber_main)()) {
  BlockReporter::begin_launch(plan, fiber_main);
  x_seen_progress = 0;
  x_kind = plan.schedule.kind;
  x_warp_order = plan.schedule.warps;
  x_watchdog.set_interval(kTickSeconds);
}

void BlockScheduler::begin_block(std::uint64_t number) {
  BlockReporter::begin_block();
  for (unsigned w = 0; w < x_words; ++w) x_polling[w] = 0;
  if (is_lockstep())
    for (unsigned w = 0; w * kWarpSize < x_threads; ++w) x_regions[w].clear();
  for (unsigned t = 0; t < x_threads; ++t) x_position[t] = Position{};
  x_idle_rounds = 0;
  x_round_steps = 0;
  x_silent = false;
  x_interrupted = false;
  x_idle_atomics = 0;
  x_turn_begin = 0;
  ++x_blocks_run;
  x_random = mix(mix(x_plan->schedule.seed) + number);
}

Fiber& BlockScheduler::start() {
  if (x_plan->turns->polling()) look_soon();
  x_current = &x_fibers[0];
  return first_thread();
}

std::uint64_t BlockScheduler::random() {
  // xorshift64*
  x_random ^= x_random >> 12;
  x_random ^= x_random << 25;
  x_random ^= x_random >> 27;
  return x_random * 0x2545F4914F6CDD1Du;
}

Fiber& BlockScheduler::first_thread() {
  switch (x_kind) {
    case ScheduleKind::kForward:
      for (unsigned w = 0;; ++w)
        if (x_runnable[w] != 0) return x_fibers[w * 64 + std::countr_zero(x_runnable[w])];
    case ScheduleKind::kReverse:
      for (unsigned w = x_words - 1;; --w)
        if (x_runnable[w] != 0) return x_fibers[w * 64 + 63 - std::countl_zero(x_runnable[w])];
    case ScheduleKind::kLockstep:
      x_step_warp = x_warp_order == WarpOrder::kReverse ? (x_threads - 1) / kWarpSize : 0;
      x_step_lanes = 0;
      return *next_lockstep();
    case ScheduleKind::kSeeded:
      break;
  }
  return *next_thread();
}

Fiber& BlockScheduler::first_lane(unsigned warp, std::uint32_t lanes) {
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

Fiber* BlockScheduler::next_thread() {
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
// synchronisation point, one after another. Lanes that have diverged wait for each other where their paths
// meet again, at the end of the region that the branch is in. Among the others, the lanes in the deepest call
// go first, then those at the lowest address (Collange, "Stack-less SIMT reconvergence at low cost", 2011).
bool BlockScheduler::choose_step(unsigned warp) {
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
  ++x_step_number;
  return true;
}

// In turns, the next warp has the next step; else a warp has all steps until it waits.
Fiber* BlockScheduler::next_lockstep() {
  x_step_lanes &= runnable_lanes(x_step_warp);
  if (x_step_lanes == 0) {
    const unsigned warps = (x_threads + kWarpSize - 1) / kWarpSize;
    const unsigned first = x_warp_order == WarpOrder::kTurns ? 1 : 0, from = x_step_warp;
    const auto try_step = [&](unsigned i) {
      return choose_step((x_warp_order == WarpOrder::kReverse ? from + warps - i : from + i) %
                         warps);
    };
    unsigned i = first;
    while (i < first + warps && !try_step(i)) ++i;
    if (i >= first + warps) return nullptr;
  }
  const auto lane = static_cast<unsigned>(std::countr_zero(x_step_lanes));
  x_step_lanes &= x_step_lanes - 1;
  return &x_fibers[x_step_warp * kWarpSize + lane];
}

void BlockScheduler::enter_region(std::uint32_t region, std::uintptr_t pc, std::uintptr_t frame) {
  const unsigned thread = x_current->index.linear, warp = thread / kWarpSize;
  note_position(*x_current, pc, frame);
  switch_to(*next_lockstep());
  let_lanes_go_on(
      warp, x_regions[warp].enter(thread % kWarpSize, region, frame, x_step_number, x_step_group));
}

void BlockScheduler::join_region(std::uint32_t region, std::uintptr_t pc, std::uintptr_t frame) {
  const unsigned thread = x_current->index.linear, warp = thread / kWarpSize;
  note_position(*x_current, pc, frame);
  const auto [waits, released] = x_regions[warp].join(thread % kWarpSize, region, frame);
  let_lanes_go_on(warp, released);
  // Wherever the compiler has put their copies of this call, they go on together.
  const Position& mine = x_position[thread];
  for (std::uint32_t lanes = released; lanes != 0; lanes &= lanes - 1) {
    Position& lane = x_position[warp * kWarpSize + static_cast<unsigned>(std::countr_zero(lanes))];
    lane.depth = mine.depth;
    lane.pc = mine.pc;
  }
  if (!waits) return switch_to(*next_lockstep());
  clear_runnable(thread);
  switch_to_next_or_report();
}

// Where nothing else can run, say because a lane polls for what another does behind the join. As on
// hardware, waiting there must not keep a lane from going on for ever.
bool BlockScheduler::release_joins() {
  if (!is_lockstep()) return false;
  bool any = false;
  for (unsigned warp = 0; warp * kWarpSize < x_threads; ++warp) {
    const std::uint32_t lanes = x_regions[warp].release_innermost();
    let_lanes_go_on(warp, lanes);
    any = any || lanes != 0;
  }
  return any;
}

std::uint32_t BlockScheduler::lanes_that_come(std::uintptr_t pc, std::uintptr_t frame) {
  note_position(*x_current, pc, frame);
  switch_to_next_or_report();
  return x_step_group;
}

void BlockScheduler::note_use(std::uintptr_t at, bool used_other, std::uintptr_t pc,
                              std::uintptr_t frame) {
  constexpr unsigned kOftenAgain = 64;
  const Fiber& fiber = *x_current;
  Position& position = x_position[fiber.index.linear];
  if (used_other) position.again = 0;
  const bool again = at == position.seen[0] || at == position.seen[1];
  if (!again) position.seen[1] = std::exchange(position.seen[0], at);
  position.again = again ? position.again + 1 : 0;
  if (is_lockstep()) note_position(fiber, pc, frame);
  if (position.again > kOftenAgain) {
    position.again = 0;
    stand_back(Wait::kLoop);
  } else if (is_lockstep()) {
    switch_to(*next_lockstep());
  }
}

}  // namespace attn_diag::host
