// Reductions over lanes that go wrong, and rows that lend each other their softmax.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/fragment.h"
#include "reference/counterfactual/lane_map.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
namespace {

// Whether rows lend what the right formula makes of them: m, l and what follows of them, not P.
bool lends_right_rows(Deviation d) {
  d.softmax.mixed = {};
  d.softmax.max_row = {};
  const RecurrenceChange right;
  d.recurrence.alpha_row = right.alpha_row;
  d.recurrence.alpha_row_l = right.alpha_row_l;
  d.recurrence.alpha_row_o = right.alpha_row_o;
  d.recurrence.alpha_row_decides = right.alpha_row_decides;
  d.recurrence.alpha_group = right.alpha_group;
  d.recurrence.group_alpha = right.group_alpha;
  d.finish.l_row = {};
  d.finish.l_row_lse = d.finish.m_row_lse = false;
  d.finish.mixed = {};
  return d == Deviation{};
}

// Right rows, which are the same for many deviations, without what they have per key.
struct RightRows {
  std::uint64_t serial = 0;
  std::map<std::array<std::int32_t, 3>, std::shared_ptr<const RowState>> rows;
};
constexpr std::size_t kMostRightRows = 4096;

void drop_keys(RowState& state) {
  for (std::vector<double>* of_keys : {&state.s, &state.s_error, &state.unmasked_s, &state.p,
                                       &state.l_weight, &state.o_weight, &state.weights})
    std::vector<double>().swap(*of_keys);
}

}  // namespace

const RowState& Evaluator::lent(const RowIndex& row) {
  std::shared_ptr<const RowState>& slot = lent_[row.query];
  if (slot != nullptr) return *slot;
  if (!lends_right_rows_) lends_right_rows_ = lends_right_rows(d_);
  if (!*lends_right_rows_) {
    slot = lent_anew(row);
    return *slot;
  }
  thread_local RightRows right;
  if (right.serial != c_.serial || right.rows.size() >= kMostRightRows) right.rows.clear();
  right.serial = c_.serial;
  std::shared_ptr<const RowState>& shared = right.rows[{row.batch, row.head, row.query}];
  if (shared == nullptr) {
    const std::shared_ptr<RowState> anew = lent_anew(row);
    drop_keys(*anew);
    shared = anew;
  }
  slot = shared;
  return *slot;
}

std::shared_ptr<RowState> Evaluator::lent_anew(const RowIndex& row) {
  auto state = std::make_shared<RowState>();
  const bool was_lending = lending_;
  lending_ = true;
  scores(row, *state);
  softmax(row, *state);
  recurrence(row, *state);
  merge(row, *state);
  lending_ = was_lending;
  return state;
}

// Whose numbers a reduction takes for those of one row.
std::vector<std::int32_t> Evaluator::mixed_queries(const MixedRows& mixed,
                                                   std::int32_t query) const {
  std::vector<std::int32_t> queries;
  if (mixed.rows > 0) {
    for (std::int32_t i = 0; i < mixed.rows; ++i)
      queries.push_back(query / mixed.rows * mixed.rows + i);
    return queries;
  }
  const std::int32_t in_tile = query % g_.tile.block_m, first = query - in_tile;
  for (std::int32_t i = 0; i < g_.tile.block_m; ++i)
    if (((i ^ in_tile) & ~mixed.bits) == 0) queries.push_back(first + i);
  return queries;
}

// The max over a group of rows, taken for the max of each.
void Evaluator::mix_frames(const RowIndex& row, RowState& state) {
  for (const std::int32_t i : mixed_queries(d_.softmax.mixed, row.query)) {
    if (i >= p_.seqlen_q) continue;
    const RowState& other = lent({row.batch, row.head, i});
    for (std::size_t t = 0; t < state.m.size(); ++t) {
      state.m[t] = std::max(state.m[t], other.m[t]);
      state.m_error[t] = std::max(state.m_error[t], other.m_error[t]);
    }
  }
}

// The sum over a group of rows, each in its own frame or in the common one.
void Evaluator::mix_sums(const RowIndex& row, RowState& state) {
  const MixedRows& mixed = d_.softmax.mixed;
  std::fill(state.l.begin(), state.l.end(), 0.0);
  std::fill(state.l_error.begin(), state.l_error.end(), 0.0);
  for (const std::int32_t i : mixed_queries(mixed, row.query)) {
    // Rows past the last query hold what nobody knows.
    if (i >= p_.seqlen_q) {
      std::fill(state.softmax_known.begin(), state.softmax_known.end(), std::uint8_t{0});
      continue;
    }
    const RowState& other = lent({row.batch, row.head, i});
    for (std::size_t t = 0; t < state.l.size(); ++t) {
      const double w =
          mixed.times * (mixed.max ? rescale(Rescale::kRight, other.m[t], state.m[t]) : 1);
      state.l[t] += w * other.l[t];
      state.l_error[t] += w * other.l_error[t];
    }
  }
}

// P relative to the m of another row, or to 0 where that row has none yet.
void Evaluator::take_frames_of(const RowIndex& row, RowState& state) {
  const std::int32_t query = chosen_query(d_.softmax.max_row, row.query);
  state.frame = state.m;
  state.frame_known.assign(state.m.size(), query >= 0 ? 1 : 0);
  if (query < 0) return;
  const RowState& other = lent({row.batch, row.head, query});
  for (std::size_t t = 0; t < state.frame.size(); ++t) {
    state.frame[t] = other.m[t] == -kInf ? 0 : other.m[t];
    state.m_error[t] = std::max(state.m_error[t], other.m_error[t]);
  }
}

// Every lane sums relative to its own max.
void Evaluator::weigh_lanes(RowState& state) {
  const SoftmaxChange& change = d_.softmax;
  const std::int32_t lanes = change.num_lanes, block_n = g_.tile.block_n;
  std::vector<double> most(static_cast<std::size_t>(lanes));
  const auto lane = [&](std::int32_t tile, std::int32_t slot) {
    if (change.lanes == LaneMap::kTiles) return static_cast<std::size_t>(tile % lanes);
    return lane_of(change.lanes, slot - slots_.of_tile(tile).begin, lanes, block_n);
  };
  const auto take_max = [&](std::int32_t tile) {
    const KeyRange slots = state.counted[static_cast<std::size_t>(tile)];
    for (std::int32_t i = slots.begin; i < slots.end; ++i) {
      double& x = most[lane(tile, i)];
      x = std::max(x, state.s[static_cast<std::size_t>(i)]);
    }
  };
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const bool first = t % g_.tiles_per_split == 0;
    const KeyRange split = tiles_of_split(p_, g_, t / g_.tiles_per_split);
    double frame = state.m[at];
    if (change.lanes_keep_max) {
      if (first) {
        std::fill(most.begin(), most.end(), -kInf);
        for (std::int32_t other = split.begin; other < split.end; ++other) take_max(other);
      }
      frame = -kInf;
      for (std::int32_t other = split.begin; other < split.end; ++other)
        frame = std::max(frame, state.own_m[static_cast<std::size_t>(other)]);
    } else {
      const bool continues = g_.frame == Frame::kRunning && !first;
      std::fill(most.begin(), most.end(), continues ? state.m[at - 1] : -kInf);
      take_max(t);
    }
    const KeyRange slots = state.counted[at];
    if (slots.empty() || frame == -kInf) continue;
    double l = 0, l_error = 0;
    for (std::int32_t i = slots.begin; i < slots.end; ++i) {
      const auto slot = static_cast<std::size_t>(i);
      const double own = most[lane(t, i)];
      const double w = own == -kInf ? 0 : exp_in_range(frame - own);
      l += w * state.p[slot];
      l_error += w * state.l_weight[slot];
      if (!change.lanes_o) continue;
      state.p[slot] *= w;
      state.l_weight[slot] *= w;
      state.o_weight[slot] *= w;
    }
    state.l[at] = l;
    state.l_error[at] = l_error + l * gamma(slots.size(), model_.op.u);
  }
}

// P of fragments whose elements are mixed up; rows of one fragment share it.
void Evaluator::permute_probs(const RowIndex& row, RowState& state) {
  const std::int32_t in_fragment = row.query % g_.tile.block_m % kFragmentSize;
  const std::int32_t first_row = row.query - in_fragment;
  state.weights.assign(state.p.size(), 0.0);
  std::fill(state.o_weight.begin(), state.o_weight.end(), 0.0);
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const KeyRange slots = slots_.of_tile(t);
    state.counted[static_cast<std::size_t>(t)] = slots;
    for (std::int32_t i = slots.begin; i < slots.end; ++i) {
      const std::int32_t key = i - slots.begin, in_block = key % kFragmentSize;
      const FragmentPlace from = fragment_source(d_.pv.probs, in_fragment, in_block);
      const std::int32_t slot = i - in_block + from.column;
      if (slot >= slots.end) continue;  // past the end P is 0
      const std::int32_t query = first_row + from.row;
      if (query >= p_.seqlen_q || query / g_.tile.block_m != row.query / g_.tile.block_m) {
        state.product_known[static_cast<std::size_t>(t)] = 0;
        continue;
      }
      const RowState& other = lent({row.batch, row.head, query});
      state.weights[static_cast<std::size_t>(i)] = other.p[static_cast<std::size_t>(slot)];
      state.o_weight[static_cast<std::size_t>(i)] = other.o_weight[static_cast<std::size_t>(slot)];
      if (other.softmax_known[static_cast<std::size_t>(t)] == 0)
        state.product_known[static_cast<std::size_t>(t)] = 0;
    }
  }
}

std::int32_t Evaluator::chosen_query(const RowChoice& choice, std::int32_t query) const {
  const std::int32_t in_tile = query % g_.tile.block_m, chosen = choice.of(in_tile);
  if (chosen < 0 || chosen >= g_.tile.block_m) return -1;
  const std::int32_t other = query - in_tile + chosen;
  return other < p_.seqlen_q ? other : -1;
}

// P V takes the P of another row.
void Evaluator::take_probs_of(const RowIndex& row, RowState& state) {
  const std::int32_t query = chosen_query(d_.pv.row, row.query);
  if (query < 0) {
    std::fill(state.product_known.begin(), state.product_known.end(), std::uint8_t{0});
    return;
  }
  const RowState& other = lent({row.batch, row.head, query});
  state.weights = other.weights.empty() ? other.p : other.weights;
  state.o_weight = other.o_weight;
  state.counted = other.counted;
  for (std::size_t t = 0; t < state.product_known.size(); ++t)
    state.product_known[t] &= other.softmax_known[t];
}

// l of every lane.
std::vector<double> Evaluator::lane_sums(const RowState& state) const {
  std::vector<double> l(static_cast<std::size_t>(d_.finish.lanes), 0.0);
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const double w = rescale(Rescale::kRight, state.m[static_cast<std::size_t>(t)], state.total_m);
    const KeyRange all = slots_.of_tile(t);
    for (std::int32_t i = all.begin; i < all.end; ++i)
      l[lane_of(d_.finish.lane_map, i - all.begin, d_.finish.lanes, g_.tile.block_n)] +=
          w * state.p[static_cast<std::size_t>(i)];
  }
  return reduced(std::move(l));
}

// What the merge's reduction over the lanes makes of a number of every split.
std::vector<double> Evaluator::sums_of_splits(const std::vector<double>& of_splits) const {
  std::vector<double> lanes(static_cast<std::size_t>(d_.finish.lanes), 0.0);
  for (std::size_t n = 0; n < of_splits.size(); ++n) lanes[n % lanes.size()] += of_splits[n];
  return reduced(std::move(lanes));
}

// l of a tile is what lane 0 has.
void Evaluator::sum_in_lane_zero(RowState& state) const {
  const FinishChange& change = d_.finish;
  for (std::int32_t t = 0; t < tiles_; ++t) {
    std::vector<double> l(static_cast<std::size_t>(change.lanes), 0.0), error = l;
    const KeyRange all = slots_.of_tile(t);
    for (std::int32_t i = all.begin; i < all.end; ++i) {
      const std::size_t lane =
          lane_of(change.lane_map, i - all.begin, change.lanes, g_.tile.block_n);
      l[lane] += state.p[static_cast<std::size_t>(i)];
      error[lane] += state.l_weight[static_cast<std::size_t>(i)];
    }
    const auto at = static_cast<std::size_t>(t);
    state.l[at] = reduced(std::move(l)).front();
    state.l_error[at] =
        reduced(std::move(error)).front() + state.l[at] * gamma(all.size(), model_.op.u);
  }
}

// What the reduction leaves in every lane.
std::vector<double> Evaluator::reduced(std::vector<double> x) const {
  if (d_.finish.lane_sum == LaneSum::kOwn) return x;
  if (d_.finish.lane_sum == LaneSum::kShuffleDown) return shuffled_down(std::move(x));
  return over_butterfly(std::move(x), d_.finish.lane_steps,
                        [](double& sum, double y) { sum += y; });
}

std::vector<double> Evaluator::shuffled_down(std::vector<double> x) {
  for (std::size_t step = x.size() / 2; step > 0; step /= 2) {
    const std::vector<double> before = x;
    // A lane that asks past the last one gets its own value.
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = before[i] + (i + step < x.size() ? before[i + step] : before[i]);
  }
  return x;
}

}  // namespace attn_diag::reference
