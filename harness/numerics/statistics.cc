#include "harness/numerics/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "harness/capture/reference_rows.h"
#include "harness/compare/judgement.h"
#include "harness/compare/limits.h"
#include "harness/compare/ulps.h"

namespace attn_diag {
namespace {

double smallest_subnormal(DType type) {
  const UlpScale scale = ulp_scale(type);
  return scale.smallest_normal / scale.per_power_of_two;
}

void count_cell(double actual, double expected, DType storage, Census& census) {
  if (std::isnan(actual)) {
    census.nan += std::isnan(expected) ? 0 : 1;
    return;
  }
  if (std::isinf(actual)) {
    if (actual == expected) return;
    ++(actual > 0 ? census.plus_inf : census.minus_inf);
    census.overflow += std::isfinite(expected) ? 1 : 0;
    return;
  }
  const double normal = ulp_scale(storage).smallest_normal, size = std::fabs(expected);
  if (actual != 0) {
    census.subnormal += std::fabs(actual) < normal ? 1 : 0;
  } else if (std::isfinite(expected)) {
    census.flushed += size >= normal ? 1 : 0;
    census.underflowed += size < normal && size >= smallest_subnormal(storage) ? 1 : 0;
  }
}

template <class Sums>
void add_bin(std::map<int, Sums>& bins, int bin, const Sums& cells) {
  if (cells.judged > 0) bins[bin].add(cells);
}

template <class Sums, class Edges>
std::vector<PositionBin> bins_of(const std::map<int, Sums>& bins, const Edges& edges) {
  std::vector<PositionBin> out;
  for (const auto& [bin, cells] : bins) {
    PositionBin p;
    std::tie(p.low, p.high) = edges(bin);
    p.cells = cells.judged;
    p.rms_err_over_bound = std::sqrt(cells.ratio_squares / static_cast<double>(cells.judged));
    p.max_err_over_bound = cells.max_ratio;
    out.push_back(p);
  }
  return out;
}

}  // namespace

void Statistics::Cells::add(double error, double expected, double ratio) {
  err += error;
  outward += expected < 0 ? -error : error;
  squares += error * error;
  ratio_squares += ratio * ratio;
  max_ratio = std::max(max_ratio, ratio);
  ++judged;
}

void Statistics::Cells::add(const Cells& other) {
  err += other.err;
  outward += other.outward;
  squares += other.squares;
  ratio_squares += other.ratio_squares;
  max_ratio = std::max(max_ratio, other.max_ratio);
  judged += other.judged;
}

Statistics::Statistics(const Capture& capture) : x_capture(capture) {
  const auto& extent = capture.region.extent;
  const auto rows = static_cast<std::size_t>(extent[0] * extent[1] * extent[2]);
  x_largest_score.resize(rows);
  for (const TensorInfo& t : kTensors) {
    if (!capture.has(t.id)) continue;
    OfTensor of;
    of.counts.tensor = t.id;
    of.counts.storage = storage_of(t.id, capture);
    of.counts.ratios.resize(kRatioBins);
    of.rows.resize(rows);
    if (t.id == Tensor::kS || t.id == Tensor::kP) of.by_score.resize(rows);
    x_tensors.push_back(std::move(of));
  }
}

// Below 1/4; then up to each power of 2; 512 and above.
int Statistics::score_bin(double size) {
  if (!(size >= 0.25)) return 0;
  return std::clamp(std::ilogb(size) + 3, 1, kScoreBins - 1);
}

void Statistics::add_rows(OfTensor& to, const reference::RowBlock& block, TensorNumerics& counts) {
  const TensorData& data = x_capture[counts.tensor];
  const double* value = block.value[static_cast<std::size_t>(counts.tensor)];
  const double* bound = block.bound[static_cast<std::size_t>(counts.tensor)];
  const double* score = block.value[static_cast<std::size_t>(Tensor::kS)];
  if (value == nullptr || bound == nullptr) return;
  const std::int64_t cells =
      data.size() / std::max<std::int64_t>(1, static_cast<std::int64_t>(to.rows.size()));
  const std::int64_t first = first_row(x_capture.region, block);
  const Limits limits(Tolerance{}, data);
  counts.cells += block.rows * cells;
  for (std::int64_t i = 0; i < block.rows * cells; ++i) {
    const std::int64_t at = first * cells + i;
    const double actual = data.at(at), expected = value[i];
    count_cell(actual, expected, counts.storage, counts.census);
    const double limit = limits.of(at, bound[i], expected);
    const Judgement judgement = judge_cell(actual, expected, limit);
    if (!judgement.judged) continue;
    ++counts.judged;
    counts.mismatched += judgement.passes ? 0 : 1;
    if (!std::isfinite(actual) || !std::isfinite(expected)) continue;
    // Cells that are exact whatever rounding does say nothing about its size.
    if (limit == 0 && judgement.passes) continue;
    const double error = actual - expected;
    ++counts.ratios[static_cast<std::size_t>(ratio_bin(judgement.ratio))];
    counts.max = std::max(counts.max, judgement.ratio);
    if (const auto ulps = error_in_ulps(counts.storage, actual, expected, limit)) {
      ++counts.ulps[static_cast<std::size_t>(ulp_bin(*ulps))];
      ++counts.with_ulps;
      counts.max_ulp = std::max(counts.max_ulp, *ulps);
    }
    const double ratio = std::min(judgement.ratio, 0x1p60);
    const auto row = static_cast<std::size_t>(first + i / cells);
    to.rows[row].add(error, expected, ratio);
    if (!to.by_score.empty() && score != nullptr)
      to.by_score[row][static_cast<std::size_t>(score_bin(std::fabs(score[i])))].add(
          error, expected, ratio);
  }
}

void Statistics::add(const reference::RowBlock& block) {
  const std::int64_t first = first_row(x_capture.region, block);
  if (const double* score = block.value[static_cast<std::size_t>(Tensor::kS)]) {
    const std::int64_t keys = x_capture.problem.seqlen_k;
    for (std::int64_t r = 0; r < block.rows; ++r)
      for (std::int64_t j = 0; j < keys; ++j)
        if (std::isfinite(score[r * keys + j])) {
          double& largest = x_largest_score[static_cast<std::size_t>(first + r)];
          largest = std::max(largest, std::fabs(score[r * keys + j]));
        }
  }
  for (OfTensor& to : x_tensors) {
    TensorNumerics counts;  // rows of other blocks are others: only these are shared
    counts.tensor = to.counts.tensor;
    counts.storage = to.counts.storage;
    counts.ratios.resize(kRatioBins);
    add_rows(to, block, counts);
    const std::lock_guard lock(x_mutex);
    TensorNumerics& sum = to.counts;
    sum.cells += counts.cells;
    sum.judged += counts.judged;
    sum.mismatched += counts.mismatched;
    sum.with_ulps += counts.with_ulps;
    sum.max_ulp = std::max(sum.max_ulp, counts.max_ulp);
    sum.max = std::max(sum.max, counts.max);
    for (std::size_t i = 0; i < kUlpBins; ++i) sum.ulps[i] += counts.ulps[i];
    for (std::size_t i = 0; i < kRatioBins; ++i) sum.ratios[i] += counts.ratios[i];
    sum.census.nan += counts.census.nan;
    sum.census.plus_inf += counts.census.plus_inf;
    sum.census.minus_inf += counts.census.minus_inf;
    sum.census.overflow += counts.census.overflow;
    sum.census.subnormal += counts.census.subnormal;
    sum.census.flushed += counts.census.flushed;
    sum.census.underflowed += counts.census.underflowed;
  }
}

void Statistics::positions(const OfTensor& from, TensorNumerics& out) const {
  constexpr int kQueryBins = 8;
  const Region& region = x_capture.region;
  const auto queries = static_cast<int>(region.extent[2]);
  const int width = std::max(1, (queries + kQueryBins - 1) / kQueryBins);
  const auto first = static_cast<std::int32_t>(region.origin[2]);
  std::vector<int> keys(static_cast<std::size_t>(queries), 0);
  for (int q = 0; q < queries; ++q)
    for (std::int32_t key = 0; key < x_capture.problem.seqlen_k; ++key)
      keys[static_cast<std::size_t>(q)] += reference::visible(x_capture.problem, first + q, key);
  std::map<int, Cells> by_query, by_keys, by_score;
  for (std::size_t row = 0; row < from.rows.size(); ++row) {
    const Cells& cells = from.rows[row];
    const int query = static_cast<int>(row % static_cast<std::size_t>(queries));
    add_bin(by_query, query / width, cells);
    const int seen = keys[static_cast<std::size_t>(query)];
    add_bin(by_keys, seen == 0 ? -1 : std::ilogb(static_cast<double>(seen)), cells);
    if (from.by_score.empty()) {
      add_bin(by_score, score_bin(x_largest_score[row]), cells);
    } else {
      for (int bin = 0; bin < kScoreBins; ++bin)
        add_bin(by_score, bin, from.by_score[row][static_cast<std::size_t>(bin)]);
    }
  }
  using Edges = std::pair<double, double>;
  out.by_query = bins_of(by_query, [&](int bin) {
    return Edges(first + bin * width, first + std::min(queries, (bin + 1) * width));
  });
  out.by_keys = bins_of(by_keys, [](int bin) {
    return bin < 0 ? Edges(0, 1) : Edges(std::ldexp(1.0, bin), std::ldexp(1.0, bin + 1));
  });
  out.by_score = bins_of(by_score, [](int bin) {
    return Edges(bin == 0 ? 0 : std::ldexp(1.0, bin - 3),
                 bin + 1 == kScoreBins ? HUGE_VAL : std::ldexp(1.0, bin - 2));
  });
}

std::vector<TensorNumerics> Statistics::finish() const {
  std::vector<TensorNumerics> out;
  for (const OfTensor& from : x_tensors) {
    TensorNumerics t = from.counts;
    t.median = quantile(t.ratios, 0.5);
    t.p90 = quantile(t.ratios, 0.9);
    t.p99 = quantile(t.ratios, 0.99);
    t.p999 = quantile(t.ratios, 0.999);
    Cells all;
    for (const Cells& row : from.rows) all.add(row);
    if (all.judged > 0) {
      const auto n = static_cast<double>(all.judged);
      t.rms_err = std::sqrt(all.squares / n);
      t.bias = t.rms_err > 0 ? all.err / n / t.rms_err : 0;
      t.shrinkage = t.rms_err > 0 ? all.outward / n / t.rms_err : 0;
    }
    positions(from, t);
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace attn_diag
