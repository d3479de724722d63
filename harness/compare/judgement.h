// The rule of compare.h: how far a cell may be from what is expected, and how a cell at some distance is judged.
// cells.h judges runs of cells by the same rule, many at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "harness/capture/reference_rows.h"
#include "harness/compare/accumulator.h"

namespace attn_diag {

// How far each cell of a tensor may be from what is expected: the reference's bound or the tolerance's atol and rtol,
// and with it what is uncertain about a tensor that was reconstructed. The only reader of these four.
class Limits {
 public:
  // For a recorded tensor against the reference.
  Limits(const Tolerance& tolerance, const TensorData& actual)
      : x_tolerance(tolerance), x_uncertain{&actual, nullptr} {}
  // For two captures, each of which may be a bound away from the exact value.
  Limits(const Tolerance& tolerance, const TensorData& actual, const TensorData& expected)
      : x_tolerance(tolerance), x_uncertain{&actual, &expected}, x_bounds(kBoundsApart) {}
  // For two files of recorded tensors, likewise.
  explicit Limits(const Tolerance& tolerance)
      : x_tolerance(tolerance), x_uncertain{nullptr, nullptr}, x_bounds(kBoundsApart) {}

  // The limit of flat cell `cell`. `bound`: the reference's, not read where the tolerance does not use it.
  double of(std::int64_t cell, double bound, double expected) const {
    double limit = x_tolerance.use_bound ? x_bounds * bound : by_tolerance(expected);
    for (const TensorData* data : x_uncertain)
      if (data != nullptr) limit += uncertainty(*data, cell);
    return limit;
  }

  // As of() without a bound, for a cell that was not reconstructed. Finite: a user's own tolerance judges every cell.
  double by_tolerance(double expected) const {
    const double relative = std::isfinite(expected) ? x_tolerance.rtol * std::fabs(expected) : 0.0;
    return std::fmin(x_tolerance.atol + relative, std::numeric_limits<double>::max());
  }

  // Adds cells `at` and the n - 1 that follow; `bound` is the first one's, or null where the tolerance uses none.
  void add(CellAccumulator& to, std::int64_t at, std::int64_t n, TypedCells actual,
           TypedCells expected, const double* bound) const;

 private:
  // Nothing is known about what was reconstructed from NaN.
  static double uncertainty(const TensorData& data, std::int64_t cell) {
    if (data.uncertainty.empty()) return 0.0;
    const auto x = static_cast<double>(data.uncertainty[static_cast<std::size_t>(cell)]);
    return std::isnan(x) ? HUGE_VAL : x;
  }

  Tolerance x_tolerance;
  const TensorData* x_uncertain[2];
  double x_bounds = 1;
};

struct Judgement {
  // Whether the cell could fail. Where the limit is infinite nothing can be said of it: it is not counted as compared,
  // and is no mismatch.
  bool judged = false;
  bool passes = false;
  // Error over limit; 0 where there is no error or the cell is not judged, +inf where no multiple of the limit would do.
  double ratio = 0;
};

// Equal values (infinities of one sign among them) and NaN where NaN is expected pass; else the error must be finite and
// within the limit. Written positively: NaN never slips through. What is not judged passes.
inline Judgement judge_cell(double actual, double expected, double limit) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool judged = limit != kInfinity || std::isinf(expected);
  const bool equal = actual == expected || (std::isnan(actual) && std::isnan(expected));
  if (equal || !judged) return {judged, true, 0.0};
  const double err = std::fabs(actual - expected), quotient = err / limit;
  if (std::isfinite(err) && err <= limit) return {true, true, quotient};
  return {true, false, quotient >= 1 ? quotient : kInfinity};
}

}  // namespace attn_diag
