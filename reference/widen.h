// Reading q, k, v: any dtype, any layout, to fp64. Widening is exact.
#pragma once

#include <cstdint>

#include "attn_diag/kernels/problem.h"

namespace attn_diag::reference {

// Copies rows [begin, end) of one (batch, head) of a q, k or v to out, dense row-major.
// `heads`, `seqlen` and `dim` are the sizes of that tensor.
void widen_rows(const void* data, DType dtype, Layout layout, std::int32_t heads,
                std::int32_t seqlen, std::int32_t dim, std::int32_t batch, std::int32_t head,
                std::int32_t begin, std::int32_t end, double* out);

// x rounded to nearest in the type, as a kernel finds it that is given x in it.
double narrowed(DType type, double x);

}  // namespace attn_diag::reference
