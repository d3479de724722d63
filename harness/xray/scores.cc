#include "harness/xray/scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "attn_diag/reference/reference.h"
#include "harness/capture/oracle.h"
#include "harness/capture/reference_rows.h"
#include "harness/run/run_memory.h"
#include "harness/xray/row_of_scores.h"

namespace attn_diag::xraying {
namespace {

constexpr std::array kReconstructed = {Tensor::kS, Tensor::kM, Tensor::kL, Tensor::kP};

void allocate(Capture& c) {
  for (const Tensor t : kReconstructed) {
    TensorData data;
    data.id = t;
    data.shape = tensor_shape(t, c.problem, c.geometry);
    data.origin.assign(data.shape.size(), 0);
    const auto cells = static_cast<std::size_t>(data.size());
    data.bytes.resize(cells * sizeof(float));
    data.uncertainty.resize(cells);
    c.tensors[static_cast<std::size_t>(t)] = std::move(data);
    c.exempt[static_cast<std::size_t>(t)].clear();
  }
}

void put_row(Capture& c, Tensor t, std::int64_t row, const std::vector<double>& values,
             const std::vector<double>& uncertainty) {
  TensorData& data = *c.tensors[static_cast<std::size_t>(t)];
  const auto n = static_cast<std::int64_t>(values.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    store_element(data.bytes.data(), data.dtype, row * n + i, values[at]);
    // Rounded up.
    data.uncertainty[static_cast<std::size_t>(row * n) + at] =
        static_cast<float>(uncertainty[at] * (1 + 0x1p-22));
  }
}

// Counts of some rows, added up at the end.
struct Counts {
  std::int64_t seen = 0, without_weight = 0, unknown = 0, rows_without_lse = 0;
  double least_sum = HUGE_VAL, largest_sum = -HUGE_VAL;
  std::vector<float> uncertainty;

  void add(const RowInput& row, const RowScores& scores) {
    double sum = 0;
    bool sees = false;
    for (std::size_t j = 0; j < row.weight.size(); ++j) {
      sum += row.weight[j];
      sees = sees || std::isfinite(row.score[j]);
      if (scores.uncertainty[j] == HUGE_VAL) {
        ++unknown;
      } else if (scores.score[j] == -HUGE_VAL) {
        ++without_weight;
      } else {
        ++seen;
        uncertainty.push_back(static_cast<float>(scores.uncertainty[j]));
      }
    }
    if (!sees) return;
    rows_without_lse += scores.without_lse;
    least_sum = std::min(least_sum, sum);
    largest_sum = std::max(largest_sum, sum);
    if (std::isnan(sum)) least_sum = largest_sum = sum;
  }
  void add(const Counts& other) {
    seen += other.seen;
    without_weight += other.without_weight;
    unknown += other.unknown;
    rows_without_lse += other.rows_without_lse;
    least_sum = std::min(least_sum, other.least_sum);
    largest_sum = std::max(largest_sum, other.largest_sum);
    if (std::isnan(other.least_sum)) least_sum = largest_sum = other.least_sum;
    uncertainty.insert(uncertainty.end(), other.uncertainty.begin(), other.uncertainty.end());
  }
};

}  // namespace

void reconstruct(const Weights& weights, XrayResult& to, int threads) {
  Capture& c = to.capture;
  allocate(c);
  const Problem& p = c.problem;
  const bool has_lse = c.has(Tensor::kLse);
  reference::Options options = reference_options(c, threads, true);
  options.tensors = tensor_bit(Tensor::kS) | tensor_bit(Tensor::kLse);
  std::mutex mutex;
  Counts total;
  const auto visit = [&](const reference::RowBlock& block) {
    const auto s = static_cast<std::size_t>(Tensor::kS),
               lse = static_cast<std::size_t>(Tensor::kLse);
    RowScores scores;
    RowTiles tiles;
    Counts counts;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const std::int64_t row =
          (std::int64_t{block.batch} * p.heads + block.head) * p.seqlen_q + block.query_begin + r;
      RowInput in;
      in.weight = std::span(weights.value)
                      .subspan(static_cast<std::size_t>(row * p.seqlen_k),
                               static_cast<std::size_t>(p.seqlen_k));
      in.relative = weights.relative[static_cast<std::size_t>(row)];
      in.absolute = weights.absolute;
      if (has_lse) in.lse = c[Tensor::kLse].at(row);
      in.score = block.value[s] + r * p.seqlen_k;
      in.score_bound = block.bound[s] + r * p.seqlen_k;
      in.reference_lse = block.value[lse][r];
      in.lse_bound = block.bound[lse][r];
      scores_of_row(in, scores);
      tiles_of_row(in, scores, p, c.geometry, tiles);
      put_row(c, Tensor::kS, row, scores.score, scores.uncertainty);
      put_row(c, Tensor::kM, row, tiles.m, tiles.m_uncertainty);
      put_row(c, Tensor::kL, row, tiles.l, tiles.l_uncertainty);
      put_row(c, Tensor::kP, row, tiles.p, tiles.p_uncertainty);
      counts.add(in, scores);
    }
    const std::lock_guard lock(mutex);
    total.add(counts);
  };
  for_each_row_block(c, options, visit);
  to.seen = total.seen;
  to.without_weight = total.without_weight;
  to.unknown = total.unknown;
  to.rows_without_lse = total.rows_without_lse;
  to.least_sum = total.least_sum;
  to.largest_sum = total.largest_sum;
  if (total.uncertainty.empty()) return;
  const auto middle =
      total.uncertainty.begin() + static_cast<std::ptrdiff_t>(total.uncertainty.size() / 2);
  std::nth_element(total.uncertainty.begin(), middle, total.uncertainty.end());
  to.median_uncertainty = static_cast<double>(*middle);
}

}  // namespace attn_diag::xraying
