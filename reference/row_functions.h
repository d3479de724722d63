// Vectorised functions of a run of numbers in a row: scalar exp alone would cost as much as the two
// matrix products. Results do not depend on where in memory the run lies.
#pragma once

#include <cstddef>

namespace attn_diag::reference {

// The largest of n numbers; -inf for none, NaN if any is.
double largest(const double* x, std::size_t n);

// The largest of x[i] + e[i] and of x[i] - e[i], as largest() has it.
struct Range {
  double high, low;
};
Range largest_within(const double* x, const double* e, std::size_t n);

double sum(const double* x, std::size_t n);

// out[i] = exp(x[i] - shift), for x[i] <= shift; returns their sum. Within 2 ulp of fp64; below
// exp(-708), the end of the normal numbers, 0. NaN gives NaN, x[i] = -inf gives 0. x and out may be
// the same array.
double exp_shifted(const double* x, std::size_t n, double shift, double* out);

}  // namespace attn_diag::reference
