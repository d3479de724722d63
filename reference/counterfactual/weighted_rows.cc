#include "reference/counterfactual/weighted_rows.h"

#include <cmath>

#include "reference/matrix.h"

namespace attn_diag::reference {

void dot_rows(const double* x, const double* rows, std::int64_t stride, std::int32_t n,
              std::int32_t dim, double* out) {
  Eigen::Map<Eigen::VectorXd>(out, n).noalias() =
      MatrixIn(rows, n, dim, Stride(stride)) * Eigen::Map<const Eigen::VectorXd>(x, dim);
}

void add_weighted_rows(const double* weights, const double* errors, const double* rows,
                       std::int64_t stride, std::int32_t n, std::int32_t dim,
                       double* __restrict out, double* __restrict error) {
  // Four rows at once: out and error are read and written a quarter as often.
  std::int32_t s = 0;
  for (; s + 4 <= n; s += 4, rows += 4 * stride) {
    const double *r0 = rows, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
    const double w0 = weights[s], w1 = weights[s + 1], w2 = weights[s + 2], w3 = weights[s + 3];
    const double e0 = errors[s], e1 = errors[s + 1], e2 = errors[s + 2], e3 = errors[s + 3];
    for (std::int32_t d = 0; d < dim; ++d) {
      out[d] += w0 * r0[d] + w1 * r1[d] + (w2 * r2[d] + w3 * r3[d]);
      error[d] += e0 * std::fabs(r0[d]) + e1 * std::fabs(r1[d]) +
                  (e2 * std::fabs(r2[d]) + e3 * std::fabs(r3[d]));
    }
  }
  for (; s < n; ++s, rows += stride)
    for (std::int32_t d = 0; d < dim; ++d) {
      out[d] += weights[s] * rows[d];
      error[d] += errors[s] * std::fabs(rows[d]);
    }
}

void row_norms(const double* rows, std::int64_t stride, std::int32_t n, std::int32_t dim,
               double* out) {
  for (std::int32_t s = 0; s < n; ++s)
    out[s] = std::sqrt(RowIn(rows + s * stride, dim).square().sum());
}

}  // namespace attn_diag::reference
