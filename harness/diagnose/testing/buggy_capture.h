// Captures of kernels that have a known bug: what predict() says, rounded as a kernel would.
#pragma once

#include <string>

#include "attn_diag/harness/capture.h"
#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::testing {

struct BuggyCase {
  Problem problem;
  Geometry geometry;
  std::string inputs = "probe";
  std::uint64_t seed = 3;
};
// B=2 H=2 S=96 D=16 in fp16, causal, tiles of 32x16, two splits.
BuggyCase buggy_case();

// q, k, v of the case; o, rounded to the problem's dtype, and lse, to fp32, under the deviation. What the bug
// leaves unwritten is NaN. With `stages`, every stage tensor too, in fp32.
Capture buggy_capture(const BuggyCase& c, const reference::Deviation& deviation,
                      bool stages = false);
reference::PredictionInputs data_of(const BuggyCase& c);

}  // namespace attn_diag::testing
