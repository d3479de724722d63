// partial_o = P V of every tile of one row.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/fragment.h"
#include "reference/counterfactual/weighted_rows.h"

namespace attn_diag::reference {

void Evaluator::product(const Row& row, RowState& state) {
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
  const std::vector<double>& weights = state.weights.empty() ? state.p : state.weights;
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const KeyRange slots = state.counted[static_cast<std::size_t>(t)];
    if (slots.empty()) continue;
    double* out = state.partial_o.data() + t * dim;
    double* error = state.partial_o_error.data() + t * dim;
    add_weighted_rows(weights.data() + slots.begin, state.o_weight.data() + slots.begin,
                      v_.data + slots.begin * v_.stride, v_.stride, slots.size(), dim_v_, out,
                      error);
    if (v_.known != nullptr)
      for (std::int32_t i = slots.begin; i < slots.end; ++i)
        if ((*v_.known)[static_cast<std::size_t>(i)] == 0 &&
            weights[static_cast<std::size_t>(i)] != 0)
          state.product_known[static_cast<std::size_t>(t)] = 0;
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
