// How far rounding may take results, told without computing attention: from norms of q, k and v, and from what the
// kernel itself recorded. Looser than the bounds of reference.h, which are never larger; docs/numerics.md derives them.
#pragma once

#include <cstdint>
#include <vector>

#include "attn_diag/kernels/arithmetic.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag::reference {

// For every row, [batch][head][query]; inf: nothing can be said.
struct CoarseBounds {
  std::vector<double> o;    // of each dim
  std::vector<double> lse;  // 0 of a row without a key
  // No score can overflow, and none is NaN.
  bool scores_finite = true;
  double largest_score = 0;  // none is larger in magnitude
};
// O(batch (seqlen_q + seqlen_k) (heads + head_dim)) operations, beside reading q, k and v.
CoarseBounds coarse_bounds(const Problem& problem, const Geometry& geometry,
                           const Arithmetic& arithmetic, const Inputs& inputs);

// How far numbers of one run may be from what they should be to each other.
class ConsistencyLimits {
 public:
  ConsistencyLimits(const Problem& problem, const Geometry& geometry, const Arithmetic& arithmetic);

  // |sum of P - l| of a tile with `keys` visible keys; `sum` is that of P.
  double sum_of_probs(std::int64_t keys, double sum) const;
  // How far below 1 the sum of a row may be that was summed over `keys` keys, in the frame of max m.
  double sum_below_one(std::int64_t keys, double m) const;
  // |lse - (m + ln l)|.
  double log_sum_exp(double m, double l) const;
  // How far o may lie outside [min V, max V]: `lse` of the row, `largest_v` the largest |V|.
  double outside_of_v(std::int64_t keys, double lse, double largest_v) const;

 private:
  double x_u, x_dot_u, x_tiny, x_probs_u, x_probs_tiny, x_partial_u, x_partial_tiny, x_stats_u,
      x_output_u, x_output_tiny, x_output_largest, x_largest;
  double x_exp_ulp, x_exp_ulp_per_x, x_exp_flush, x_log_ulp, x_log_abs;
  std::int64_t x_steps;  // rescales from tile to tile and from split to split
};

}  // namespace attn_diag::reference
