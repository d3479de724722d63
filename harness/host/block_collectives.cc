// Barriers and warp collectives: who waits, and what each thread gets when all have arrived.
#include <bit>
#include <cstring>

#include "attn_diag_host/synchronize.h"
#include "harness/host/block_runner_switch.h"

namespace attn_diag::host {
namespace {

constexpr std::uint64_t kPoison = ~0ull;

template <class T, class Combine>
std::uint64_t reduce(const Fiber* lane, std::uint32_t lanes, Combine combine) {
  T sum = static_cast<T>(lane[std::countr_zero(lanes)].value);
  for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1)
    sum = combine(sum, static_cast<T>(lane[std::countr_zero(lanes)].value));
  return static_cast<std::uint32_t>(sum);
}

// The one result that all lanes get.
std::uint64_t common_result(const Fiber* lane, WarpOp op, std::uint32_t lanes) {
  using U = std::uint32_t;
  using S = std::int32_t;
  std::uint32_t ballot = 0;
  bool all_equal = true;
  const std::uint64_t one = lane[std::countr_zero(lanes)].value;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto number = static_cast<unsigned>(std::countr_zero(rest));
    ballot |= (lane[number].value != 0 ? 1u : 0u) << number;
    all_equal = all_equal && lane[number].value == one;
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
      return reduce<U>(lane, lanes, [](U a, U b) { return a + b; });
    case WarpOp::kReduceMinU:
      return reduce<U>(lane, lanes, [](U a, U b) { return a < b ? a : b; });
    case WarpOp::kReduceMaxU:
      return reduce<U>(lane, lanes, [](U a, U b) { return a > b ? a : b; });
    case WarpOp::kReduceMinS:
      return reduce<S>(lane, lanes, [](S a, S b) { return a < b ? a : b; });
    case WarpOp::kReduceMaxS:
      return reduce<S>(lane, lanes, [](S a, S b) { return a > b ? a : b; });
    case WarpOp::kReduceAnd:
      return reduce<U>(lane, lanes, [](U a, U b) { return a & b; });
    case WarpOp::kReduceOr:
      return reduce<U>(lane, lanes, [](U a, U b) { return a | b; });
    case WarpOp::kReduceXor:
      return reduce<U>(lane, lanes, [](U a, U b) { return a ^ b; });
    default:
      return 0;
  }
}

std::uint32_t equal_lanes(const Fiber* lane, std::uint64_t value, std::uint32_t lanes) {
  std::uint32_t equal = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto other = static_cast<unsigned>(std::countr_zero(lanes));
    equal |= (lane[other].value == value ? 1u : 0u) << other;
  }
  return equal;
}

WarpOp op_of(WarpCall call) { return static_cast<WarpOp>(call & 0xFFu); }
WarpCall kind_of(WarpCall call) { return call & 0xFFFFu; }
unsigned source_of(WarpCall call) { return call >> 16; }

bool is_shuffle(WarpOp op) {
  return op == WarpOp::kShuffle || op == WarpOp::kShuffleUp || op == WarpOp::kShuffleDown ||
         op == WarpOp::kShuffleXor;
}

bool is_matrix(WarpOp op) { return op >= WarpOp::kMatrixLoad && op <= WarpOp::kMma; }

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

std::uint64_t warp_collective(WarpCall call, unsigned mask, std::uint64_t value, const char* file,
                              int line) {
  return BlockRunner::current()->collective(call, mask, value, file, line,
                                            address(__builtin_return_address(0)),
                                            address(__builtin_frame_address(0)));
}

unsigned active_mask() {
  return BlockRunner::current()->active_mask(address(__builtin_return_address(0)),
                                             address(__builtin_frame_address(0)));
}

__attribute__((always_inline)) inline void BlockRunner::barrier(const char* file, int line,
                                                                std::uintptr_t pc,
                                                                std::uintptr_t frame) {
  Fiber& fiber = arrive(Wait::kBarrier, file, line, pc, frame);
  if (x_arrived == 0) {
    x_barrier_file = file;
    x_barrier_line = line;
  } else if (line != x_barrier_line || file != x_barrier_file) [[unlikely]] {
    x_barrier_differs =
        x_barrier_differs || line != x_barrier_line || std::strcmp(file, x_barrier_file) != 0;
  }
  if (++x_arrived == x_live) [[unlikely]]
    pass_barrier();
  else
    wait_for_others(fiber);
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
  if ((x_named.open & 1u) != 0) report_barrier_zero();
  if (x_live != x_threads) note_exited_threads();
  if (x_check != nullptr) [[unlikely]]
    x_check->block_barrier();
  x_votes = {x_ayes, static_cast<int>(x_arrived)};
  x_ayes = 0;
  x_arrived = 0;
  for (unsigned w = 0; w < x_words; ++w) x_runnable[w] = x_alive[w];
}

// Groups with overlapping masks may be pending at once: a lane can go through one, then the other.
// Each lies at the number of its lowest lane if that place is free.
Warp::Group& BlockRunner::find_group(Warp& warp, WarpCall call, unsigned mask) {
  for (std::uint32_t pending = warp.pending; pending != 0; pending &= pending - 1) {
    Warp::Group& group = warp.groups[std::countr_zero(pending)];
    if (group.mask != mask) continue;
    if (group.kind != kind_of(call))
      report_warp_misuse(
          "meets lanes of its warp in another operation, or in a shuffle of another width or with "
          "fragments of another type",
          "All lanes of a mask must make the same call");
    return group;
  }
  if (op_of(call) == WarpOp::kBadWidth)
    report_warp_misuse("shuffles with an impossible width",
                       "The width of a shuffle is 1, 2, 4, 8, 16 or 32");
  if ((mask >> (x_current->index.linear % kWarpSize) & 1u) == 0)
    report_warp_misuse("calls a warp collective with a mask that does not name its own lane",
                       "A lane must be in the mask it passes");
  auto slot = static_cast<unsigned>(std::countr_zero(mask));
  if ((warp.pending >> slot & 1u) != 0) {
    slot = static_cast<unsigned>(std::countr_one(warp.pending));
    warp.displaced |= 1u << slot;
  }
  warp.pending |= 1u << slot;
  warp.groups[slot] = {mask, 0, kind_of(call)};
  return warp.groups[slot];
}

__attribute__((always_inline)) inline std::uint64_t BlockRunner::collective(
    WarpCall call, unsigned mask, std::uint64_t value, const char* file, int line,
    std::uintptr_t pc, std::uintptr_t frame) {
  Fiber& fiber = arrive(Wait::kWarp, file, line, pc, frame);
  fiber.mask = mask;
  fiber.call = call;
  fiber.value = value;
  const unsigned lane = fiber.index.linear % kWarpSize;
  Warp& warp = x_warps[fiber.index.linear / kWarpSize];
  const auto usual = static_cast<unsigned>(std::countr_zero(mask | 0x80000000u));
  Warp::Group* group = &warp.groups[usual];
  if ((warp.pending >> usual & 1u) == 0 || group->mask != mask || group->kind != kind_of(call) ||
      (mask >> lane & 1u) == 0)
    group = &find_group(warp, call, mask);
  group->arrived |= 1u << lane;
  if (group->arrived == (mask & warp.live))
    pass_group(warp, fiber.index.linear / kWarpSize, *group);
  else
    wait_for_others(fiber);
  return s_current->x_current->result;
}

void BlockRunner::meet(WarpCall call, const void* request, const char* file, int line,
                       std::uintptr_t pc, std::uintptr_t frame) {
  collective(call, 0xFFFFFFFFu, reinterpret_cast<std::uintptr_t>(request), file, line, pc, frame);
}

// Out of line: the last lane to arrive.
__attribute__((noinline)) void BlockRunner::pass_group(Warp& warp, unsigned warp_number,
                                                       Warp::Group& group) {
  const std::uint32_t lanes = group.arrived;
  complete_group(warp, warp_number, group);
  switch_to(first_lane(warp_number, lanes));
}

void BlockRunner::complete_group(Warp& warp, unsigned warp_number, Warp::Group& group) {
  Fiber* const lane = &x_fibers[warp_number * kWarpSize];
  const std::uint32_t lanes = group.arrived;
  const WarpOp op = op_of(group.kind);
  if (is_matrix(op)) complete_matrix(warp_number, group);
  if (x_check != nullptr) [[unlikely]]
    x_check->warp_sync(warp_number, lanes, warp.live, op == WarpOp::kSync);
  const std::uint32_t slot = 1u << (&group - warp.groups);
  warp.pending &= ~slot;
  warp.displaced &= ~slot;
  x_runnable[warp_number / 2] |= static_cast<std::uint64_t>(lanes) << (warp_number % 2 * 32);
  if (op == WarpOp::kSync || is_matrix(op)) return;
  if (is_shuffle(op)) {
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      Fiber& to = lane[std::countr_zero(rest)];
      const unsigned source = source_of(to.call);
      to.result = (lanes >> source & 1u) != 0 ? lane[source].value : kPoison;
    }
    return;
  }
  const std::uint64_t common = common_result(lane, op, lanes);
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Fiber& to = lane[std::countr_zero(rest)];
    to.result = op == WarpOp::kMatchAny ? equal_lanes(lane, to.value, lanes) : common;
  }
}

unsigned BlockRunner::active_mask(std::uintptr_t pc, std::uintptr_t frame) {
  if (!is_lockstep()) return 1u << (x_current->index.linear % kWarpSize);
  // Wait for the lanes that are on their way here; those that then go on together are the answer.
  note_position(*x_current, pc, frame);
  switch_to_next_or_report();
  return x_step_group;
}

}  // namespace attn_diag::host
