// Errors in ULPs, where they mean something.
#pragma once

#include <optional>

#include "attn_diag/harness/capture.h"
#include "harness/compare/limits.h"

namespace attn_diag {

// What the kernel rounds a tensor to, as declared, though it may have been recorded in a wider type.
DType storage_of(Tensor t, const Capture& capture);

// None where a value is not finite, 0 is expected, or the bound leaves fewer than half of the digits.
std::optional<double> error_in_ulps(DType storage, double actual, double expected, double bound);

}  // namespace attn_diag
