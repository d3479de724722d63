// What each declared rounding adds to the error of o.
#pragma once

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/numerics.h"

namespace attn_diag {

// `rows` of o, spread evenly over what was recorded; fewer where rows are long.
Contributions find_contributions(const Capture& capture, int rows);

}  // namespace attn_diag
