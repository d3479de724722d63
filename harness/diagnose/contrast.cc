#include "harness/diagnose/contrast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attn_diag/harness/run.h"
#include "harness/base/parallel_for.h"
#include "harness/diagnose/judge.h"
#include "harness/diagnose/sample.h"

namespace attn_diag::matching {
namespace {

constexpr double kSame = 1e-6;
constexpr std::uint64_t kOtherSeed = 7321;  // not one that somebody is likely to have typed

// How far apart two predictions of a cell are, in the sum of their bounds; 0 where one is not known.
double over_bounds(const reference::Prediction::Values& x, const reference::Prediction::Values& y,
                   std::size_t i) {
  if (x.known[i] == 0 || y.known[i] == 0) return 0;
  const double limit = x.bound[i] + y.bound[i];
  if (!std::isfinite(limit) && std::isfinite(x.value[i]) && std::isfinite(y.value[i])) return 0;
  return residual_over_bound(x.value[i], y.value[i], limit);
}

}  // namespace

Contrast::Contrast(const reference::PredictionInputs& c,
                   const std::vector<reference::RowIndex>& rows,
                   const std::vector<reference::Deviation>& deviations, std::uint32_t tensors,
                   int threads)
    : x_predictions(deviations.size()), x_rows(rows.size()) {
  parallel_for(static_cast<std::int64_t>(deviations.size()), threads, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    reference::predict(c, rows, deviations[at], tensors, x_predictions[at]);
  });
}

Contrast::Gap Contrast::gap(std::size_t a, std::size_t b) const {
  Gap gap;
  for (const TensorInfo& tensor : kTensors) {
    const reference::Prediction::Values& x = x_predictions[a][tensor.id];
    const reference::Prediction::Values& y = x_predictions[b][tensor.id];
    const std::size_t cells = x.value.size() / std::max<std::size_t>(1, x_rows);
    for (std::size_t i = 0; i < std::min(x.value.size(), y.value.size()); ++i) {
      const double off = over_bounds(x, y, i);
      if (off > gap.over_bound) gap = {off, tensor.id, i / cells, x.value[i], y.value[i]};
    }
  }
  return gap;
}

bool Contrast::apart(std::size_t a, std::size_t b) const {
  for (const TensorInfo& tensor : kTensors) {
    const reference::Prediction::Values& x = x_predictions[a][tensor.id];
    const reference::Prediction::Values& y = x_predictions[b][tensor.id];
    for (std::size_t i = 0; i < std::min(x.value.size(), y.value.size()); ++i)
      if (over_bounds(x, y, i) > 1) return true;
  }
  return false;
}

bool Contrast::knows_all(std::size_t a) const {
  return std::all_of(kTensors.begin(), kTensors.end(), [&](const TensorInfo& tensor) {
    const std::vector<std::uint8_t>& known = x_predictions[a][tensor.id].known;
    return std::all_of(known.begin(), known.end(), [](std::uint8_t k) { return k != 0; });
  });
}

bool Contrast::same(std::size_t a, std::size_t b) const {
  for (const TensorInfo& tensor : kTensors) {
    const reference::Prediction::Values& x = x_predictions[a][tensor.id];
    const reference::Prediction::Values& y = x_predictions[b][tensor.id];
    if (x.value.size() != y.value.size()) return false;
    const std::size_t cells = x.value.size() / std::max<std::size_t>(1, x_rows);
    for (std::size_t begin = 0; begin < x.value.size(); begin += cells) {
      double largest = 0;
      for (std::size_t i = begin; i < begin + cells; ++i)
        if (std::isfinite(x.value[i])) largest = std::max(largest, std::fabs(x.value[i]));
      for (std::size_t i = begin; i < begin + cells; ++i) {
        if (x.known[i] != y.known[i]) return false;
        if (x.known[i] == 0) continue;
        if (!(residual_over_bound(x.value[i], y.value[i],
                                  largest * kSame + std::numeric_limits<double>::min()) <= 1))
          return false;
      }
    }
  }
  return true;
}

std::vector<OtherInputs> other_inputs(const reference::PredictionInputs& like) {
  std::vector<OtherInputs> all;
  for (const char* kind : {"probe", "rising", "large", "randn"}) {
    const auto& kinds = input_kinds();
    if (std::none_of(kinds.begin(), kinds.end(),
                     [&](const InputKindInfo& k) { return std::string_view(k.name) == kind; }))
      continue;
    const InputData made = make_inputs(like.problem(), kind, kOtherSeed, 1);
    all.push_back(
        {kind, reference::PredictionInputs(like.problem(), like.geometry(), like.arithmetic(),
                                           {made.q.data(), made.k.data(), made.v.data()})});
  }
  return all;
}

std::vector<reference::RowIndex> rows_of(const Problem& p, int n) {
  std::vector<std::int64_t> all(
      static_cast<std::size_t>(std::int64_t{p.batch} * p.heads * p.seqlen_q));
  std::iota(all.begin(), all.end(), 0);
  std::vector<reference::RowIndex> rows;
  for (const std::int64_t flat : spread(all, n))
    rows.push_back({static_cast<std::int32_t>(flat / p.seqlen_q / p.heads),
                    static_cast<std::int32_t>(flat / p.seqlen_q % p.heads),
                    static_cast<std::int32_t>(flat % p.seqlen_q)});
  return rows;
}

}  // namespace attn_diag::matching
