// Running a kernel and recording what its stages produced.
#pragma once

#include <cstdint>
#include <string>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag {

enum class InputKind : std::uint8_t { kRandn, kUniform, kOnes, kRamp };

struct InputData {
  std::vector<std::byte> q, k,
      v;  // in the problem's dtype and layout: quantised once, given to both sides
  std::string kind;
  std::uint64_t seed = 0;
  bool has_nonfinite = false;
};
// Deterministic for (problem sizes, kind, seed, scale) and independent of layout: element (b,h,s,d)
// has the same value in BHSD and BSHD.
InputData make_inputs(const Problem& problem, const std::string& kind, std::uint64_t seed,
                      double scale);

struct RunOptions {
  Gate gate = Gate::kReduce;
  bool taps = true;      // false: gate full, only o and lse
  bool isolate = false;  // feed every stage of the gate the reference's inputs, record its outputs
  std::string schedule = "forward";  // host executor: forward, reverse, seed:N, lockstep
  int threads = 0;                   // worker threads of the host executor; 0: all cores
  Region region;                     // extent 0: whole
  TileShape tile{0, 0};              // 0: the kernel's default
  int num_splits = 0;                // 0: the kernel's choice
  std::int64_t step_limit = 0;       // 0: default
  std::int64_t memory_limit = 0;  // bytes the capture may take; 0: three quarters of what is free
};

// Throws Error for what the kernel does not support, too large captures, or a launch that failed
// (with the executor's finding).
Capture run_kernel(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                   const RunOptions& options);

}  // namespace attn_diag
