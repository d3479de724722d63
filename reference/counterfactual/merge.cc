// The merge of the splits of one row, and its output.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/counterfactual/evaluator.h"

namespace attn_diag::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

void Evaluator::merge(RowState& state) {
  const auto splits = static_cast<std::size_t>(g_.num_splits);
  const auto dim = needs_pv_ ? static_cast<std::size_t>(dim_v_) : 0;
  state.merged_l.resize(splits);
  state.merged_l_error.resize(splits);
  state.merged_o.resize(splits * dim);
  state.merged_o_error.resize(splits * dim);
  state.o.assign(dim, 0.0);
  state.o_error.assign(dim, 0.0);
  state.total_m = -kInf;
  state.total_m_error = 0;
  for (std::int32_t n = 0; n < g_.num_splits; ++n) {
    const KeyRange tiles = tiles_of_split(p_, g_, n);
    if (tiles.empty()) continue;
    const auto last = static_cast<std::size_t>(tiles.end - 1);
    state.total_m = std::max(state.total_m, state.running_m[last]);
    state.total_m_error = std::max(state.total_m_error, state.running_m_error[last]);
  }
  double l = 0, l_error = 0;
  const Rounding& store = model_.partial;
  for (std::int32_t n = 0; n < g_.num_splits; ++n) {
    const KeyRange tiles = tiles_of_split(p_, g_, n);
    if (!tiles.empty()) {
      const auto last = static_cast<std::size_t>(tiles.end - 1);
      double w = rescale(Rescale::kRight, state.running_m[last], state.total_m);
      if (n == d_.combine.scaled_split) w *= d_.combine.factor;
      l += w * state.running_l[last];
      l_error += std::fabs(w) * state.running_l_error[last];
      for (std::size_t d = 0; d < dim; ++d) {
        const double part = state.running_o[last * dim + d];
        state.o[d] += w * part;
        state.o_error[d] += std::fabs(w) * (state.running_o_error[last * dim + d] +
                                            store.u * std::fabs(part) + store.tiny);
      }
    }
    const auto at = static_cast<std::size_t>(n);
    state.merged_l[at] = l;
    state.merged_l_error[at] = l_error;
    std::copy_n(state.o.data(), dim, state.merged_o.data() + at * dim);
    std::copy_n(state.o_error.data(), dim, state.merged_o_error.data() + at * dim);
  }
  state.total_l = l;
  state.total_l_error = l_error;
}

void Evaluator::finish(RowState& state) {
  const double u = model_.op.u;
  const double l = state.total_l, l_error = state.total_l_error;
  if (state.total_m == -kInf) {
    state.lse = -kInf;
    state.lse_error = 0;
    std::fill(state.o.begin(), state.o.end(), 0.0);
    std::fill(state.o_error.begin(), state.o_error.end(), 0.0);
    return;
  }
  const double log_l = std::log(l);
  state.lse = state.total_m + log_l;
  state.lse_error = state.total_m_error + l_error / l + model_.declared.log_abs +
                    model_.declared.log_ulp * 0x1p-24 * std::fabs(log_l) + u * std::fabs(state.lse);
  const double factor = d_.finish.gain * std::pow(l, -d_.finish.l_power);
  const double from_l = std::fabs(d_.finish.l_power) * l_error / l;
  const Rounding& store = model_.output;
  for (std::size_t d = 0; d < state.o.size(); ++d) {
    state.o[d] *= factor;
    const double size = std::fabs(state.o[d]);
    double error = state.o_error[d] * std::fabs(factor) + size * (from_l + 3 * u) + model_.op.tiny;
    error += store.u * (size + error) + store.tiny;
    state.o_error[d] = error;
  }
}

}  // namespace attn_diag::reference
