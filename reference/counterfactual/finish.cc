// o and lse of one row from its merged sums.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/lane_map.h"
#include "reference/counterfactual/narrow.h"
#include "reference/counterfactual/tile_view.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
namespace {

// Whether every number of one type is one of the other.
bool fits(Narrow type, DType into) {
  switch (type) {
    case Narrow::kFp16:
    case Narrow::kFp16Cut:
    case Narrow::kFp16Saturated:
      return into != DType::kBf16;
    case Narrow::kBf16:
    case Narrow::kBf16Cut:
      return into != DType::kFp16;
    case Narrow::kTf32:
    case Narrow::kTf32Cut:
      return into == DType::kFp32;
    case Narrow::kFp8E4m3:
    case Narrow::kFp8E5m2:
      return true;
    case Narrow::kNone:
      break;
  }
  return false;
}

double empty_lse(LseForm form) {
  switch (form) {
    case LseForm::kEmptyInfinite:
      return kInf;
    case LseForm::kEmptyZero:
      return 0;
    case LseForm::kEmptyNan:
      return kNan;
    case LseForm::kEmptyLowest:
      return -std::numeric_limits<float>::max();
    default:
      return -kInf;
  }
}

}  // namespace

double Evaluator::lse_of(double m, double l) const {
  const double scale = p_.softmax_scale, log_l = std::log(l);
  switch (d_.finish.lse) {
    case LseForm::kRight:
    case LseForm::kEmptyInfinite:
    case LseForm::kEmptyZero:
    case LseForm::kEmptyNan:
    case LseForm::kEmptyLowest:
      break;
    case LseForm::kBase2:
      return (m + log_l) * std::numbers::log2e;
    case LseForm::kTimesLn2:
      return (m + log_l) * std::numbers::ln2;
    case LseForm::kWithoutMax:
      return log_l;
    case LseForm::kWithoutLog:
      return m;
    case LseForm::kLogOfBase2:
      return m + log_l * std::numbers::log2e;
    case LseForm::kSum:
      return m + l;
    case LseForm::kMaxUnscaled:
      return m / scale + log_l;
    case LseForm::kMaxTwice:
      return m * scale + log_l;
    case LseForm::kNegated:
      return log_l - m;
    case LseForm::kMaxOfBase2:
      return m * std::numbers::log2e + log_l;
    case LseForm::kMaxTimesLn2:
      return m * std::numbers::ln2 + log_l;
    case LseForm::kLogTimesLn2:
      return m + std::numbers::ln2 * log_l;
  }
  return m + log_l;
}

// A row that saw no key.
void Evaluator::finish_empty(const RowIndex& row, RowState& state) {
  state.lse = empty_lse(d_.finish.lse);
  state.lse_error = 0;
  std::fill(state.o.begin(), state.o.end(), 0.0);
  std::fill(state.o_error.begin(), state.o_error.end(), 0.0);
  const EmptyRow how = d_.softmax.empty;
  if (how == EmptyRow::kZero) return;
  // An lse of masked scores that are not -inf is some large negative number; NaN comes from NaN.
  const bool divided = how == EmptyRow::kNanOfRow || how == EmptyRow::kNanOfSplit;
  state.lse_known = how == EmptyRow::kNan || divided;
  if (how == EmptyRow::kNan) state.lse = kNan;
  const KeyRange visited = visited_tiles(p_, g_, d_.mask, row.query);
  if (how == EmptyRow::kNan || divided || visited.empty()) {
    std::fill(state.o.begin(), state.o.end(), kNan);
    return;
  }
  const std::int32_t first = visited.begin * g_.tile.block_n;
  const std::int32_t end = std::min(visited.end * g_.tile.block_n, p_.seqlen_k);
  const double n = how == EmptyRow::kMean ? end - first : visited.size() * g_.tile.block_n;
  for (std::size_t d = 0; d < state.o.size(); ++d) {
    double sum = 0, size = 0;
    for (std::int32_t j = first; j < end; ++j) {
      const double v = v_.data[j * v_.stride + static_cast<std::int64_t>(d)];
      sum += v;
      size += std::fabs(v);
    }
    state.o[d] = sum / n;
    state.o_error[d] = size / n * (gamma(n, model_.dot_u) + 3 * model_.op.u) +
                       model_.output.u * std::fabs(sum / n) + model_.output.tiny;
  }
}

void Evaluator::finish(const RowIndex& row, RowState& state) {
  const FinishChange& change = d_.finish;
  const double u = model_.op.u;
  if (state.total_m == -kInf) return finish_empty(row, state);
  double l = change.l_factor * state.total_l + change.l_added;
  double l_error = std::fabs(change.l_factor) * state.total_l_error;
  std::vector<double> lanes, lanes_error;
  if (change.lanes_of_splits) {
    lanes = sums_of_splits(state.split_l);
    lanes_error = sums_of_splits(state.split_l_error);
  } else if (change.lane_sum != LaneSum::kRight && !g_.has_split_merge) {
    lanes = lane_sums(state);
  }
  double lse_m = state.lse_m, lse_l_error = l_error;
  double lse_l = change.l_factor * state.lse_l + change.l_added;
  if (change.lse_of_lane && !lanes.empty()) lse_l = lanes.front();
  if (!change.l_row.is_own() && !lending_) {
    const std::int32_t query = chosen_query(change.l_row, row.query);
    if (query < 0) {
      state.o_known = false;
      if (change.l_row_lse || change.m_row_lse) state.lse_known = false;
    } else {
      const RowState& other = lent({row.batch, row.head, query});
      l = other.total_l;
      l_error = other.total_l_error;
      if (change.l_row_lse) {
        lse_l = l;
        lse_l_error = l_error;
      }
      if (change.m_row_lse) lse_m = other.total_m;
      if (change.l_row_lse || change.m_row_lse)
        state.total_m_error = std::max(state.total_m_error, other.total_m_error);
    }
  }
  state.lse = lse_of(lse_m, lse_l);
  const double log_l = std::log(std::fabs(lse_l));
  const double lse_size = std::fabs(lse_m) + std::fabs(log_l) + std::fabs(state.lse);
  const double slope =
      change.lse == LseForm::kMaxUnscaled ? 1 / std::fabs(double{p_.softmax_scale}) : 1.5;
  const double grows = change.lse == LseForm::kSum ? lse_l_error : 0;
  state.lse_error = (change.lse == LseForm::kRight ? 1 : slope) *
                        (state.total_m_error + lse_l_error / std::fabs(lse_l)) +
                    model_.declared.log_abs + grows +
                    model_.declared.log_ulp * 0x1p-24 * std::fabs(log_l) +
                    u * (change.lse == LseForm::kRight ? std::fabs(state.lse) : 2 * lse_size);
  if (!std::isfinite(state.lse)) state.lse_error = 0;
  round_both(change.lse_type, state.lse, state.lse_error);
  // Lanes that have an l of their own store the columns that they rescaled with it.
  const bool own_l = !state.lane_l.empty() && !g_.has_split_merge;
  const bool row_deviates = change.rows.holds(row.query % g_.tile.block_m);
  const Rounding& store = model_.output;
  for (std::size_t d = 0; d < state.o.size(); ++d) {
    double divisor = l, divisor_error = l_error;
    if (!lanes.empty()) {
      const std::size_t lane =
          lane_of(change.lane_map, static_cast<std::int32_t>(d), change.lanes, dim_v_);
      divisor = lanes[lane];
      if (!lanes_error.empty()) divisor_error = lanes_error[lane];
    }
    if (own_l) {
      divisor = state.lane_l[lane_of_column(d)];
      divisor_error = state.lane_l_error[lane_of_column(d)];
    }
    const bool deviates = row_deviates && change.columns.holds(static_cast<std::int64_t>(d));
    const double power = deviates ? change.l_power : 1;
    if (deviates) take_divisor(state, divisor, divisor_error);
    double factor = (deviates ? change.gain : 1) * std::pow(divisor, -power);
    // A kernel's guard against empty rows.
    if (divisor == 0 && (state.o[d] == 0 || change.lane_guard)) {
      state.o[d] = state.o_error[d] = 0;
      continue;
    }
    const double from_l = std::fabs(power) * divisor_error / std::fabs(divisor);
    double factor_error = std::fabs(factor) * (from_l + 3 * u);
    round_both(change.inverse_type, factor, factor_error);
    const double before = std::fabs(state.o[d]);
    state.o[d] *= factor;
    const double size = std::fabs(state.o[d]);
    double error = state.o_error[d] * std::fabs(factor) + before * factor_error + 3 * u * size +
                   model_.op.tiny;
    round_both(change.o_type, state.o[d], error);
    if (!fits(change.o_type, c_.arithmetic.output)) error += store.u * (size + error) + store.tiny;
    state.o_error[d] = error;
    if (!(size > store.largest)) continue;
    state.o[d] = std::copysign(kInf, state.o[d]);
    state.o_error[d] = 0;
  }
}

// What is taken for l. Its error comes from m and ln l, or from their exponential.
void Evaluator::take_divisor(const RowState& state, double& divisor, double& error) const {
  const double m = state.lse_m, log_l = std::log(divisor), relative = error / std::fabs(divisor);
  const double sum =
      state.total_m_error + relative + model_.declared.log_abs +
      (model_.declared.log_ulp * 0x1p-24 + 2 * model_.op.u) * (std::fabs(m) + std::fabs(log_l));
  const auto take = [&](double value, double its_error) {
    divisor = value;
    error = its_error;
  };
  switch (d_.finish.divisor) {
    case Divisor::kL:
      return;
    case Divisor::kLse:
      return take(m + log_l, sum);
    case Divisor::kExpOfLse:
      return take(exp_in_range(m + log_l), exp_in_range(m + log_l) * (sum + rescale_error(m)));
    case Divisor::kM:
      return take(m, state.total_m_error);
    case Divisor::kExpOfM:
      return take(exp_in_range(m), exp_in_range(m) * (sum + rescale_error(m)));
    case Divisor::kLogOfL:
      return take(log_l, sum);
    case Divisor::kLTimesM:
      return take(divisor * m, std::fabs(divisor) * state.total_m_error + error * std::fabs(m));
    case Divisor::kLPlusM:
      return take(divisor + m, error + state.total_m_error);
  }
}

}  // namespace attn_diag::reference
