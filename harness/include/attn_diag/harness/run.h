// Running a kernel and recording what its stages produced.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/kernel.h"

namespace attn_diag {

struct InputData {
  // In the problem's dtype and layout: quantised once, given to both sides.
  std::vector<std::byte> q, k, v;
  std::string kind;
  std::uint64_t seed = 0;
  double scale = 1;
  bool has_nonfinite = false;  // a NaN or infinity in q, k or v: allowed, and worth saying
};

// What make_inputs can make, and what each is good for.
struct InputKindInfo {
  const char* name;
  const char* summary;
};
const std::vector<InputKindInfo>& input_kinds();

// q, k, v of one kind, times `scale`. Element (b, h, s, d) depends on its coordinates, the seed,
// the kind and the scale alone, not on layout or threads (kinds whose scores follow a plan: also on
// sizes and softmax_scale). docs/inputs.md says what each kind promises.
// Throws Error for an unknown kind or a problem that check_problem refuses.
InputData make_inputs(const Problem& problem, const std::string& kind, std::uint64_t seed,
                      double scale);

// True if a NaN or an infinity is among the elements.
bool has_nonfinite(const std::vector<std::byte>& elements, DType dtype);

// What is declared, by a live kernel or in a file, decides what is called right: what makes no sense is refused.
// Each throws Error: where sizes, head counts, mask or softmax_scale of a problem make none;
void check_problem(const Problem& problem);
// where tiles and splits cannot be, or do not cover the keys;
void check_geometry(const Geometry& geometry, const Problem& problem);
// where an error is not a number of at least 0, or larger than any arithmetic of the type has.
void check_arithmetic(const Arithmetic& arithmetic);

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
};
inline constexpr std::size_t kNumGivenMemories = 9;
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

// The tensors that are inputs of a later stage (S, m, l, P, partial_o), as a mask.
std::uint32_t stage_input_mask();

// The geometry the kernel takes for a problem under these options. Throws Error naming what the
// kernel does support.
Geometry plan_geometry(const Kernel& kernel, const Problem& problem, const RunOptions& options);

// Bytes a run allocates: capture, replacements, outputs and workspace.
double run_bytes(const Kernel& kernel, const Problem& problem, const Geometry& geometry,
                 const RunOptions& options);

// Runs the kernel once. The capture has every tensor that the kernel exposes up to the gate, o in
// the problem's dtype as [batch][head][query][dim] in either layout, lse, and coverage: cells that
// no thread wrote are found for o and lse even without taps, because their memory is poisoned with
// signalling NaNs, which no arithmetic produces.
// Under schedule "lockstep" the lockstep build of the kernel's library is loaded.
// Throws Error for what the kernel does not support, too large captures, a write outside the
// buffers given to the kernel, or a launch that failed (with the executor's finding).
Capture run_kernel(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                   const RunOptions& options);

}  // namespace attn_diag
