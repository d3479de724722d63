// Whether a declaration that rounds more than the given one would explain every difference.
#pragma once

#include <string>

#include "attn_diag/harness/compare.h"

namespace attn_diag {

// "Every cell is within the bound of a kernel that holds S in fp16: if yours does, declare ..."; empty
// where the differences are too large for that, or nothing of the kind explains them all. `comparison`
// is that of the capture as declared.
std::string looser_declaration(const Capture& capture, const Comparison& comparison,
                               const Tolerance& tolerance, int threads);

}  // namespace attn_diag
