// Barriers and warp collectives: who waits, and what each thread gets when all have arrived.
#include <bit>
#include <cstring>

#include "attn_diag_host/synchronize.h"
#include "harness/host/block_runner_switch.h"

namespace attn_diag::host {
namespace {

constexpr std::uint64_t kPoison = ~0ull;

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The lane a shuffle reads, as PTX's shfl defines it: segments of `width` lanes; reads that would
// leave the segment (upwards, for xor) give the lane's own value.
unsigned source_lane(WarpOp op, unsigned lane, unsigned argument, unsigned width) {
  const unsigned segment = lane & ~(width - 1);
  switch (op) {
    case WarpOp::kShuffle:
      return segment | (argument & (width - 1));
    case WarpOp::kShuffleUp:
      return argument <= lane - segment ? lane - argument : lane;
    case WarpOp::kShuffleDown:
      return argument < width - (lane - segment) ? lane + argument : lane;
    default: {
      const unsigned other = lane ^ (argument & 31u);
      return other < segment + width ? other : lane;
    }
  }
}

template <class T, class Combine>
std::uint64_t reduce(const Warp& warp, std::uint32_t lanes, Combine combine) {
  T sum = static_cast<T>(warp.value[std::countr_zero(lanes)]);
  for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1)
    sum = combine(sum, static_cast<T>(warp.value[std::countr_zero(lanes)]));
  return static_cast<std::uint32_t>(sum);
}

// The one result that all lanes get.
std::uint64_t common_result(const Warp& warp, WarpOp op, std::uint32_t lanes) {
  using U = std::uint32_t;
  using S = std::int32_t;
  std::uint32_t ballot = 0;
  bool all_equal = true;
  const std::uint64_t one = warp.value[std::countr_zero(lanes)];
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    ballot |= (warp.value[lane] != 0 ? 1u : 0u) << lane;
    all_equal = all_equal && warp.value[lane] == one;
  }
  switch (op) {
    case WarpOp::kBallot:
      return ballot;
    case WarpOp::kAny:
      return ballot != 0;
    case WarpOp::kAll:
      return ballot == lanes;
    case WarpOp::kMatchAll:
      return all_equal ? lanes : 0;
    case WarpOp::kReduceAddU:
      return reduce<U>(warp, lanes, [](U a, U b) { return a + b; });
    case WarpOp::kReduceMinU:
      return reduce<U>(warp, lanes, [](U a, U b) { return a < b ? a : b; });
    case WarpOp::kReduceMaxU:
      return reduce<U>(warp, lanes, [](U a, U b) { return a > b ? a : b; });
    case WarpOp::kReduceMinS:
      return reduce<S>(warp, lanes, [](S a, S b) { return a < b ? a : b; });
    case WarpOp::kReduceMaxS:
      return reduce<S>(warp, lanes, [](S a, S b) { return a > b ? a : b; });
    case WarpOp::kReduceAnd:
      return reduce<U>(warp, lanes, [](U a, U b) { return a & b; });
    case WarpOp::kReduceOr:
      return reduce<U>(warp, lanes, [](U a, U b) { return a | b; });
    case WarpOp::kReduceXor:
      return reduce<U>(warp, lanes, [](U a, U b) { return a ^ b; });
    default:
      return 0;
  }
}

std::uint32_t equal_lanes(const Warp& warp, std::uint64_t value, std::uint32_t lanes) {
  std::uint32_t equal = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto other = static_cast<unsigned>(std::countr_zero(lanes));
    equal |= (warp.value[other] == value ? 1u : 0u) << other;
  }
  return equal;
}

bool is_shuffle(WarpOp op) {
  return op == WarpOp::kShuffle || op == WarpOp::kShuffleUp || op == WarpOp::kShuffleDown ||
         op == WarpOp::kShuffleXor;
}

}  // namespace

void block_barrier(const char* file, int line) {
  BlockRunner::current()->barrier(file, line, address(__builtin_return_address(0)),
                                  address(__builtin_frame_address(0)));
}

BarrierVotes block_barrier_vote(int predicate, const char* file, int line) {
  return BlockRunner::current()->barrier_vote(predicate, file, line,
                                              address(__builtin_return_address(0)),
                                              address(__builtin_frame_address(0)));
}

std::uint64_t warp_shuffle(WarpOp op, unsigned mask, std::uint64_t value, unsigned lane_argument,
                           int width, const char* file, int line) {
  return BlockRunner::current()->collective(
      op, mask, value, lane_argument, static_cast<unsigned>(width), file, line,
      address(__builtin_return_address(0)), address(__builtin_frame_address(0)));
}

std::uint64_t warp_collective(WarpOp op, unsigned mask, std::uint64_t value, const char* file,
                              int line) {
  return BlockRunner::current()->collective(op, mask, value, 0, kWarpSize, file, line,
                                            address(__builtin_return_address(0)),
                                            address(__builtin_frame_address(0)));
}

unsigned active_mask() {
  return BlockRunner::current()->active_mask(address(__builtin_return_address(0)),
                                             address(__builtin_frame_address(0)));
}

inline void BlockRunner::arrive(Wait wait, const char* file, int line, std::uintptr_t pc,
                                std::uintptr_t frame) {
  Fiber& fiber = *x_current;
  fiber.file = file;
  fiber.line = line;
  fiber.wait = wait;
  if (is_lockstep()) {
    fiber.pc = pc;
    fiber.depth = static_cast<std::uint32_t>(x_stack[fiber.thread].top - frame);
  }
  if (++x_steps > x_step_limit) [[unlikely]]
    report_step_limit();
}

__attribute__((always_inline)) inline void BlockRunner::barrier(const char* file, int line,
                                                                std::uintptr_t pc,
                                                                std::uintptr_t frame) {
  arrive(Wait::kBarrier, file, line, pc, frame);
  if (x_arrived == 0) {
    x_barrier_file = file;
    x_barrier_line = line;
  } else if (line != x_barrier_line || file != x_barrier_file) [[unlikely]] {
    x_barrier_differs =
        x_barrier_differs || line != x_barrier_line || std::strcmp(file, x_barrier_file) != 0;
  }
  if (++x_arrived == x_live) [[unlikely]] {
    pass_barrier();
  } else {
    clear_runnable(x_current->thread);
    switch_to_next_or_report();
  }
}

BarrierVotes BlockRunner::barrier_vote(int predicate, const char* file, int line, std::uintptr_t pc,
                                       std::uintptr_t frame) {
  x_ayes += predicate != 0;
  barrier(file, line, pc, frame);
  return x_votes;
}

// Out of line: the last thread to arrive.
__attribute__((noinline)) void BlockRunner::pass_barrier() {
  release_barrier();
  switch_to(first_thread());
}

void BlockRunner::release_barrier() {
  if (x_barrier_differs) report_barrier_divergence();
  if (x_live != x_threads) note_exited_threads();
  x_votes = {x_ayes, static_cast<int>(x_arrived)};
  x_ayes = 0;
  x_arrived = 0;
  for (unsigned w = 0; w < x_words; ++w) x_runnable[w] = x_alive[w];
}

Warp::Group& BlockRunner::find_group(Warp& warp, WarpOp op, unsigned mask, unsigned width) {
  // Groups with overlapping masks may be pending at once: a lane can go through one, then the other.
  for (std::uint32_t pending = warp.pending; pending != 0; pending &= pending - 1) {
    Warp::Group& group = warp.groups[std::countr_zero(pending)];
    if (group.mask != mask) continue;
    if (group.op != op || group.width != width)
      report_warp_misuse(
          "meets lanes of its warp in another operation, or in a shuffle of another width",
          "All lanes of a mask must make the same call");
    return group;
  }
  const auto usual = static_cast<unsigned>(std::countr_zero(mask));
  const auto slot = (warp.pending >> usual & 1u) == 0
                        ? usual
                        : static_cast<unsigned>(std::countr_one(warp.pending));
  warp.pending |= 1u << slot;
  warp.groups[slot] = {mask, 0, op, static_cast<std::uint8_t>(width)};
  return warp.groups[slot];
}

__attribute__((always_inline)) inline std::uint64_t BlockRunner::collective(
    WarpOp op, unsigned mask, std::uint64_t value, unsigned argument, unsigned width,
    const char* file, int line, std::uintptr_t pc, std::uintptr_t frame) {
  arrive(Wait::kWarp, file, line, pc, frame);
  Fiber& fiber = *x_current;
  fiber.op = op;
  fiber.mask = mask;
  const unsigned lane = fiber.thread % kWarpSize;
  const unsigned warp_number = fiber.thread / kWarpSize;
  if ((mask >> lane & 1u) == 0 || !std::has_single_bit(width) || width > kWarpSize) [[unlikely]]
    report_warp_arguments(width);
  Warp& warp = x_warps[warp_number];
  warp.value[lane] = value;
  warp.source[lane] = static_cast<std::uint8_t>(source_lane(op, lane, argument, width));

  const auto usual = static_cast<unsigned>(std::countr_zero(mask));
  Warp::Group* group = &warp.groups[usual];
  if ((warp.pending >> usual & 1u) == 0 || group->mask != mask || group->op != op ||
      group->width != width)
    group = &find_group(warp, op, mask, width);
  group->arrived |= 1u << lane;
  if (group->arrived == (mask & warp.live)) {
    pass_group(warp, warp_number, *group);
  } else {
    clear_runnable(fiber.thread);
    switch_to_next_or_report();
  }
  return warp.result[lane];
}

// Out of line: the last lane to arrive.
__attribute__((noinline)) void BlockRunner::pass_group(Warp& warp, unsigned warp_number,
                                                       Warp::Group& group) {
  const std::uint32_t lanes = group.arrived;
  complete_group(warp, warp_number, group);
  switch_to(first_lane(warp_number, lanes));
}

void BlockRunner::complete_group(Warp& warp, unsigned warp_number, Warp::Group& group) {
  const std::uint32_t lanes = group.arrived;
  warp.pending &= ~(1u << (&group - warp.groups));
  x_runnable[warp_number / 2] |= static_cast<std::uint64_t>(lanes) << (warp_number % 2 * 32);
  if (group.op == WarpOp::kSync) return;
  if (is_shuffle(group.op)) {
    if (lanes == ~0u) {
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        warp.result[lane] = warp.value[warp.source[lane]];
      return;
    }
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      const unsigned source = warp.source[lane];
      warp.result[lane] = (lanes >> source & 1u) != 0 ? warp.value[source] : kPoison;
    }
    return;
  }
  const std::uint64_t common = common_result(warp, group.op, lanes);
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const bool match = group.op == WarpOp::kMatchAny;
    warp.result[lane] = match ? equal_lanes(warp, warp.value[lane], lanes) : common;
  }
}

unsigned BlockRunner::active_mask(std::uintptr_t pc, std::uintptr_t frame) {
  if (!is_lockstep()) return 1u << (x_current->thread % kWarpSize);
  // Wait for the lanes that are on their way here; those that then go on together are the answer.
  x_current->pc = pc;
  x_current->depth = static_cast<std::uint32_t>(x_stack[x_current->thread].top - frame);
  switch_to_next_or_report();
  return x_step_group;
}

}  // namespace attn_diag::host
