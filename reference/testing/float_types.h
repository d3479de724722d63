// Values of the problem's dtypes, for tests: rounding, storing and loading, by the book.
#pragma once

#include <cstddef>

#include "attn_diag/kernels/problem.h"

namespace attn_diag::reference::testing {

// The nearest value of the type, ties to even; beyond its largest, infinity.
double round_to(DType type, double x);

// Writes round_to(type, x) in the type's own bits.
void store(DType type, double x, std::byte* to);
double load(DType type, const std::byte* from);

}  // namespace attn_diag::reference::testing
