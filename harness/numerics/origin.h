// From a value that is no number back through its operands to where it was made.
#pragma once

#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/numerics.h"

namespace attn_diag {

// The origin of the first such cell of each tensor, in pipeline order, from what the capture holds alone. Cells
// with a common origin are one entry, told from the last of them.
std::vector<NonFiniteOrigin> find_origins(const Capture& capture);

}  // namespace attn_diag
