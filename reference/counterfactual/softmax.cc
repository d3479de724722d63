// m, P and l of every tile of one row, in the frame the geometry declares.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/counterfactual/evaluator.h"
#include "reference/row_functions.h"

namespace attn_diag::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Beyond this, exp_shifted leaves the range of fp64.
constexpr double kLargestExponent = 700;

void exp_of_shifted(const double* s, std::size_t n, double most, double shift, double* p) {
  if (most - shift <= kLargestExponent) {
    exp_shifted(s, n, shift, p);
    return;
  }
  for (std::size_t j = 0; j < n; ++j) p[j] = std::exp(s[j] - shift);
}

}  // namespace

void Evaluator::softmax(const Row& row, RowState& state) {
  const auto tiles = static_cast<std::size_t>(tiles_);
  state.p.assign(state.s.size(), 0.0);
  state.l_weight.assign(state.s.size(), 0.0);
  state.o_weight.assign(state.s.size(), 0.0);
  state.m.resize(tiles);
  state.m_error.resize(tiles);
  state.l.resize(tiles);
  state.l_error.resize(tiles);
  const double u = model_.op.u;
  const double rho0 = model_.declared.exp_ulp * 0x1p-24;
  const double per_x = model_.declared.exp_ulp_per_x * 0x1p-24 + u;
  const double up = model_.probs.u, p_tiny = model_.probs.tiny;

  // Rescaling from tile to tile: every factor and sum rounds, and the exponents of all factors add up
  // to how far the maximum rises at most.
  double highest = -kInf, lowest = kInf;
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const KeyRange slots = slots_of_tile(t);
    const double most =
        largest(state.s.data() + slots.begin, static_cast<std::size_t>(slots.size()));
    state.m[static_cast<std::size_t>(t)] = most;
    highest = std::max(highest, most);
    if (most > -kInf) lowest = std::min(lowest, most);
  }
  const double steps = tiles_ + g_.num_splits - 1;
  const double rescaling =
      steps > 1 && lowest <= highest ? steps * (rho0 + 3 * u) + per_x * (highest - lowest) : 0;

  double running = -kInf, running_error = 0;
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const KeyRange slots = slots_of_tile(t);
    const auto n = static_cast<std::size_t>(slots.size());
    const double* s = state.s.data() + slots.begin;
    const double* s_error = state.s_error.data() + slots.begin;
    double* p = state.p.data() + slots.begin;
    if (t % g_.tiles_per_split == 0) running = -kInf, running_error = 0;
    const double most = state.m[at];
    double m_error = most > -kInf ? largest(s_error, n) : 0;
    running_error = std::max(running_error, m_error);
    running = std::max(running, most);
    if (g_.frame == Frame::kRunning) {
      state.m[at] = running;
      m_error = running_error;
    }
    const double m = state.m[at];
    state.m_error[at] = m_error;
    state.l[at] = state.l_error[at] = 0;
    if (most == -kInf) continue;
    exp_of_shifted(s, n, most, m, p);
    const double l_base = m_error + rho0 + rescaling;
    const double o_base = up + gamma(static_cast<double>(n), model_.dot_u);
    double l = 0, l_error = 0;
    double* l_weight = state.l_weight.data() + slots.begin;
    double* o_weight = state.o_weight.data() + slots.begin;
    for (std::size_t j = 0; j < n; ++j) {
      const bool counts = p[j] > 0;
      const double e = counts ? s_error[j] + l_base + per_x * (m - s[j]) : 0.0;
      l_weight[j] = p[j] * e;
      o_weight[j] = counts ? p[j] * (e + o_base) + p_tiny : 0.0;
    }
    l = sum(p, n);
    l_error = sum(l_weight, n);
    state.l[at] = l;
    state.l_error[at] = l_error + l * gamma(static_cast<double>(n), u) +
                        (model_.declared.l_from_rounded_probs ? up * l : 0);
  }
  (void)row;
}

}  // namespace attn_diag::reference
