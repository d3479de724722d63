// A second reference for tests: one row at a time, straight from the definitions in stage.h, long
// double, with no thought for speed and no code in common with the oracle.
#pragma once

#include <array>
#include <vector>

#include "reference/testing/random_case.h"

namespace attn_diag::reference::testing {

// Every tensor, dense row-major over the whole problem; merged_* are filled even where the geometry
// has no merge.
std::array<std::vector<double>, kNumTensors> naive_attention(const Case& c);

}  // namespace attn_diag::reference::testing
