#include "harness/diagnose/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

namespace attn_diag::matching {
namespace {

constexpr int kFitRows = 3;
constexpr int kGrid = 17;
constexpr int kGoldenSteps = 36;  // leaves 3e-8 of the interval
constexpr double kHopeless = 60;  // of one cell that is NaN or infinite on one side only

// Where a row is 1000 bounds away it should matter little more than where it is 100: outliers are left
// to the verdict.
double penalty(double residual) {
  return std::isfinite(residual) ? std::log1p(residual * residual) : kHopeless;
}

class Fitter {
 public:
  Fitter(const Evidence& evidence, const reference::PredictionInputs& c,
         const reference::Variant& variant, const Rows& rows, std::size_t depth)
      : x_evidence(evidence), x_case(c), x_variant(variant), x_rows(rows) {
    x_at = rows_to_fit(evidence, rows, depth, kFitRows);
    for (const std::size_t at : x_at) x_row.push_back(rows.row[at]);
  }

  Fitted run() {
    const reference::FreeParameter& free = *x_variant.free;
    std::vector<double> places = grid();
    std::vector<double> score(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) score[i] = loss(places[i]);
    // Two valleys are followed: a right one that is narrow may not be the deepest on the grid.
    std::vector<std::size_t> valleys;
    for (std::size_t i = 0; i < places.size(); ++i)
      if ((i == 0 || score[i] <= score[i - 1]) &&
          (i + 1 == places.size() || score[i] <= score[i + 1]))
        valleys.push_back(i);
    std::stable_sort(valleys.begin(), valleys.end(),
                     [&](std::size_t a, std::size_t b) { return score[a] < score[b]; });
    double best = places[valleys.front()], lowest = score[valleys.front()];
    for (std::size_t v = 0; v < std::min<std::size_t>(2, valleys.size()); ++v) {
      const std::size_t i = valleys[v];
      const double x =
          golden(places[i == 0 ? 0 : i - 1], places[std::min(i + 1, places.size() - 1)]);
      if (const double at = loss(x); at < lowest) {
        lowest = at;
        best = x;
      }
    }
    std::optional<reference::ParameterValue> named;
    double named_loss = 0;
    for (const reference::ParameterValue& value : free.named) {
      const double at = loss(value.value);
      if (!x_within || (named && at >= named_loss)) continue;
      named = value;
      named_loss = at;
    }
    if (named) return {x_variant.at(named->value, named->named), Generality::kNamed};
    return {x_variant.at(best), Generality::kFitted};
  }

 private:
  bool by_magnitude() const { return x_variant.free->low > 0 && x_variant.free->high > 0; }

  std::vector<double> grid() const {
    const reference::FreeParameter& free = *x_variant.free;
    std::vector<double> places = free.starts;
    for (const reference::ParameterValue& value : free.named) places.push_back(value.value);
    for (int i = 0; i < kGrid; ++i) {
      const double part = static_cast<double>(i) / (kGrid - 1);
      places.push_back(by_magnitude() ? free.low * std::pow(free.high / free.low, part)
                                      : free.low + part * (free.high - free.low));
    }
    std::erase_if(places, [&](double x) { return !(x >= free.low && x <= free.high); });
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }

  // Sum over the cells of the rows, and whether all of them are within their bounds.
  double loss(double x) {
    reference::predict(x_case, x_row, x_variant.at(x).deviation, x_evidence.mask(), x_out);
    double sum = 0;
    x_within = true;
    for (const Tensor t : x_evidence.tensors()) {
      const auto n = static_cast<std::size_t>(x_evidence.cells(t));
      const reference::Prediction::Values& predicted = x_out[t];
      if (predicted.value.empty()) continue;
      for (std::size_t r = 0; r < x_at.size(); ++r)
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t p = r * n + i;
          if (predicted.known[p] == 0) continue;
          const double actual = x_rows.actual[static_cast<std::size_t>(t)][x_at[r] * n + i];
          // A bound that is beyond any number makes nothing fit.
          const double residual =
              predicted.bound[p] > kNoBound
                  ? std::numeric_limits<double>::infinity()
                  : residual_over_bound(actual, predicted.value[p], predicted.bound[p]);
          x_within = x_within && residual <= 1;
          sum += penalty(residual);
        }
    }
    return sum;
  }

  double golden(double low, double high) {
    const bool logarithmic = by_magnitude();
    const auto to = [&](double x) { return logarithmic ? std::log(x) : x; };
    const auto from = [&](double y) { return logarithmic ? std::exp(y) : y; };
    double a = to(low), b = to(high);
    const double part = std::numbers::phi - 1;
    double x = b - part * (b - a), y = a + part * (b - a);
    double fx = loss(from(x)), fy = loss(from(y));
    for (int i = 0; i < kGoldenSteps; ++i) {
      if (fx <= fy) {
        b = y;
        y = x;
        fy = fx;
        x = b - part * (b - a);
        fx = loss(from(x));
      } else {
        a = x;
        x = y;
        fx = fy;
        y = a + part * (b - a);
        fy = loss(from(y));
      }
    }
    return from((a + b) / 2);
  }

  const Evidence& x_evidence;
  const reference::PredictionInputs& x_case;
  const reference::Variant& x_variant;
  const Rows& x_rows;
  std::vector<std::size_t> x_at;
  std::vector<reference::RowIndex> x_row;
  reference::Prediction x_out;
  bool x_within = false;
};

}  // namespace

std::vector<std::size_t> rows_to_fit(const Evidence& evidence, const Rows& rows, std::size_t depth,
                                     int n) {
  std::vector<std::size_t> finite, rest;
  for (std::size_t at = 0; at < std::min(depth, rows.size()); ++at) {
    if (rows.wrong[at] == 0) continue;
    bool is_finite = true;
    for (const Tensor t : evidence.tensors()) {
      const auto cells = static_cast<std::size_t>(evidence.cells(t));
      const std::vector<double>& values = rows.actual[static_cast<std::size_t>(t)];
      for (std::size_t i = 0; i < cells; ++i)
        is_finite = is_finite && !std::isnan(values[at * cells + i]);
    }
    (is_finite ? finite : rest).push_back(at);
  }
  finite.insert(finite.end(), rest.begin(), rest.end());
  finite.resize(std::min(finite.size(), static_cast<std::size_t>(n)));
  return finite;
}

Fitted fit(const Evidence& evidence, const reference::PredictionInputs& c,
           const reference::Variant& variant, const Rows& rows, std::size_t depth) {
  if (!variant.free) return {variant, Generality::kFixed};
  return Fitter(evidence, c, variant, rows, depth).run();
}

}  // namespace attn_diag::matching
