// partial_o = P V of every tile of one row.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/fragment.h"
#include "reference/counterfactual/narrow.h"
#include "reference/counterfactual/weighted_rows.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
// Every visited tile of a split gets the P of the one before it, and the first one its own.
void Evaluator::delay_probs(RowState& state) const {
  if (state.weights.empty()) state.weights = state.p;
  for (std::int32_t t = tiles_ - 1, later = -1; t >= 0; --t) {
    if (!state.views[static_cast<std::size_t>(t)].visited) continue;
    if (later >= 0 && later / g_.tiles_per_split == t / g_.tiles_per_split) {
      const KeyRange from = slots_.of_tile(t), to = slots_.of_tile(later);
      const std::int32_t n = std::min(from.size(), to.size());
      const auto move = [&](std::vector<double>& values) {
        std::fill(values.begin() + to.begin, values.begin() + to.end, 0.0);
        std::copy_n(values.begin() + from.begin, n, values.begin() + to.begin);
      };
      move(state.weights);
      move(state.o_weight);
      state.counted[static_cast<std::size_t>(later)] = {to.begin, to.begin + n};
      state.product_known[static_cast<std::size_t>(later)] &=
          state.softmax_known[static_cast<std::size_t>(t)];
    }
    later = t;
  }
}

// In another frame than its own, P may be more than its type holds.
void Evaluator::overflow_probs(RowState& state) const {
  const double most = model_.probs.largest;
  if (d_.softmax.max_row.is_own()) return;
  if (state.weights.empty()) state.weights = state.p;
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const KeyRange slots = state.counted[static_cast<std::size_t>(t)];
    for (auto i = static_cast<std::size_t>(slots.begin); i < static_cast<std::size_t>(slots.end);
         ++i) {
      double& weight = state.weights[i];
      if (weight + state.o_weight[i] <= most) continue;
      if (weight - state.o_weight[i] <= most) state.product_known[static_cast<std::size_t>(t)] = 0;
      weight = kInf;
    }
  }
}

// Where the accumulator of P V is not cleared from tile to tile.
void Evaluator::accumulate_product(std::int32_t tile, RowState& state) const {
  const auto t = static_cast<std::size_t>(tile), dim = static_cast<std::size_t>(dim_v_);
  const bool continues = tile % g_.tiles_per_split != 0;
  if (!continues || !state.views[t].visited || !state.views[t - 1].visited) return;
  for (std::size_t d = 0; d < dim; ++d) {
    state.partial_o[t * dim + d] += state.partial_o[(t - 1) * dim + d];
    state.partial_o_error[t * dim + d] += state.partial_o_error[(t - 1) * dim + d];
  }
  state.product_known[t] &= state.product_known[t - 1];
}

// A product that is rounded after every rounded_every keys, as an accumulator of that type is.
void Evaluator::add_narrow(std::int32_t tile, const std::vector<double>& weights,
                           RowState& state) const {
  const KeyRange slots = state.counted[static_cast<std::size_t>(tile)];
  const std::int32_t first = slots_.of_tile(tile).begin, every = d_.pv.rounded_every;
  double* out = state.partial_o.data() + static_cast<std::int64_t>(tile) * dim_v_;
  double* error = state.partial_o_error.data() + static_cast<std::int64_t>(tile) * dim_v_;
  for (std::int32_t i = slots.begin; i < slots.end;) {
    const std::int32_t end = std::min(slots.end, first + ((i - first) / every + 1) * every);
    add_weighted_rows(weights.data() + i, state.o_weight.data() + i, v_.data + i * v_.stride,
                      v_.stride, end - i, dim_v_, out, error);
    for (std::int32_t d = 0; d < dim_v_; ++d) round_both(d_.pv.type, out[d], error[d]);
    i = end;
  }
}

// Of more splits than tiles, as docs/bounds.md has them: parts of the tile are stored, and added in the merge.
void Evaluator::add_errors_of_parts(const std::vector<double>& weights, KeyRange slots,
                                    double* error) const {
  const double parts = g_.num_splits, u = model_.partial.u + gamma(parts, model_.op.u);
  for (std::int32_t d = 0; d < dim_v_; ++d) error[d] += 2 * parts * model_.partial.tiny;
  for (std::int32_t i = slots.begin; i < slots.end; ++i) {
    const double weight = u * std::fabs(weights[static_cast<std::size_t>(i)]);
    if (weight == 0) continue;
    for (std::int32_t d = 0; d < dim_v_; ++d)
      error[d] += weight * std::fabs(v_.data[i * v_.stride + d]);
  }
}

void Evaluator::product(const RowIndex& row, RowState& state) {
  const std::int64_t dim = dim_v_;
  state.partial_o.assign(static_cast<std::size_t>(tiles_ * dim), 0.0);
  state.partial_o_error.assign(static_cast<std::size_t>(tiles_ * dim), 0.0);
  state.product_known = state.softmax_known;
  if (c_.has(Tensor::kP)) {
    const float* p = c_.given_row(Tensor::kP, row);
    state.weights = state.p;
    for (std::size_t i = 0; i < state.p.size(); ++i) {
      const std::int32_t home = slots_.home[i];
      if (home < 0) continue;
      state.weights[i] = p[home];
      const double n = g_.tile.block_n;
      state.o_weight[i] = std::fabs(state.weights[i]) * (model_.probs.u + gamma(n, model_.dot_u));
    }
    for (std::int32_t t = 0; t < tiles_; ++t)
      state.counted[static_cast<std::size_t>(t)] = slots_.of_tile(t);
  }
  if (d_.pv.probs != FragmentMap::kRight && !lending_) permute_probs(row, state);
  if (!d_.pv.row.is_own() && !lending_) take_probs_of(row, state);
  if (d_.pv.probs_late && !lending_) delay_probs(state);
  overflow_probs(state);
  const std::vector<double>& weights = state.weights.empty() ? state.p : state.weights;
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const KeyRange slots = state.counted[static_cast<std::size_t>(t)];
    if (slots.empty() && !d_.pv.accumulates) continue;
    double* out = state.partial_o.data() + t * dim;
    double* error = state.partial_o_error.data() + t * dim;
    if (d_.pv.rounded_every > 0)
      add_narrow(t, weights, state);
    else
      add_weighted_rows(weights.data() + slots.begin, state.o_weight.data() + slots.begin,
                        v_.data + slots.begin * v_.stride, v_.stride, slots.size(), dim_v_, out,
                        error);
    if (cuts_within_tiles(p_, g_)) add_errors_of_parts(weights, slots, error);
    if (v_.known != nullptr)
      for (std::int32_t i = slots.begin; i < slots.end; ++i)
        if ((*v_.known)[static_cast<std::size_t>(i)] == 0 &&
            weights[static_cast<std::size_t>(i)] != 0)
          state.product_known[static_cast<std::size_t>(t)] = 0;
    const bool rounds_once = d_.pv.type != Narrow::kNone && d_.pv.rounded_every == 0;
    for (std::int32_t d = 0; d < dim_v_ && rounds_once; ++d)
      round_both(d_.pv.type, out[d], error[d]);
    if (d_.pv.accumulates) accumulate_product(t, state);
    if (d_.pv.factor == 1 && d_.pv.staircase == 0) continue;
    for (std::int32_t d = 0; d < dim_v_; ++d) {
      double times = d_.pv.factor;
      if (d_.pv.staircase > 0) times *= std::min(d / kFragmentSize + 1, d_.pv.staircase);
      out[d] = in_range(times * out[d]);
      error[d] *= std::fabs(times);
    }
  }
}

}  // namespace attn_diag::reference
