#include "reference/counterfactual/lane_maxima.h"

#include <algorithm>
#include <utility>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/lane_map.h"
#include "reference/infinity.h"

namespace attn_diag::reference {
namespace {

// The lane of a key of a tile, or of a column of o.
std::size_t lane_at(const SoftmaxChange& change, std::int32_t place) {
  return lane_of(change.max_lanes, place, change.num_max_lanes, 0);
}

}  // namespace

std::size_t Evaluator::lane_of_column(std::size_t d) const {
  return lane_at(d_.softmax, static_cast<std::int32_t>(d));
}

// What every lane takes for m. Shuffles down leave in lane i the max over the lanes from i on.
void Evaluator::lane_frames(RowState& state) const {
  const auto lanes = static_cast<std::size_t>(d_.softmax.num_max_lanes);
  state.lane_m.assign(static_cast<std::size_t>(tiles_) * lanes, -kInf);
  for (std::int32_t t = 0; t < tiles_; ++t) {
    double* const m = state.lane_m.data() + static_cast<std::size_t>(t) * lanes;
    const KeyRange slots = state.counted[static_cast<std::size_t>(t)];
    const std::int32_t first = slots_.of_tile(t).begin;
    for (std::int32_t i = slots.begin; i < slots.end; ++i) {
      double& most = m[lane_at(d_.softmax, i - first)];
      most = std::max(most, state.s[static_cast<std::size_t>(i)]);
    }
    if (d_.softmax.max_steps >= 0) {
      const std::vector<double> most = over_butterfly(
          {m, m + lanes}, d_.softmax.max_steps, [](double& x, double y) { x = std::max(x, y); });
      std::copy(most.begin(), most.end(), m);
    } else {
      for (std::size_t lane = lanes - 1; lane > 0; --lane)
        m[lane - 1] = std::max(m[lane - 1], m[lane]);
    }
    if (g_.frame != Frame::kRunning || t % g_.tiles_per_split == 0) continue;
    for (std::size_t lane = 0; lane < lanes; ++lane)
      m[lane] = std::max(m[lane], *(m + lane - lanes));
  }
}

// The scores of a tile, moved so that `m` stands for the max of each key's lane.
const double* Evaluator::shift_lanes(std::int32_t tile, double m, const RowState& state) {
  const KeyRange slots = state.counted[static_cast<std::size_t>(tile)];
  const std::int32_t first = slots_.of_tile(tile).begin;
  const auto lanes = static_cast<std::size_t>(d_.softmax.num_max_lanes);
  const double* const lane_m = state.lane_m.data() + static_cast<std::size_t>(tile) * lanes;
  shifted_.clear();
  for (std::int32_t i = slots.begin; i < slots.end; ++i) {
    const double s = state.s[static_cast<std::size_t>(i)];
    shifted_.push_back(s == -kInf ? s : s + (m - lane_m[lane_at(d_.softmax, i - first)]));
  }
  return shifted_.data();
}

// What shuffles down make of the sums of x over each lane's slots.
std::vector<double> Evaluator::lane_tile_sums(KeyRange slots, std::int32_t first,
                                              const std::vector<double>& x) const {
  std::vector<double> sums(static_cast<std::size_t>(d_.softmax.num_max_lanes), 0.0);
  for (std::int32_t i = slots.begin; i < slots.end; ++i)
    sums[lane_at(d_.softmax, i - first)] += x[static_cast<std::size_t>(i)];
  return shuffled_down(std::move(sums));
}

void Evaluator::step_lanes(std::size_t tile, const RowState& state, LaneScales& lanes) const {
  const bool in_loop = g_.frame == Frame::kRunning;
  std::vector<double> sums(lanes.m.size(), state.l[tile]);
  std::vector<double> errors(lanes.m.size(), state.l_error[tile]);
  if (d_.softmax.max_lanes_sum) {
    const KeyRange slots = state.counted[tile];
    const std::int32_t first = slots_.of_tile(static_cast<std::int32_t>(tile)).begin;
    sums = lane_tile_sums(slots, first, state.p);
    errors = lane_tile_sums(slots, first, state.l_weight);
    for (std::size_t i = 0; i < sums.size(); ++i)
      errors[i] += sums[i] * gamma(slots.size(), model_.op.u);
  }
  for (std::size_t i = 0; i < lanes.m.size(); ++i) {
    const double own = state.lane_m[tile * lanes.m.size() + i], before = lanes.m[i];
    lanes.m[i] = std::max(before, own);
    lanes.alpha[i] = rescale(Rescale::kRight, before, lanes.m[i]);
    // A lane that saw no key adds what others give it as it is.
    lanes.beta[i] = in_loop ? 1 : rescale(Rescale::kRight, own, lanes.m[i]);
    lanes.l[i] = in_range(lanes.alpha[i] * lanes.l[i] + lanes.beta[i] * sums[i]);
    lanes.l_error[i] = lanes.alpha[i] * lanes.l_error[i] + lanes.beta[i] * errors[i];
  }
}

}  // namespace attn_diag::reference
