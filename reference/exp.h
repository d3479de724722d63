// What the softmax does with a run of scores, vectorised: scalar exp alone would cost as much as
// the two matrix products.
#pragma once

#include <cstddef>

namespace attn_diag::reference {

// The largest of n numbers; -inf for none, NaN if any is.
double largest(const double* x, std::size_t n);

// out[i] = exp(x[i] - shift), for x[i] <= shift; returns their sum. Within 2 ulp of fp64; below
// exp(-708), the end of the normal numbers, 0. NaN gives NaN, x[i] = -inf gives 0. x and out may be
// the same array.
double exp_shifted(const double* x, std::size_t n, double shift, double* out);

}  // namespace attn_diag::reference
