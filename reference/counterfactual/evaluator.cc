#include "reference/counterfactual/evaluator.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/counterfactual/tile_view.h"
#include "reference/counterfactual/weighted_rows.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
namespace {

double approximate_exp(ExpKind kind, double c, double x) {
  if (kind == ExpKind::kLimit) return std::pow(1 + x / c, c);
  const bool nearest = kind == ExpKind::kTaylor1Nearest || kind == ExpKind::kTaylor2Nearest ||
                       kind == ExpKind::kTaylor3Nearest;
  const double y = x * std::numbers::log2e, whole = std::floor(nearest ? y + 0.5 : y);
  const double f = y - whole, r = f * std::numbers::ln2;
  double part = 1 + f;
  switch (kind) {
    case ExpKind::kTaylor1:
    case ExpKind::kTaylor1Nearest:
      part = 1 + r;
      break;
    case ExpKind::kTaylor2:
    case ExpKind::kTaylor2Nearest:
      part = 1 + r + r * r / 2;
      break;
    case ExpKind::kTaylor3:
    case ExpKind::kTaylor3Nearest:
      part = 1 + r + r * r / 2 + r * r * r / 6;
      break;
    case ExpKind::kQuadratic:
      part = 1 + f - c * f * (1 - f);
      break;
    default:
      break;
  }
  return std::exp2(whole) * part;
}

}  // namespace

Evaluator::Evaluator(const PredictionInputs::Data& c, const Deviation& deviation,
                     std::uint32_t tensors)
    : c_(c),
      p_(c.problem),
      g_(c.geometry),
      d_(deviation),
      model_(c.arithmetic),
      shared_slots_(slots_of(c, deviation.mask)),
      slots_(*shared_slots_),
      tiles_(c.tiles),
      dim_v_(c.problem.head_dim_v),
      tensors_(tensors) {
  for (const TensorInfo& t : kTensors) {
    if ((tensors & tensor_bit(t.id)) == 0) continue;
    needs_softmax_ = needs_softmax_ || t.stage != Stage::kQk;
    needs_reduce_ = needs_reduce_ || t.stage == Stage::kReduce;
    needs_pv_ =
        needs_pv_ || (t.rank > 3 && t.axes[static_cast<std::size_t>(t.rank - 1)] == Axis::kDim);
  }
  columns_ = d_.logits.columns > 0 ? d_.logits.columns : p_.head_dim;
  scale_ = static_cast<double>(p_.softmax_scale) * d_.logits.kappa;
  const double narrow = c.arithmetic.scale_applied_to_q ? narrowing_to(c.arithmetic.scaled_q).u : 0;
  relative_s_error_ = gamma(columns_, model_.dot_u) + narrow + model_.op.u;
}

void Evaluator::enter_row(const RowIndex& row) {
  const bool by_loop = d_.k.late_in_loop || d_.v.late_in_loop;
  const KeyRange loop = by_loop ? visited_tiles(p_, g_, d_.mask, row.query) : KeyRange{};
  if (row.batch != batch_ || row.head != head_ || loop.begin != view_loop_.begin ||
      loop.end != view_loop_.end) {
    view_loop_ = loop;
    enter_head(row.batch, row.head);
  }
}

void Evaluator::evaluate(const RowIndex& row, RowState& state) {
  enter_row(row);
  scores(row, state);
  const bool by_tile = d_.place.tiles != TilePlace::kAll && slots_.plain;
  const bool other_products = by_tile && (d_.v != FetchChange{} || d_.pv != PvChange{});
  if (by_tile) take_right_scores(row, state);
  if (!needs_softmax_) return;
  begin(row);
  softmax(row, state);
  if (needs_pv_ && other_products) right_state_ = state;
  if (needs_pv_) product(row, state);
  if (needs_pv_ && other_products) take_right_products(row, state);
  if (!needs_reduce_) return;
  recurrence(row, state);
  merge(row, state);
  finish(row, state);
}

bool Evaluator::is_right_on(std::int32_t query, std::int32_t tile) const {
  return !holds(d_.place.tiles, p_, g_, query, tile);
}

// Tiles without the deviation take the scores of the right formula.
void Evaluator::take_right_scores(const RowIndex& row, RowState& state) {
  if (right_ == nullptr) right_ = std::make_unique<Evaluator>(c_, Deviation{}, tensors_);
  right_->enter_row(row);
  right_->scores(row, right_state_);
  for (std::int32_t tile = 0; tile < tiles_; ++tile) {
    if (!is_right_on(row.query, tile)) continue;
    const auto t = static_cast<std::size_t>(tile);
    const KeyRange slots = slots_.of_tile(tile);
    const auto take = [&](const auto& from, auto& to) {
      std::copy(from.begin() + slots.begin, from.begin() + slots.end, to.begin() + slots.begin);
    };
    take(right_state_.s, state.s);
    take(right_state_.s_error, state.s_error);
    if (!state.s_known.empty())
      std::fill(state.s_known.begin() + slots.begin, state.s_known.begin() + slots.end,
                std::uint8_t{1});
    state.views[t] = right_state_.views[t];
    state.counted[t] = right_state_.counted[t];
  }
}

// From the same P; right_state_ has it.
void Evaluator::take_right_products(const RowIndex& row, RowState& state) {
  right_->product(row, right_state_);
  const auto dim = static_cast<std::size_t>(dim_v_);
  for (std::int32_t tile = 0; tile < tiles_; ++tile) {
    if (!is_right_on(row.query, tile)) continue;
    const auto t = static_cast<std::size_t>(tile);
    std::copy_n(right_state_.partial_o.begin() + tile * dim_v_, dim,
                state.partial_o.begin() + tile * dim_v_);
    std::copy_n(right_state_.partial_o_error.begin() + tile * dim_v_, dim,
                state.partial_o_error.begin() + tile * dim_v_);
    state.product_known[t] = right_state_.product_known[t];
  }
}

const RowState& Evaluator::foreign(const RowIndex& row, std::size_t slot) {
  if (foreign_evaluator_ == nullptr) {
    Deviation rest = d_;
    rest.combine.map = PartialMap::kRight;
    rest.combine.written = rest.combine.read = PartialOrder::kBhqn;
    rest.combine.read_splits = rest.combine.read_queries = rest.combine.read_heads = 0;
    rest.combine.read_shift = 0;
    // The state is that of the reduce stage, whatever is wanted of this row.
    foreign_evaluator_ = std::make_unique<Evaluator>(c_, rest, tensors_ | tensor_bit(Tensor::kLse));
  }
  // A deque: what was returned before stays where it is.
  while (foreign_states_.size() <= slot) foreign_states_.emplace_back();
  foreign_evaluator_->evaluate(row, foreign_states_[slot]);
  return foreign_states_[slot];
}

void Evaluator::enter_head(std::int32_t batch, std::int32_t head) {
  batch_ = batch;
  head_ = head;
  lent_.clear();
  dots_.clear();
  k_ = view_rows(d_.k.of_other ? *c_.v : *c_.k, d_.k, columns_, gathered_k_);
  v_ = needs_pv_ ? view_rows(d_.v.of_other ? *c_.k : *c_.v, d_.v, dim_v_, gathered_v_) : RowsView{};
  if (k_.norms != nullptr) return;
  k_norms_.resize(static_cast<std::size_t>(slots_.size));
  row_norms(k_.data, k_.stride, slots_.size, columns_, k_norms_.data());
  k_.norms = k_norms_.data();
}

RowsView Evaluator::view_rows(const Operand& operand, const FetchChange& change,
                              std::int32_t columns,
                              std::shared_ptr<const Gathered>& gathered) const {
  const std::vector<std::uint8_t>* known = nullptr;
  if (slots_.plain && change == FetchChange{} && columns <= operand.dim) {
    const std::int32_t head = kv_head_of(p_, head_);
    const std::int64_t first = (std::int64_t{batch_} * operand.heads + head) * operand.seqlen;
    return {operand.values.data() + operand.row_offset(batch_, head, 0), operand.strides.seq, known,
            columns == operand.dim ? operand.norms.data() + first : nullptr};
  }
  const FetchRequest request{batch_,  head_,           false,      g_.tile.block_n,
                             columns, d_.mask.padding, view_loop_, g_.tiles_per_split};
  if (slots_.plain) {
    gathered = gather_all(c_, operand, change, request, slots_.position);
  } else {
    const auto own = std::make_shared<Gathered>();
    gather(c_, operand, change, request, slots_.position, *own);
    gathered = own;
  }
  if (!gathered->all_known) known = &gathered->known;
  return {gathered->values.data(), columns, known,
          gathered->norms.empty() ? nullptr : gathered->norms.data()};
}

double Evaluator::in_range(double x) const {
  return std::fabs(x) <= model_.op.largest || std::isnan(x) ? x : std::copysign(kInf, x);
}

double Evaluator::exp_in_range(double x) const { return in_range(std::exp(x)); }

// exp as the deviation has it in this place.
double Evaluator::exp_at(ExpPlace place, double x) const {
  const SoftmaxChange& change = d_.softmax;
  if ((change.exp_places & place) == 0) return exp_in_range(x);
  x *= change.exp_factor;
  if (change.exp == ExpKind::kRight) return exp_in_range(x);
  return x == -kInf ? 0 : in_range(approximate_exp(change.exp, change.exp_c, x));
}

double Evaluator::rescale_error(double change, double steps) const {
  const double u = model_.op.u, per_x = model_.declared.exp_ulp_per_x * 0x1p-24 + u;
  return steps * (model_.declared.exp_ulp * 0x1p-24 + 3 * u) + per_x * std::fabs(change);
}

// A part that has seen nothing (from = -inf) weighs nothing in any kernel that guards against
// exp(-inf - -inf).
double Evaluator::rescale(Rescale how, double from, double to, ExpPlace place) const {
  switch (how) {
    case Rescale::kRight:
      break;
    case Rescale::kMissing:
      return 1;
    case Rescale::kInverted:
      return from == -kInf ? 0 : exp_at(place, to - from);
    case Rescale::kZero:
      return 0;
  }
  return from == -kInf ? 0 : exp_at(place, from - to);
}

}  // namespace attn_diag::reference
