// How a kernel is run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "attn_diag/harness/capture.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/stage.h"

namespace attn_diag {

// Memory that a kernel meets before it has written there. What it computes must not depend on it.
enum class GivenMemory : std::uint8_t {
  kWorkspace,
  kOutput,  // o and lse, or S of a kernel that computes it alone
  kShared,  // host executor: shared memory at the start of a block
  kAroundQ,
  kAroundK,
  kAroundV,
  kAroundOutput,
  kAroundWorkspace,
  kAroundGiven,  // S or P, of a kernel that is given it
  kAllocated,  // host executor: what the adapter or the host code gets from cudaMalloc, and around it
};
inline constexpr std::size_t kNumGivenMemories = 10;
std::string_view name(GivenMemory memory);  // "the workspace", "the bytes around v"

// The byte each of it is filled with before a run. 0xFF is NaN in every type; o and lse then hold
// signalling NaNs, by which a cell that was not written is known.
class MemoryFill {
 public:
  static constexpr std::uint8_t kNaN = 0xFF;
  static MemoryFill all(std::uint8_t byte) {
    MemoryFill fill;
    fill.x_bytes.fill(byte);
    return fill;
  }
  static MemoryFill only(GivenMemory memory, std::uint8_t byte) {
    MemoryFill fill;
    fill.x_bytes[static_cast<std::size_t>(memory)] = byte;
    return fill;
  }
  MemoryFill() { x_bytes.fill(kNaN); }
  void set(GivenMemory memory, std::uint8_t byte) {
    x_bytes[static_cast<std::size_t>(memory)] = byte;
  }
  std::uint8_t operator[](GivenMemory memory) const {
    return x_bytes[static_cast<std::size_t>(memory)];
  }

 private:
  std::array<std::uint8_t, kNumGivenMemories> x_bytes;
};

struct RunOptions {
  Gate gate = Gate::kReduce;
  bool taps = true;      // false: gate full, only o and lse
  bool isolate = false;  // feed every stage of the gate the reference's inputs, record its outputs
  std::string schedule = "forward";   // host executor: forward, reverse, seed:N, lockstep
  std::uint64_t mma_order = 0;        // host executor: how tensor-core products are summed; 0: as
                                      // on sm_90, others: a seed (host/executor.h)
  std::string async_copies = "late";  // host executor: when cp.async lands: late, early
  int threads = 0;                    // worker threads of the host executor; 0: all cores
  Region region;                      // extent 0: whole
  TileShape tile{0, 0};               // 0: the kernel's default
  int num_splits = 0;                 // 0: the kernel's choice
  std::int64_t step_limit = 0;        // 0: default
  std::int64_t memory_limit = 0;  // bytes the capture may take; 0: three quarters of what is free
  // Bit t: tensor t is overwritten, after it was recorded, with the reference's value rounded to
  // fp32. `isolate` adds the inputs of every stage to these.
  std::uint32_t replace = 0;
  MemoryFill fill;
};

}  // namespace attn_diag
