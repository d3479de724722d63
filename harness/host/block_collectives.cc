#include "harness/host/block_collectives.h"

#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

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

bool is_shuffle(WarpOp op) {
  return op == WarpOp::kShuffle || op == WarpOp::kShuffleUp || op == WarpOp::kShuffleDown ||
         op == WarpOp::kShuffleXor;
}

bool is_matrix(WarpOp op) { return op >= WarpOp::kMatrixLoad && op <= WarpOp::kMma; }

}  // namespace

void WarpCollectives::begin_block() {
  x_absent = x_block.plan().shared_fill * 0x0101010101010101ull;
  for (unsigned w = 0; w * kWarpSize < x_block.threads(); ++w) {
    x_warps[w].live = x_block.runnable_lanes(w);
    x_warps[w].pending = x_warps[w].displaced = 0;
  }
}

// A lane has ended: some collectives may be complete without it.
void WarpCollectives::complete_without(unsigned warp_number) {
  Warp& warp = x_warps[warp_number];
  for (std::uint32_t pending = warp.pending; pending != 0; pending &= pending - 1) {
    Warp::Group& group = warp.groups[std::countr_zero(pending)];
    if (group.arrived == (group.mask & warp.live)) complete_group(warp, warp_number, group);
  }
}

// Groups with overlapping masks may be pending at once: a lane can go through one, then the other.
// Each lies at the number of its lowest lane if that place is free.
Warp::Group& WarpCollectives::find_group(Warp& warp, WarpCall call, unsigned mask) {
  for (std::uint32_t pending = warp.pending; pending != 0; pending &= pending - 1) {
    Warp::Group& group = warp.groups[std::countr_zero(pending)];
    if (group.mask != mask) continue;
    if (group.kind != kind_of(call))
      report_misuse(
          "meets lanes of its warp in another operation, or in a shuffle of another width or with "
          "fragments of another type",
          "All lanes of a mask must make the same call");
    return group;
  }
  if (op_of(call) == WarpOp::kBadWidth)
    report_misuse("shuffles with an impossible width",
                  "The width of a shuffle is 1, 2, 4, 8, 16 or 32");
  if ((mask >> (x_block.current_thread() % kWarpSize) & 1u) == 0)
    report_misuse("calls a warp collective with a mask that does not name its own lane",
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

void WarpCollectives::meet(WarpCall call, const void* request, const char* file, int line,
                           std::uintptr_t pc, std::uintptr_t frame) {
  collective(x_block, call, 0xFFFFFFFFu, reinterpret_cast<std::uintptr_t>(request), file, line, pc,
             frame);
}

// Out of line: the last lane to arrive.
__attribute__((noinline)) void WarpCollectives::pass_group(Warp& warp, unsigned warp_number,
                                                           Warp::Group& group) {
  const std::uint32_t lanes = group.arrived;
  complete_group(warp, warp_number, group);
  x_block.switch_to_first_lane(warp_number, lanes);
}

void WarpCollectives::complete_group(Warp& warp, unsigned warp_number, Warp::Group& group) {
  Fiber* const lane = x_block.lanes_of(warp_number);
  const std::uint32_t lanes = group.arrived;
  const WarpOp op = op_of(group.kind);
  if (is_matrix(op)) x_matrices->complete(warp_number, op, lanes);
  if (x_block.check() != nullptr) [[unlikely]]
    x_block.check()->warp_sync(warp_number, lanes, warp.live, op == WarpOp::kSync);
  const std::uint32_t slot = 1u << (&group - warp.groups);
  warp.pending &= ~slot;
  warp.displaced &= ~slot;
  x_block.let_lanes_go_on(warp_number, lanes);
  if (op == WarpOp::kSync || is_matrix(op)) return;
  if (is_shuffle(op)) {
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      Fiber& to = lane[std::countr_zero(rest)];
      const unsigned source = source_of(to.call);
      const bool takes_part = (lanes >> source & 1u) != 0;
      to.result = takes_part ? lane[source].value : x_absent;
      if (!takes_part) to.call |= kReadsAbsentLane;
    }
    return;
  }
  const std::uint64_t common = common_result(lane, op, lanes);
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Fiber& to = lane[std::countr_zero(rest)];
    to.result = op == WarpOp::kMatchAny ? equal_lanes(lane, to.value, lanes) : common;
  }
}

void WarpCollectives::check_source(std::uintptr_t pc) const {
  const Fiber& fiber = x_block.current();
  if ((fiber.call & kReadsAbsentLane) != 0)
    x_block.check()->absent_lane(x_block.current_thread(), source_of(fiber.call), fiber.mask, pc);
}

unsigned WarpCollectives::active_mask(std::uintptr_t pc, std::uintptr_t frame) {
  if (!x_block.is_lockstep()) return 1u << (x_block.current_thread() % kWarpSize);
  return x_block.lanes_that_come(pc, frame);
}

// Takes no std::string: it would never be destroyed.
void WarpCollectives::report_misuse(const char* what, const char* advice) {
  const Fiber& fiber = x_block.current();
  x_block.record(LaunchFindingKind::kWarpDivergence,
                 concat(x_block.thread_name(fiber), ' ', what, " at ", fiber.file, ':', fiber.line),
                 advice, fiber.file, fiber.line);
  x_block.leave_for_good();
}

}  // namespace attn_diag::host
