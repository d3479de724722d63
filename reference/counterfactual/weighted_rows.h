// The two products of a row, on rows of K or V that lie a stride apart.
#pragma once

#include <cstdint>

namespace attn_diag::reference {

// out[s] = sum_d x[d] rows[s][d]
void dot_rows(const double* x, const double* rows, std::int64_t stride, std::int32_t n,
              std::int32_t dim, double* out);

// out[d] += sum_s weights[s] rows[s][d]; error[d] += sum_s errors[s] |rows[s][d]|
void add_weighted_rows(const double* weights, const double* errors, const double* rows,
                       std::int64_t stride, std::int32_t n, std::int32_t dim, double* out,
                       double* error);

// out[s] = |rows[s]|, Euclidean.
void row_norms(const double* rows, std::int64_t stride, std::int32_t n, std::int32_t dim,
               double* out);

}  // namespace attn_diag::reference
