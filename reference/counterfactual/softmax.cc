// m, P and l of every tile of one row, in the frame the geometry declares.
#include <algorithm>
#include <cmath>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/narrow.h"
#include "reference/infinity.h"
#include "reference/row_functions.h"

namespace attn_diag::reference {
namespace {

// Beyond this, exp_shifted leaves the range of fp64.
constexpr double kLargestExponent = 700;

// An exponent that may be off by more than kFirstOrder gives a weight of which nothing is known, but where even
// then it is below e^kNegligible of the largest.
constexpr double kFirstOrder = 0.5, kNegligible = -40;

}  // namespace

// P relative to `shift`; `most` is the largest of s.
void Evaluator::exp_of_shifted(const double* s, std::size_t n, double most, double shift,
                               double* p) const {
  const SoftmaxChange& change = d_.softmax;
  const bool right = (change.exp == ExpKind::kRight && change.exp_factor == 1) ||
                     (change.exp_places & kExpOfProbs) == 0;
  if (right && most - shift <= kLargestExponent) {
    exp_shifted(s, n, shift, p);
    return;
  }
  for (std::size_t j = 0; j < n; ++j) p[j] = exp_at(kExpOfProbs, s[j] - shift);
}

// m of every tile; what the state begins with is in before_.
void Evaluator::frames(const RowIndex& row, RowState& state) {
  const auto tiles = static_cast<std::size_t>(tiles_);
  state.own_m.resize(tiles);
  state.m.resize(tiles);
  state.m_error.resize(tiles);
  const bool keeps = d_.recurrence.skip_keeps_m;
  const RunningMax kind = d_.softmax.running_max;
  state.frame.resize(keeps ? tiles : 0);
  state.frame_known.clear();
  double running = before_.m, running_error = before_.m_error;
  for (std::size_t t = 0; t < tiles; ++t) {
    const KeyRange counted = state.counted[t];
    const auto n = static_cast<std::size_t>(counted.size());
    const double most = counted.empty() ? -kInf : largest(state.s.data() + counted.begin, n);
    const double error = most > -kInf ? largest(state.s_error.data() + counted.begin, n) : 0;
    state.own_m[t] = most;
    if (t > 0 && t % static_cast<std::size_t>(g_.tiles_per_split) == 0)
      running = -kInf, running_error = 0;
    const double before = running;
    // Where nothing was visited yet, nothing is recorded of what m began with.
    const double least = state.views[t].visited ? d_.softmax.m_floor : -kInf;
    running = std::isnan(most) ? kNan : std::max({running, most, least});
    if (kind == RunningMax::kFirstTile && before > -kInf) running = before;
    if (kind == RunningMax::kOwnTile && most > -kInf) running = most;
    running_error = std::max(running_error, error);
    round_both(d_.softmax.max_type, running, running_error);
    const bool in_loop = g_.frame == Frame::kRunning;
    state.m[t] = in_loop ? running : std::max(most, least);
    state.m_error[t] = in_loop ? running_error : error;
    if (!keeps) continue;
    state.frame[t] = state.m[t];
    if (!in_loop) continue;
    if (d_.recurrence.skip_old_probs && before > -kInf) state.frame[t] = before;
    const double rise = running - before, below = d_.recurrence.skip_below;
    // Rounding may decide either way.
    if (rise > 0 && std::fabs(rise - below) <= 2 * running_error)
      running_error = state.m_error[t] = kNothingKnown;
    if (rise <= below) state.m[t] = running = before;
  }
  if (d_.softmax.mixed.max && !lending_) mix_frames(row, state);
  if (!d_.softmax.max_row.is_own() && !lending_) take_frames_of(row, state);
}

void Evaluator::probs_of_tile(std::int32_t tile, double rescaling, RowState& state) {
  const auto t = static_cast<std::size_t>(tile);
  const SoftmaxChange& change = d_.softmax;
  const KeyRange slots = state.counted[t];
  const double m = state.frame.empty() ? state.m[t] : state.frame[t];
  state.l[t] = state.l_error[t] = 0;
  if (change.empty == EmptyRow::kNan && state.views[t].visited && m == -kInf) {
    const KeyRange all = state.views[t].all;
    std::fill(state.p.data() + all.begin, state.p.data() + all.end, kNan);
    state.counted[t] = all;
    state.l[t] = kNan;
    return;
  }
  if (slots.empty() || m == -kInf) return;
  const bool unmasked = change.l_counts_masked || change.o_counts_masked;
  if (state.own_m[t] == -kInf && !unmasked) return;
  const double u = model_.op.u;
  const auto n = static_cast<std::size_t>(slots.size());
  const double* s = (unmasked ? state.unmasked_s : state.s).data() + slots.begin;
  const double* s_error = state.s_error.data() + slots.begin;
  double* p = state.p.data() + slots.begin;
  double* l_weight = state.l_weight.data() + slots.begin;
  double* o_weight = state.o_weight.data() + slots.begin;
  double most = unmasked ? largest(s, n) : state.own_m[t];
  if (change.max_lanes != LaneMap::kNone && !change.max_lanes_alpha) {
    s = shift_lanes(tile, m, state);
    most = m;
  }
  exp_of_shifted(s, n, most, m, p);

  const double per_x = model_.declared.exp_ulp_per_x * 0x1p-24 + u;
  // Where P keeps the frame of before, the two frames do not cancel.
  const RecurrenceChange& loop = d_.recurrence;
  const bool old_frame = loop.skip_old_probs || (loop.skip_below > 0 && loop.skip_beta);
  const double m_error = (old_frame ? 2 : 1) * state.m_error[t];
  const double l_base = m_error + model_.declared.exp_ulp * 0x1p-24 + rescaling;
  const double o_base = model_.probs.u + gamma(static_cast<double>(n), model_.dot_u);
  // Below half the smallest subnormal number a kernel has 0.
  for (std::size_t j = 0; j < n; ++j) p[j] = p[j] < model_.op.tiny ? 0 : p[j];
  const double slope = exp_slope();
  const double p_tiny = model_.probs.tiny, least = 6 * model_.declared.exp_flush;
  for (std::size_t j = 0; j < n; ++j) {
    const bool counts = s[j] > -kInf;
    const double e = counts ? slope * (s_error[j] + l_base + per_x * std::fabs(m - s[j])) : 0.0;
    l_weight[j] = counts && p[j] < least ? least : p[j] * e;
    o_weight[j] = counts ? l_weight[j] + p[j] * o_base + p_tiny : 0.0;
    if (e > kFirstOrder && s[j] - m + e > kNegligible) l_weight[j] = o_weight[j] = kNothingKnown;
  }
  // What makes m has S - m = 0, however S is rounded.
  const double own = certain_m(tile, state);
  for (std::size_t j = 0; j < n; ++j)
    if (s[j] == own)
      o_weight[j] = p[j] * (model_.declared.exp_ulp * 0x1p-24 + rescaling + o_base) + p_tiny;
  if (change.probs != Narrow::kNone) {
    round_probs(tile, slope * rescaling, state);
  } else if (unmasked) {
    // Each of l and P.V sees the mask or not.
    const double* masked = state.s.data() + slots.begin;
    double* weights = state.weights.data() + slots.begin;
    for (std::size_t j = 0; j < n; ++j) {
      const bool hidden = masked[j] == -kInf;
      weights[j] = hidden && !change.o_counts_masked ? 0 : p[j];
      if (hidden && !change.o_counts_masked) o_weight[j] = 0;
      if (hidden && !change.l_counts_masked) p[j] = l_weight[j] = 0;
    }
  }
  if (change.flush_below > 0) flush_probs(slots, state);
  const double l = sum(p, n), count = static_cast<double>(n);
  state.l[t] = in_range(l);
  state.l_error[t] = sum(l_weight, n) + l * gamma(count, u);
  if (model_.declared.l_from_rounded_probs) state.l_error[t] += l * model_.probs.u + count * p_tiny;
}

// P as a narrow type holds it. Rescaling comes after that.
void Evaluator::round_probs(std::int32_t tile, double rescaling, RowState& state) const {
  const auto t = static_cast<std::size_t>(tile);
  const KeyRange slots = state.counted[t];
  const bool one_max = has_one_max(tile, state);
  const double m = state.m[t];
  for (auto j = static_cast<std::size_t>(slots.begin); j < static_cast<std::size_t>(slots.end);
       ++j) {
    const double p = state.p[j];
    // What makes m has S - m = 0, however S is rounded.
    const bool is_one = one_max && state.s[j] == m;
    double narrow = p, error = is_one ? 0 : std::max(0.0, state.l_weight[j] - p * rescaling);
    round_both(d_.softmax.probs, narrow, error);
    error += std::fabs(narrow) * rescaling;
    state.weights[j] = narrow;
    state.o_weight[j] = error + std::fabs(narrow) * gamma(slots.size(), model_.dot_u);
    if (!d_.softmax.sum_of_narrow) continue;
    state.p[j] = narrow;
    state.l_weight[j] = error;
  }
}

// Whether m of this tile is the score of one of its keys, and no other can be it.
bool Evaluator::has_one_max(std::int32_t tile, const RowState& state) const {
  const auto t = static_cast<std::size_t>(tile);
  const double m = state.m[t];
  if (!state.frame.empty() || d_.softmax.max_type != Narrow::kNone) return false;
  const bool continues = g_.frame == Frame::kRunning && tile % g_.tiles_per_split != 0;
  const double least = m - state.m_error[t];
  if (continues && state.m[t - 1] + state.m_error[t - 1] >= least) return false;
  const KeyRange slots = state.counted[t];
  int near = 0;
  for (auto j = static_cast<std::size_t>(slots.begin); j < static_cast<std::size_t>(slots.end); ++j)
    near += state.s[j] + state.s_error[j] >= least;
  return near == 1 && state.own_m[t] == m;
}

// Where sums are rounded: m of the tile's split, if it is in this tile's frame and no other key can have it;
// else NaN. The merge takes account of the error of m by itself.
double Evaluator::certain_m(std::int32_t tile, const RowState& state) const {
  if (!rounds_sums() || d_.softmax != SoftmaxChange{} || g_.frame != Frame::kRunning) return kNan;
  const KeyRange tiles = tiles_of_split(p_, g_, tile / g_.tiles_per_split);
  const double m = state.m[static_cast<std::size_t>(tiles.end - 1)];
  if (state.m[static_cast<std::size_t>(tile)] != m || before_.m > -kInf) return kNan;
  const auto begin = static_cast<std::size_t>(slots_.of_tile(tiles.begin).begin);
  const auto end = static_cast<std::size_t>(slots_.of_tile(tiles.end - 1).end);
  double error = 0;
  int near = 0;
  for (std::size_t i = begin; i < end; ++i)
    if (state.s[i] == m) error = state.s_error[i];
  for (std::size_t i = begin; i < end; ++i) near += state.s[i] + state.s_error[i] >= m - error;
  return near == 1 ? m : kNan;
}

// What is flushed to 0, or may be.
void Evaluator::flush_probs(KeyRange slots, RowState& state) const {
  for (auto j = static_cast<std::size_t>(slots.begin); j < static_cast<std::size_t>(slots.end);
       ++j) {
    const double p = state.p[j], error = state.l_weight[j];
    state.weights[j] = p;
    if (p == 0 || p - error >= d_.softmax.flush_below) continue;
    const bool certain = p + error < d_.softmax.flush_below;
    state.weights[j] = 0;
    state.o_weight[j] = certain ? 0 : p + error;
    if (!d_.softmax.flush_l) continue;
    state.p[j] = 0;
    state.l_weight[j] = certain ? 0 : p + error;
  }
}

// The relative change of exp that a change of its argument by 1 makes, at most: of 2^floor(y) (1 + frac(y))
// log2 e.
double Evaluator::exp_slope() const {
  const SoftmaxChange& change = d_.softmax;
  const double slope = change.exp == ExpKind::kRight ? 1 : change.exp == ExpKind::kLimit ? 2 : 1.45;
  return std::max(1.0, std::fabs(change.exp_factor)) * slope;
}

// l of some tiles, which all lanes have, is summed over them again.
void Evaluator::multiply_sums(RowState& state) const {
  const RecurrenceChange& change = d_.recurrence;
  const auto tiles = static_cast<std::size_t>(tiles_);
  const auto per_split = static_cast<std::size_t>(g_.tiles_per_split);
  for (std::size_t first = 0; first < tiles; first += per_split) {
    const std::size_t end = std::min(first + per_split, tiles);
    const std::int32_t last = last_visited(first, end, state);
    std::int32_t visits = 0;
    for (std::size_t t = first; t < end; ++t) {
      if (!state.views[t].visited) continue;
      if (!change.tile_l_tiles.hold(visits++, static_cast<std::int32_t>(t) == last)) continue;
      state.l[t] = in_range(change.tile_l_times * state.l[t]);
      state.l_error[t] *= std::fabs(change.tile_l_times);
    }
  }
}

void Evaluator::softmax(const RowIndex& row, RowState& state) {
  const auto tiles = static_cast<std::size_t>(tiles_);
  const std::size_t n = state.s.size();
  state.p.assign(n, 0.0);
  state.l_weight.assign(n, 0.0);
  state.o_weight.assign(n, 0.0);
  const SoftmaxChange& change = d_.softmax;
  const bool own_weights = change.probs != Narrow::kNone || change.l_counts_masked ||
                           change.o_counts_masked || change.flush_below > 0;
  state.weights.assign(own_weights ? n : 0, 0.0);
  state.l.resize(tiles);
  state.l_error.resize(tiles);
  frames(row, state);
  if (change.max_lanes != LaneMap::kNone) lane_frames(state);

  // Rescaling from tile to tile: every factor and sum rounds, and the exponents of all factors add up
  // to how far the maximum rises at most.
  double highest = -kInf, lowest = kInf;
  for (const double m : state.m) {
    highest = std::max(highest, m);
    if (m > -kInf) lowest = std::min(lowest, m);
  }
  const double steps = tiles_ + g_.num_splits - 1;
  double rescaling = steps > 1 && lowest <= highest ? rescale_error(highest - lowest, steps) : 0;
  // Where exponentials are not of one kind, or no exponentials, the frames in between do not cancel.
  const double odd = change.exp != ExpKind::kRight ? 0.9 : 2 * std::fabs(change.exp_factor - 1);
  if (odd > 0 && steps > 1)
    rescaling += steps * odd * *std::max_element(state.m_error.begin(), state.m_error.end());
  for (std::int32_t t = 0; t < tiles_; ++t) probs_of_tile(t, rescaling, state);

  state.softmax_known.assign(tiles, 1);
  if (!state.s_known.empty() || !state.frame_known.empty())
    for (std::size_t t = 0; t < tiles; ++t) {
      if (!state.frame_known.empty()) state.softmax_known[t] = state.frame_known[t];
      for (std::int32_t i = state.counted[t].begin; i < state.counted[t].end; ++i)
        if (!state.s_known.empty() && state.s_known[static_cast<std::size_t>(i)] == 0 &&
            state.s[static_cast<std::size_t>(i)] > -kInf)
          state.softmax_known[t] = 0;
      const bool continues = g_.frame == Frame::kRunning && t > 0 &&
                             t % static_cast<std::size_t>(g_.tiles_per_split) != 0;
      if (continues && state.softmax_known[t - 1] == 0) state.softmax_known[t] = 0;
    }
  if (change.lanes != LaneMap::kNone) weigh_lanes(state);
  if (d_.finish.lane_sum_in_loop) sum_in_lane_zero(state);
  if (change.mixed.sum && !lending_) mix_sums(row, state);
  if (d_.recurrence.tile_l_times != 1) multiply_sums(state);
}

}  // namespace attn_diag::reference
