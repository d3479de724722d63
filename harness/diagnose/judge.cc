#include "harness/diagnose/judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/passes.h"

namespace attn_diag::matching {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnknownPrecision = 0.9;

}  // namespace

Rows read_rows(const Evidence& evidence, const reference::Case& c, std::vector<std::int64_t> flat) {
  Rows rows;
  rows.flat = std::move(flat);
  for (const std::int64_t at : rows.flat) {
    rows.row.push_back(evidence.row(at));
    rows.wrong.push_back(evidence.wrong(at) ? 1 : 0);
  }
  for (const Tensor t : evidence.tensors())
    rows.actual[static_cast<std::size_t>(t)] = evidence.read(t, rows.flat);
  reference::predict(c, rows.row, reference::Deviation{}, evidence.mask(), rows.right);
  return rows;
}

double residual_over_bound(double actual, double predicted, double bound) {
  if (actual == predicted || (std::isnan(actual) && std::isnan(predicted))) return 0;
  const double residual = std::fabs(actual - predicted);
  if (!std::isfinite(residual) || !(bound > 0)) return kInfinity;
  return residual / bound;
}

RowFit judge_row(const Evidence& evidence, const Rows& rows, std::size_t at,
                 const reference::Prediction& prediction, std::size_t first) {
  RowFit fit;
  double furthest = 0, distance = 0, width = 0;
  for (const Tensor t : evidence.tensors()) {
    const auto index = static_cast<std::size_t>(t);
    const auto n = static_cast<std::size_t>(evidence.cells(t));
    const reference::Prediction::Values& predicted = prediction[t];
    const reference::Prediction::Values& right = rows.right[t];
    if (predicted.value.empty() || right.value.empty()) continue;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t r = at * n + i, p = (at - first) * n + i;
      const double actual = rows.actual[index][r];
      if (predicted.known[p] == 0) {
        const bool passed = passes(actual, right.value[r], right.bound[r]);
        (passed ? fit.unknown_right : fit.unknown_wrong) += 1;
        continue;
      }
      const double value = predicted.value[p], bound = predicted.bound[p];
      if (bound == kInfinity && std::isfinite(value)) continue;
      ++fit.judged;
      fit.worst = std::max(fit.worst, residual_over_bound(actual, value, bound));
      const double off = residual_over_bound(actual, right.value[r], right.bound[r]);
      if (off > furthest) {
        furthest = off;
        distance = std::fabs(actual - right.value[r]);
        width = std::isfinite(value) ? bound : 0;
      }
    }
  }
  fit.explained = fit.worst <= 1 && fit.judged + fit.unknown_wrong > 0;
  // NaN: the right value or what was recorded has no distance.
  if (rows.wrong[at] != 0 && furthest > 0 && width > distance) fit.explained = false;
  return fit;
}

void Tally::add(const RowFit& fit, bool wrong) {
  ++rows;
  explained += fit.explained;
  near += !fit.explained && fit.worst > 1 && fit.worst <= kNearMiss;
  unknown_wrong += fit.unknown_wrong;
  unknown_right += fit.unknown_right;
  worst = std::max(worst, fit.worst);
  if (!wrong) return;
  ++wrong_rows;
  wrong_explained += fit.explained;
  judged_wrong_rows += fit.judged > 0;
  wrong_worst.push_back(static_cast<float>(fit.worst));
}

void Tally::add(const Tally& other) {
  rows += other.rows;
  explained += other.explained;
  wrong_rows += other.wrong_rows;
  wrong_explained += other.wrong_explained;
  near += other.near;
  unknown_wrong += other.unknown_wrong;
  unknown_right += other.unknown_right;
  judged_wrong_rows += other.judged_wrong_rows;
  worst = std::max(worst, other.worst);
  wrong_worst.insert(wrong_worst.end(), other.wrong_worst.begin(), other.wrong_worst.end());
}

double Tally::median_wrong() const {
  if (wrong_worst.empty()) return 0;
  std::vector<float> sorted = wrong_worst;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

bool inside(const Tally& t) {
  const std::int64_t unknown = t.unknown_wrong + t.unknown_right;
  if (unknown > 0 &&
      static_cast<double>(t.unknown_wrong) < kUnknownPrecision * static_cast<double>(unknown))
    return false;
  const std::int64_t allowed = (t.rows + kRowsPerNearMiss - 1) / kRowsPerNearMiss;
  return t.wrong_explained > 0 && t.explained + t.near >= t.rows && t.near <= allowed;
}

}  // namespace attn_diag::matching
