#include "reference/counterfactual/unite.h"

#include <cstdio>
#include <tuple>
#include <utility>

#include "attn_diag/reference/counterfactual.h"

namespace attn_diag::reference {
namespace {

// Every field of a deviation, once, for what has to look at each.
auto fields(FetchChange& f) {
  return std::tie(f.row_shift, f.column_shift, f.head, f.batch_zero, f.strides, f.tiles_late,
                  f.outside, f.tile, f.type, f.late_in_loop, f.pages, f.page_rows, f.batch_in_heads,
                  f.loaded_rows, f.first_scaled, f.scaled_columns, f.column_scale, f.beyond,
                  f.order, f.tile_step, f.of_other, f.loaded_of, f.unloaded_late);
}
auto fields(LogitsChange& l) {
  return std::tie(l.first_column, l.scaled_query, l.kappa, l.bias_factor, l.bias_before_cap,
                  l.softcap, l.columns, l.fragment, l.type, l.rounded_every, l.scores, l.offset,
                  l.bias, l.slopes, l.bias_slope, l.cap, l.accumulates);
}
auto fields(MaskChange& m) {
  return std::tie(m.rule, m.first_shift, m.last_shift, m.masked_tiles, m.loop, m.padding,
                  m.boundary_key_twice, m.masked_score, m.reach, m.tile_left_out, m.tile_keys,
                  m.tile_first, m.keys_before, m.keys_behind, m.padded_keys, m.end_shift,
                  m.begin_shift, m.last_of, m.first_of, m.query_of, m.masked_added, m.row,
                  m.masked_run, m.boundary_of_split, m.fragment);
}
auto fields(SoftmaxChange& s) {
  return std::tie(s.empty, s.m_floor, s.exp, s.lanes, s.num_lanes, s.lanes_keep_max, s.lanes_o,
                  s.mixed, s.probs, s.sum_of_narrow, s.l_counts_masked, s.o_counts_masked,
                  s.exp_factor, s.exp_places, s.flush_below, s.flush_l, s.max_lanes,
                  s.num_max_lanes, s.max_lanes_sum, s.exp_c, s.max_steps, s.running_max, s.max_type,
                  s.max_row, s.max_lanes_alpha);
}
auto fields(PvChange& p) {
  return std::tie(p.probs_late, p.probs, p.factor, p.staircase, p.row, p.type, p.rounded_every,
                  p.accumulates);
}
auto fields(RecurrenceChange& r) {
  return std::tie(r.alpha_power_l, r.alpha_power_o, r.alpha_late_l, r.alpha_late_o, r.first_alpha,
                  r.previous_frame_l, r.previous_frame_o, r.sum, r.tiles_after, r.tiles_before,
                  r.alpha_l, r.alpha_o, r.carried_column, r.alpha_after, r.alpha_times_l,
                  r.skip_below, r.skip_l, r.tile_frame_l, r.tile_frame_o, r.normalise, r.carry_over,
                  r.alpha_row, r.alpha_row_l, r.accumulator, r.carry_distance, r.carry_order,
                  r.tile_of_sequence, r.skip_keeps_m, r.first_l, r.alpha_tiles, r.alpha_columns,
                  r.alpha_rows, r.alpha_after_l, r.skip_o, r.skip_beta, r.alpha_row_o, r.alpha_type,
                  r.alpha_type_l, r.alpha_type_o, r.tile_twice, r.skip_alpha, r.frame_tiles,
                  r.tile_l_times, r.tile_l_tiles, r.alpha_row_decides, r.alpha_group, r.group_alpha,
                  r.skip_old_probs, r.tile_sinks, r.normalised_tiles);
}
auto fields(CombineChange& c) {
  return std::tie(c.max_factor, c.o_power, c.l_power, c.scaled_split, c.factor, c.only_split, c.lse,
                  c.max_of_counted, c.map, c.map_o_only, c.extra, c.extra_lse, c.sinks, c.partial,
                  c.factors, c.skips_zero_l, c.map_sums_only, c.written, c.read, c.factors_o_only,
                  c.factors_l_only, c.max_factor_o, c.max_factor_l, c.online, c.alpha_o, c.alpha_l,
                  c.beta_o, c.beta_l, c.split_map, c.read_splits, c.read_queries, c.read_heads,
                  c.read_shift, c.stale_split, c.stale_divided, c.nan_of_infinite,
                  c.partial_divided, c.partial_lse, c.partial_l, c.only_splits, c.partial_m,
                  c.sinks_of_splits);
}
auto fields(FinishChange& f) {
  return std::tie(f.o_type, f.lse_type, f.gain, f.l_power, f.l_factor, f.l_added, f.l_row,
                  f.lane_sum, f.lanes, f.lse, f.lane_guard, f.mixed, f.divisor, f.inverse_type,
                  f.columns, f.rows, f.l_row_lse, f.m_row_lse, f.lane_map, f.lane_steps,
                  f.lane_sum_in_loop, f.lse_of_lane, f.lanes_of_splits);
}
auto fields(StoreChange& s) {
  return std::tie(s.lse, s.row_shift, s.first_column, s.fragment, s.other_layout, s.head,
                  s.batch_zero, s.columns, s.rows_owned, s.unwritten, s.batch_in_heads, s.row_map,
                  s.column_map, s.owned_of, s.whole_tiles, s.unowned_first, s.unowned_rows);
}
auto fields(Place& p) { return std::tie(p.tiles, p.rows); }
// The parts of a deviation, each as its fields.
auto parts(Deviation& d) {
  return std::make_tuple(fields(d.q), fields(d.k), fields(d.v), fields(d.logits), fields(d.mask),
                         fields(d.softmax), fields(d.pv), fields(d.recurrence), fields(d.combine),
                         fields(d.finish), fields(d.store), fields(d.place));
}

template <class Tuple, class Function, std::size_t... i>
bool all_of_three(const Tuple& x, const Tuple& y, const Tuple& z, const Function& function,
                  std::index_sequence<i...>) {
  return (function(std::get<i>(x), std::get<i>(y), std::get<i>(z)) && ...);
}
template <class... Elements, class Function>
bool all_of_three(const std::tuple<Elements...>& x, const std::tuple<Elements...>& y,
                  const std::tuple<Elements...>& z, const Function& function) {
  return all_of_three(x, y, z, function, std::index_sequence_for<Elements...>());
}

// Part by part: compilers limit how long one fold may be.
bool unite_parts(Deviation& into, Deviation& from, Deviation& right) {
  const auto unite_field = [](auto& x, const auto& y, const auto& neutral) {
    if (y == neutral) return true;
    if (!(x == neutral)) return false;
    x = y;
    return true;
  };
  return all_of_three(parts(into), parts(from), parts(right),
                      [&](const auto& x, const auto& y, const auto& neutral) {
                        return all_of_three(x, y, neutral, unite_field);
                      });
}

}  // namespace

std::optional<Deviation> unite(const Deviation& a, const Deviation& b) {
  Deviation both = a, other = b, right;
  if (!unite_parts(both, other, right)) return std::nullopt;
  return both;
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace attn_diag::reference
