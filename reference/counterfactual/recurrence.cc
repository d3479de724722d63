// The online softmax of one row: from tile to tile within each split.
#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/lane_maxima.h"
#include "reference/counterfactual/narrow.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
namespace {

void resize(std::size_t tiles, std::size_t dim, RowState& state) {
  state.running_m.resize(tiles);
  state.running_m_error.resize(tiles);
  state.running_l.resize(tiles);
  state.running_l_error.resize(tiles);
  state.running_o.resize(tiles * dim);
  state.running_o_error.resize(tiles * dim);
  state.running_known.assign(tiles, 1);
  state.running_o_known.assign(tiles, 1);
}

void record(const Running& now, std::size_t tile, RowState& state) {
  state.running_m[tile] = now.m;
  state.running_m_error[tile] = now.m_error;
  state.running_l[tile] = now.l;
  state.running_l_error[tile] = now.l_error;
  std::copy(now.o.begin(), now.o.end(), state.running_o.data() + tile * now.o.size());
  std::copy(now.o_error.begin(), now.o_error.end(),
            state.running_o_error.data() + tile * now.o.size());
  state.running_known[tile] = now.known ? 1 : 0;
  state.running_o_known[tile] = now.known && now.o_known ? 1 : 0;
}

}  // namespace

// Replaces what was computed by what the kernel recorded.
void Evaluator::take_given(const RowIndex& row, RowState& state) const {
  const auto take = [&](Tensor t, std::vector<double>& values, std::vector<double>& errors) {
    if (!c_.has(t)) return;
    const float* given = c_.given_row(t, row);
    std::copy_n(given, values.size(), values.data());
    std::fill(errors.begin(), errors.end(), 0.0);
  };
  take(Tensor::kM, state.m, state.m_error);
  take(Tensor::kL, state.l, state.l_error);
  if (needs_pv_ && !lending_) take(Tensor::kPartialO, state.partial_o, state.partial_o_error);
}

// The state before the first tile where that is not nothing; its frame, or that of the first tile with a key,
// rises up to the highest of the row.
void Evaluator::begin_with_l(const RowState& state, Running& now) const {
  const double l = d_.recurrence.first_l;
  if (l == 0) return;
  const double highest = *std::max_element(state.m.begin(), state.m.end());
  now.m = d_.softmax.m_floor;
  now.l = l;
  double lowest = now.m == -kInf ? highest : now.m;
  for (const double m : state.m)
    if (now.m == -kInf && m > -kInf) lowest = std::min(lowest, m);
  const double rise = lowest > -kInf ? std::max(0.0, highest - lowest) : 0;
  now.l_error = l * rescale_error(rise, tiles_ + g_.num_splits);
}

// The online softmax of one split, as far as it has come.
struct Evaluator::Loop {
  Running now;
  double other_m = 0;        // the running max of the row whose alpha is used
  std::int32_t last = -1;    // the last tile that is visited
  bool row_deviates = true;  // under a bug of alpha in some rows
  std::int32_t visits = 0;
  LaneScales lanes;
  double last_alpha_l = 0, last_alpha_o = 0;  // of the visited tile before
};

// One KV tile.
void Evaluator::step(std::size_t t, const Others& others, RowState& state, Loop& loop) {
  const RecurrenceChange& change = d_.recurrence;
  const std::size_t dim = loop.now.o.size();
  Running& now = loop.now;
  LaneScales& lanes = loop.lanes;
  const double before = loop.other_m, own_before = now.m, error_before = now.m_error;
  double frame = std::isnan(state.m[t]) ? state.m[t] : std::max(now.m, state.m[t]);
  if (d_.softmax.running_max != RunningMax::kRight && state.m[t] > -kInf) frame = state.m[t];
  now.m = change.skip_keeps_m && frame - own_before <= change.skip_below ? own_before : frame;
  now.m_error = std::max(now.m_error, state.m_error[t]);
  loop.other_m = others.row == &state ? now.m : others.row->running_m[t];
  if (!state.views[t].visited && state.own_m[t] == -kInf) return;
  const bool is_last = static_cast<std::int32_t>(t) == loop.last;
  const std::int32_t number = change.tile_of_sequence ? static_cast<std::int32_t>(t) : loop.visits;
  const bool deviates = loop.row_deviates && change.alpha_tiles.hold(number, is_last);
  const bool in_tile_frame = change.frame_tiles.hold(loop.visits, is_last);
  const bool normalises = change.normalised_tiles.hold(loop.visits, is_last);
  const bool first = loop.visits++ == 0;
  const auto alpha_of = [&](Rescale how, bool of_other, double power) {
    if (!deviates) how = Rescale::kRight;
    const double from = of_other ? before : own_before, to = of_other ? loop.other_m : now.m;
    if (power == 1 || how != Rescale::kRight) return rescale(how, from, to);
    return from == -kInf ? 0 : exp_in_range(power * (from - to));
  };
  double alpha_l = alpha_of(change.alpha_l, change.alpha_row_l, change.alpha_power_l);
  double alpha_o = alpha_of(change.alpha_o, change.alpha_row_o, change.alpha_power_o);
  std::swap(alpha_l, change.alpha_late_l ? loop.last_alpha_l : alpha_l);
  std::swap(alpha_o, change.alpha_late_o ? loop.last_alpha_o : alpha_o);
  if (first) loop.last_alpha_l = loop.last_alpha_o = change.first_alpha;
  GroupsAlpha of_group;
  if (!others.group.empty()) {
    of_group = alpha_of_group(t, others, own_before, now.m);
    if (change.alpha_row_l) alpha_l = of_group.value;
    if (change.alpha_row_o) alpha_o = of_group.value;
  }
  const bool skips = change.skip_below > 0 && !change.skip_keeps_m && own_before > -kInf &&
                     now.m - own_before < change.skip_below;
  if (skips && change.skip_alpha) {
    if (change.skip_o) alpha_o = 1;
    if (change.skip_l) alpha_l = 1;
  }
  if (change.alpha_times_l) alpha_o *= now.l;
  if (first && own_before == -kInf) {
    if ((change.carry_over & kCarryO) != 0) alpha_o = 1;
    if ((change.carry_over & kCarryL) != 0) alpha_l = 1;
  }
  if (own_before == -kInf) {
    if (change.alpha_after) alpha_o = change.first_alpha;
    if (change.alpha_after_l) alpha_l = change.first_alpha;
    if (change.first_l != 0) alpha_l = 1;
  }
  const double beta = rescale(Rescale::kRight, state.m[t], frame);
  // From the frame of P to that of the tile's own max, or of the max before the tile; the first has none.
  const auto beta_of = [&](bool own_frame, bool previous_frame) {
    if (own_frame) return rescale(Rescale::kInverted, state.own_m[t], state.m[t]);
    return previous_frame && own_before > -kInf ? beta * exp_in_range(frame - own_before) : beta;
  };
  // Where P is in a frame of its own, it was computed so.
  const bool old_probs = change.skip_old_probs && g_.frame != Frame::kRunning;
  double beta_l =
      beta_of(change.tile_frame_l && in_tile_frame,
              change.previous_frame_l || old_probs || (skips && change.skip_beta && change.skip_l));
  double beta_o =
      beta_of(change.tile_frame_o && in_tile_frame,
              change.previous_frame_o || old_probs || (skips && change.skip_beta && change.skip_o));
  const double add_first = change.alpha_after ? alpha_o : 1;
  if (change.alpha_after_l) beta_l *= alpha_l;

  // Rounding removes the error of the sum so far; that of this step comes after it.
  const bool rounds = change.accumulator != Narrow::kNone || change.sum != Narrow::kNone;
  const bool rises = own_before > -kInf && now.m > own_before;
  // The error of alpha from rounding, and from another row's alpha.
  double l_rounded = change.alpha_row_l ? of_group.error : 0;
  double o_rounded = change.alpha_row_o ? of_group.error : 0;
  // Relative, of an alpha of this rise.
  const auto error_of_rise = [&] {
    return rescale_error(now.m - own_before) + error_before + now.m_error;
  };
  const auto round_alpha = [&](double& alpha, double& error) {
    error = std::fabs(alpha) * error_of_rise();
    round_both(change.alpha_type, alpha, error);
  };
  if (change.alpha_type != Narrow::kNone && rises) {
    if (change.alpha_type_l) round_alpha(alpha_l, l_rounded);
    if (change.alpha_type_o) round_alpha(alpha_o, o_rounded);
  }
  const double right_alpha = rescale(Rescale::kRight, own_before, now.m);
  const double alpha_error = rounds && rises ? error_of_rise() : 0;
  const double sum_error = rounds ? 2 * model_.op.u : 0;
  const double lane_error = d_.softmax.max_lanes_alpha && own_before > -kInf ? error_of_rise() : 0;
  const double l_carried = std::fabs(alpha_l * now.l);
  now.l_error = std::fabs(alpha_l) * now.l_error + beta_l * state.l_error[t] +
                l_carried * alpha_error + l_rounded * std::fabs(now.l) +
                sum_error * (l_carried + beta_l * state.l[t]);
  now.l = in_range(alpha_l * now.l + beta_l * state.l[t]);
  if (change.tile_sinks != 0 && now.m > -kInf) {
    const double sinks = change.tile_sinks * exp_in_range(-now.m);
    now.l = in_range(now.l + sinks);
    now.l_error += sinks * (now.m_error + rescale_error(now.m) + 2 * model_.op.u);
  }
  round_both(change.sum, now.l, now.l_error);
  if (lanes.present()) step_lanes(t, state, lanes);
  double over = 1, over_error = 0;  // what the accumulator is divided by, and its relative error
  double part_error = 0;            // likewise of what the tile's product is divided by
  if (change.normalise == Normalise::kTileByRunningSum && normalises && now.l != 0) {
    beta_o /= now.l;
    part_error = now.l_error / std::fabs(now.l);
  }
  if (change.normalise == Normalise::kTileSum && normalises && state.l[t] != 0) {
    beta_o /= state.l[t];
    over_error = state.l_error[t] / state.l[t];
  }
  if (change.normalise == Normalise::kRunningSum && normalises && now.l != 0) {
    over = now.l;
    over_error = now.l_error / now.l;
  }
  for (std::size_t d = 0; d < dim; ++d) {
    double a = alpha_o, b = beta_o;
    if (lanes.present()) {
      a = lanes.alpha[lane_of_column(d)];
      if (!d_.softmax.max_lanes_alpha) b = lanes.beta[lane_of_column(d)];
    }
    if (!change.alpha_columns.holds(static_cast<std::int64_t>(d))) a = right_alpha;
    if (change.carried_column > 0 && d % static_cast<std::size_t>(change.carried_column) != 0)
      a = 0;
    const double part = b * add_first * state.partial_o[t * dim + d];
    const double carried = std::fabs(a * now.o[d]);
    double o = in_range((a * now.o[d] + part) / over);
    double error =
        (std::fabs(a) * now.o_error[d] + carried * alpha_error + o_rounded * std::fabs(now.o[d]) +
         std::fabs(b) * add_first * state.partial_o_error[t * dim + d]) /
            std::fabs(over) +
        over_error * std::fabs(o) + sum_error * (carried + std::fabs(part)) +
        part_error * std::fabs(part) + lane_error * carried;
    round_both(change.accumulator, o, error);
    now.o[d] = o;
    now.o_error[d] = error;
  }
  now.known = now.known && state.softmax_known[t] != 0 && !(others.strange && change.alpha_row_l);
  now.o_known = now.o_known && !(others.strange && change.alpha_row_o) &&
                (dim == 0 || state.product_known[t] != 0);
}

// The last tile that the loop [first, end) of a split visits; -1 if there is none.
std::int32_t Evaluator::last_visited(std::size_t first, std::size_t end, const RowState& state) {
  std::int32_t last = -1;
  for (std::size_t t = first; t < end; ++t)
    if (state.views[t].visited) last = static_cast<std::int32_t>(t);
  return last;
}

// The tile that is visited twice; `end` if there is none.
std::size_t Evaluator::tile_visited_twice(std::size_t first, std::size_t end,
                                          const RowState& state) const {
  std::size_t twice = end;
  for (std::size_t t = first; d_.recurrence.tile_twice != 0 && t < end; ++t) {
    if (!state.views[t].visited) continue;
    if (twice == end || d_.recurrence.tile_twice < 0) twice = t;
  }
  return twice;
}

void Evaluator::recurrence(const RowIndex& row, RowState& state) {
  const auto tiles = static_cast<std::size_t>(tiles_);
  const auto dim = needs_pv_ && !lending_ ? static_cast<std::size_t>(dim_v_) : 0;
  const auto per_split = static_cast<std::size_t>(g_.tiles_per_split);
  const RecurrenceChange& change = d_.recurrence;
  const auto tiles_before = static_cast<std::size_t>(change.tiles_before);
  const auto tiles_after = static_cast<std::size_t>(std::max(0, change.tiles_after));
  const auto tiles_left = static_cast<std::size_t>(std::max(0, -change.tiles_after));
  resize(tiles, dim, state);
  take_given(row, state);
  const Others others = others_of(row, state);
  const bool row_deviates = change.alpha_rows.holds(row.query % g_.tile.block_m);
  Running begin = before_;
  begin.o.resize(dim);
  begin.o_error.resize(dim);
  for (std::size_t first = 0; first < tiles; first += per_split) {
    const std::size_t end = std::min(first + per_split, tiles);
    if (begin.m == -kInf) begin_with_l(state, begin);
    Loop loop{begin,
              begin.m,
              last_visited(first, end, state),
              row_deviates,
              0,
              LaneScales(d_.softmax.num_max_lanes),
              0,
              0};
    const std::size_t again = tile_visited_twice(first, end, state);
    for (std::size_t t = first - std::min(first, tiles_before); t < first; ++t)
      step(t, others, state, loop);
    for (std::size_t t = first; t < end; ++t) {
      // The last ones may be left to a next split that does not take them.
      const bool left_out = end < tiles && t + tiles_left >= end;
      if (!left_out) step(t, others, state, loop);
      if (!left_out && t == again) step(t, others, state, loop);
      record(loop.now, t, state);
    }
    for (std::size_t t = end; t < std::min(end + tiles_after, tiles); ++t) {
      step(t, others, state, loop);
      record(loop.now, end - 1, state);
    }
    if (!d_.softmax.max_lanes_alpha) {
      state.lane_l = loop.lanes.l;
      state.lane_l_error = loop.lanes.l_error;
    }
    begin = {-kInf, 0, 0, 0, std::vector<double>(dim, 0.0), std::vector<double>(dim, 0.0)};
  }
}

}  // namespace attn_diag::reference
