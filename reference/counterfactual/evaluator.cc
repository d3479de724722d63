#include "reference/counterfactual/evaluator.h"

#include <cmath>
#include <limits>

#include "reference/counterfactual/weighted_rows.h"

namespace attn_diag::reference {

Evaluator::Evaluator(const Case::Data& c, const Deviation& deviation, std::uint32_t tensors)
    : c_(c),
      p_(c.problem),
      g_(c.geometry),
      d_(deviation),
      model_(c.arithmetic),
      tiles_(c.tiles),
      dim_v_(c.problem.head_dim_v) {
  for (const TensorInfo& t : kTensors) {
    if ((tensors >> static_cast<int>(t.id) & 1u) == 0) continue;
    needs_softmax_ = needs_softmax_ || t.stage != Stage::kQk;
    needs_reduce_ = needs_reduce_ || t.stage == Stage::kReduce;
    needs_pv_ =
        needs_pv_ || (t.rank > 3 && t.axes[static_cast<std::size_t>(t.rank - 1)] == Axis::kDim);
  }
  scale_ = static_cast<double>(p_.softmax_scale) * d_.logits.kappa;
  const double gamma_n = gamma(p_.head_dim, model_.dot_u);
  const double narrow = p_.softmax_scale != 0 && c.arithmetic.scale_applied_to_q
                            ? narrowing_to(c.arithmetic.scaled_q).u
                            : 0;
  relative_s_error_ = gamma_n + narrow + model_.op.u;
}

void Evaluator::evaluate(const Row& row, RowState& state) {
  if (row.batch != batch_ || row.head != head_) enter_head(row.batch, row.head);
  scores(row, state);
  if (!needs_softmax_) return;
  softmax(row, state);
  if (needs_pv_) product(row, state);
  if (!needs_reduce_) return;
  recurrence(state);
  merge(state);
  finish(state);
}

void Evaluator::enter_head(std::int32_t batch, std::int32_t head) {
  batch_ = batch;
  head_ = head;
  const std::int32_t kv_head = kv_head_of(p_, head);
  k_ = {c_.k->values.data() + c_.k->row_offset(batch, kv_head, 0), c_.k->strides.seq};
  v_ = {c_.v->values.data() + c_.v->row_offset(batch, kv_head, 0), c_.v->strides.seq};
  k_norms_.resize(static_cast<std::size_t>(p_.seqlen_k));
  row_norms(k_.data, k_.stride, p_.seqlen_k, p_.head_dim, k_norms_.data());
}

double Evaluator::in_range(double x) const {
  return std::fabs(x) <= model_.op.largest || std::isnan(x)
             ? x
             : std::copysign(std::numeric_limits<double>::infinity(), x);
}

double Evaluator::exp_in_range(double x) const { return in_range(std::exp(x)); }

// A part that has seen nothing (from = -inf) weighs nothing in any kernel that guards against
// exp(-inf - -inf).
double Evaluator::rescale(Rescale how, double from, double to) const {
  switch (how) {
    case Rescale::kRight:
      break;
    case Rescale::kMissing:
      return 1;
    case Rescale::kInverted:
      return from == -std::numeric_limits<double>::infinity() ? 0 : exp_in_range(to - from);
    case Rescale::kZero:
      return 0;
  }
  return from == -std::numeric_limits<double>::infinity() ? 0 : exp_in_range(from - to);
}

}  // namespace attn_diag::reference
