// The online softmax of one row: from tile to tile within each split.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/counterfactual/evaluator.h"

namespace attn_diag::reference {

void Evaluator::recurrence(RowState& state) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto tiles = static_cast<std::size_t>(tiles_);
  const auto dim = needs_pv_ ? static_cast<std::size_t>(dim_v_) : 0;
  state.running_m.resize(tiles);
  state.running_m_error.resize(tiles);
  state.running_l.resize(tiles);
  state.running_l_error.resize(tiles);
  state.running_o.resize(tiles * dim);
  state.running_o_error.resize(tiles * dim);
  const std::vector<double> nothing(dim, 0.0);
  for (std::size_t t = 0; t < tiles; ++t) {
    const bool first = t % static_cast<std::size_t>(g_.tiles_per_split) == 0;
    const double before = first ? -kInf : state.running_m[t - 1];
    const double m = std::max(before, state.m[t]);
    state.running_m[t] = m;
    state.running_m_error[t] =
        first ? state.m_error[t] : std::max(state.m_error[t], state.running_m_error[t - 1]);
    const double alpha_l = rescale(d_.recurrence.alpha_l, before, m);
    const double alpha_o = rescale(d_.recurrence.alpha_o, before, m);
    const double beta = rescale(Rescale::kRight, state.m[t], m);
    const double l = first ? 0 : state.running_l[t - 1];
    const double l_error = first ? 0 : state.running_l_error[t - 1];
    state.running_l[t] = in_range(alpha_l * l + beta * state.l[t]);
    state.running_l_error[t] = alpha_l * l_error + beta * state.l_error[t];
    const double* sum = first ? nothing.data() : state.running_o.data() + (t - 1) * dim;
    const double* error = first ? nothing.data() : state.running_o_error.data() + (t - 1) * dim;
    for (std::size_t d = 0; d < dim; ++d) {
      state.running_o[t * dim + d] =
          in_range(alpha_o * sum[d] + beta * state.partial_o[t * dim + d]);
      state.running_o_error[t * dim + d] =
          alpha_o * error[d] + beta * state.partial_o_error[t * dim + d];
    }
  }
}

}  // namespace attn_diag::reference
