// Vectorised exp for the reference: half the cost of the two matrix products would otherwise go
// into it.
#pragma once

#include <cstddef>

namespace attn_diag::reference {

// out[i] = exp(x[i] - shift), for x[i] <= shift. Within 2 ulp of fp64; below exp(-708), the end of
// the normal numbers, 0. NaN gives NaN, x[i] = -inf gives 0. x and out may be the same array.
void exp_shifted(const double* x, std::size_t n, double shift, double* out);

}  // namespace attn_diag::reference
