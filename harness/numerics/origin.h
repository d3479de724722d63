// From a value that is no number back through its operands to where it was made.
#pragma once

#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/numerics.h"

namespace attn_diag {

// Of the first such cell of each tensor, in the order of the pipeline; those that come from one origin are one, told from
// the last of them. Of what the capture holds alone.
std::vector<NonFiniteOrigin> find_origins(const Capture& capture);

}  // namespace attn_diag
