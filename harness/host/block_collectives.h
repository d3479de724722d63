// Warp collectives: which lanes meet, and what each gets when all have arrived.
#pragma once

#include <bit>
#include <memory>

#include "attn_diag_host/warp.h"
#include "harness/host/block_context.h"

namespace attn_diag::host {

// The threads of one warp and the collectives that some of them wait in.
struct Warp {
  struct Group {
    std::uint32_t mask;     // as the lanes named it
    std::uint32_t arrived;  // of those
    WarpCall kind;          // the operation and, of a shuffle, the width
  };
  std::uint32_t live = 0;       // lanes that have not exited
  std::uint32_t pending = 0;    // groups in use
  std::uint32_t displaced = 0;  // those not at the number of their lowest lane
  Group groups[kWarpSize];
};

// An operation to which all 32 lanes bring memory (`value` of their fibers); done when they have met.
class WarpOperation {
 public:
  virtual void complete(unsigned warp, WarpOp op, std::uint32_t arrived) = 0;

 protected:
  ~WarpOperation() = default;
};

constexpr WarpOp op_of(WarpCall call) { return static_cast<WarpOp>(call & 0xFFu); }
constexpr WarpCall kind_of(WarpCall call) { return call & 0xFFFFu; }
constexpr unsigned source_of(WarpCall call) { return call >> 16 & 0xFFu; }
// Set as a shuffle is complete: the lane that it reads took no part, so that CUDA does not define what was read.
inline constexpr WarpCall kReadsAbsentLane = 1u << 31;

class __attribute__((visibility("hidden"))) WarpCollectives {
 public:
  explicit WarpCollectives(BlockContext& block) : x_block(block) {}

  // Who completes the operations on matrices.
  void set_matrices(WarpOperation& matrices) { x_matrices = &matrices; }
  void begin_block();
  // Collectives of its warp may be complete without the thread.
  void thread_exited(unsigned thread) {
    Warp& warp = x_warps[thread / kWarpSize];
    warp.live &= ~(1u << (thread % kWarpSize));
    if (warp.pending != 0) complete_without(thread / kWarpSize);
  }

  // `block` is x_block, passed so that finding it takes no load.
  std::uint64_t collective(BlockContext& block, WarpCall call, unsigned mask, std::uint64_t value,
                           const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  // Tells a checked block's checker where the current thread's shuffle, now complete, reads a lane that took no part.
  void check_source(std::uintptr_t pc) const;
  unsigned active_mask(std::uintptr_t pc, std::uintptr_t frame);
  // All 32 lanes in a matrix operation; `request` is the lane's, until it goes on.
  void meet(WarpCall call, const void* request, const char* file, int line, std::uintptr_t pc,
            std::uintptr_t frame);

 private:
  void complete_without(unsigned warp_number);
  Warp::Group& find_group(Warp& warp, WarpCall call, unsigned mask);
  void pass_group(Warp& warp, unsigned warp_number, Warp::Group& group);
  // Gives every lane of the group its result and makes it runnable.
  void complete_group(Warp& warp, unsigned warp_number, Warp::Group& group);
  [[noreturn]] void report_misuse(const char* what, const char* advice);

  BlockContext& x_block;
  WarpOperation* x_matrices = nullptr;
  std::uint64_t x_absent = ~0ull;  // what a shuffle reads of a lane that takes no part
  std::unique_ptr<Warp[]> x_warps = std::make_unique<Warp[]>(kMaxThreads / kWarpSize);
};

__attribute__((always_inline)) inline std::uint64_t WarpCollectives::collective(
    BlockContext& block, WarpCall call, unsigned mask, std::uint64_t value, const char* file,
    int line, std::uintptr_t pc, std::uintptr_t frame) {
  Fiber& fiber = block.arrive(Wait::kWarp, file, line, pc, frame);
  fiber.mask = mask;
  fiber.call = call;
  fiber.value = value;
  Warp& warp = x_warps[fiber.index.linear / kWarpSize];
  const auto usual = static_cast<unsigned>(std::countr_zero(mask | 0x80000000u));
  Warp::Group* group = &warp.groups[usual];
  if ((warp.pending >> usual & 1u) == 0 || group->mask != mask || group->kind != kind_of(call) ||
      (mask >> (fiber.index.linear % kWarpSize) & 1u) == 0)
    group = &find_group(warp, call, mask);
  group->arrived |= 1u << (fiber.index.linear % kWarpSize);
  if (group->arrived == (mask & warp.live))
    pass_group(warp, fiber.index.linear / kWarpSize, *group);
  else
    block.wait_for_others(fiber);
  return BlockThreads::running()->current().result;
}

}  // namespace attn_diag::host
