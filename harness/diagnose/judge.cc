#include "harness/diagnose/judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/passes.h"

namespace attn_diag::matching {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnknownPrecision = 0.9;
constexpr double kLeastJudged = 0.25;
constexpr double kLeastTelling = 0.1;

double part(std::int64_t x, std::int64_t of) {
  return static_cast<double>(x) / static_cast<double>(std::max<std::int64_t>(1, of));
}

}  // namespace

Rows read_rows(const Evidence& evidence, const reference::Case& c, std::vector<std::int64_t> flat) {
  Rows rows;
  rows.flat = std::move(flat);
  for (const std::int64_t at : rows.flat) {
    rows.row.push_back(evidence.row(at));
    rows.wrong.push_back(evidence.wrong(at) ? 1 : 0);
  }
  for (const Tensor t : evidence.tensors()) {
    rows.actual[static_cast<std::size_t>(t)] = evidence.read(t, rows.flat);
    rows.written[static_cast<std::size_t>(t)] = evidence.written(t, rows.flat);
  }
  reference::predict(c, rows.row, reference::Deviation{}, evidence.mask(), rows.right);
  return rows;
}

double residual_over_bound(double actual, double predicted, double bound) {
  if (actual == predicted || (std::isnan(actual) && std::isnan(predicted))) return 0;
  const double residual = std::fabs(actual - predicted);
  if (!std::isfinite(residual) || !(bound > 0)) return kInfinity;
  return residual / bound;
}

bool contradicts_memory(const Rows& rows, Tensor t, std::size_t cell,
                        const reference::Prediction::Values& predicted, std::size_t at) {
  const std::vector<std::uint8_t>& written = rows.written[static_cast<std::size_t>(t)];
  if (written.empty()) return false;
  if (predicted.unwritten[at] != 0)
    return !std::isnan(rows.actual[static_cast<std::size_t>(t)][cell]);
  return predicted.known[at] != 0 && written[cell] == 0;
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
      if (contradicts_memory(rows, t, r, predicted, p)) fit.worst = kInfinity;
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
  fit.within = fit.worst <= 1;
  fit.by_place = furthest <= 1 && fit.unknown_wrong > 0;
  fit.telling =
      fit.within && rows.wrong[at] != 0 && (fit.by_place || (furthest > 1 && !(width > distance)));
  return fit;
}

void Tally::add(const RowFit& fit, bool wrong) {
  ++rows;
  within += fit.within;
  near += !fit.within && fit.worst <= kNearMiss;
  judged += fit.judged;
  unknown_wrong += fit.unknown_wrong;
  unknown_right += fit.unknown_right;
  worst = std::max(worst, fit.worst);
  if (!wrong) return;
  ++wrong_rows;
  wrong_within += fit.within;
  telling += fit.telling;
  by_place += fit.telling && fit.by_place;
  wrong_worst.push_back(static_cast<float>(fit.worst));
}

void Tally::add(const Tally& other) {
  rows += other.rows;
  within += other.within;
  wrong_rows += other.wrong_rows;
  wrong_within += other.wrong_within;
  telling += other.telling;
  near += other.near;
  judged += other.judged;
  unknown_wrong += other.unknown_wrong;
  unknown_right += other.unknown_right;
  by_place += other.by_place;
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

double judged_share(const Tally& t) {
  return part(t.judged, t.judged + t.unknown_wrong + t.unknown_right);
}

std::int64_t telling_rows(const Tally& t) {
  if (judged_share(t) < kLeastJudged) return 0;
  return t.within + t.near >= t.rows ? t.telling : t.telling - t.by_place;
}

bool inside(const Tally& t) {
  const std::int64_t unknown = t.unknown_wrong + t.unknown_right;
  if (t.by_place > 0 && part(t.unknown_wrong, unknown) < kUnknownPrecision) return false;
  // Rows that tell by their place say nothing for the others.
  const std::int64_t others = t.wrong_rows - t.by_place;
  if (others > 0 && part(t.telling - t.by_place, others) < kLeastTelling) return false;
  const std::int64_t allowed = (t.rows + kRowsPerNearMiss - 1) / kRowsPerNearMiss;
  return t.within + t.near >= t.rows && t.near <= allowed && telling_rows(t) > 0;
}

}  // namespace attn_diag::matching
