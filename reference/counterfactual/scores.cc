// S of one row: q.k, its factor, the mask; and how far rounding may take it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/weighted_rows.h"

namespace attn_diag::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

KeyRange Evaluator::counted_keys(std::int32_t query) const {
  // The oracle's range, before it is cut to the keys there are.
  const Mask& mask = p_.mask;
  const std::int64_t opposite = query + (p_.seqlen_k - p_.seqlen_q);
  std::int64_t first = 0, last = p_.seqlen_k - 1;
  if (mask.kind == MaskKind::kCausal) {
    last = mask.alignment == CausalAlignment::kBottomRight ? opposite : query;
    last += d_.mask.last_shift;
  } else if (mask.kind == MaskKind::kWindow) {
    first = opposite - mask.window_left + d_.mask.first_shift;
    last = opposite + mask.window_right + d_.mask.last_shift;
  }
  const std::int64_t sk = p_.seqlen_k;
  return {static_cast<std::int32_t>(std::clamp<std::int64_t>(first, 0, sk)),
          static_cast<std::int32_t>(std::clamp<std::int64_t>(last + 1, 0, sk))};
}

void Evaluator::scores(const Row& row, RowState& state) {
  const auto n = static_cast<std::size_t>(p_.seqlen_k);
  state.s.assign(n, -kInf);
  state.s_error.assign(n, 0.0);
  if (c_.has(Tensor::kS)) {
    const float* given = c_.given_row(Tensor::kS, row);
    std::copy_n(given, n, state.s.data());
    return;
  }
  const KeyRange keys = counted_keys(row.query);
  if (keys.empty()) return;
  const double* q = c_.q->values.data() + c_.q->row_offset(row.batch, row.head, row.query);
  double* s = state.s.data() + keys.begin;
  double* error = state.s_error.data() + keys.begin;
  const double* norms = k_norms_.data() + keys.begin;
  dot_rows(q, k_.data + keys.begin * k_.stride, k_.stride, keys.size(), p_.head_dim, s);
  double q_norm = 0;
  row_norms(q, p_.head_dim, 1, p_.head_dim, &q_norm);
  const double relative = relative_s_error_ * std::fabs(scale_) * q_norm;
  const double u = model_.op.u, tiny = p_.head_dim * model_.op.tiny;
  for (std::int32_t j = 0; j < keys.size(); ++j) {
    s[j] *= scale_;
    error[j] = relative * norms[j] + u * std::fabs(s[j]) + tiny;
  }
}

}  // namespace attn_diag::reference
