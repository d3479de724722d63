// The rule of compare.h for one cell, spelt out.
#pragma once

#include <cmath>
#include <cstdint>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"

namespace attn_diag {

// How far a cell may be from the expected value, as far as its tensor is what a kernel wrote.
inline double cell_limit(const Tolerance& tolerance, double bound, double expected) {
  if (tolerance.use_bound) return bound;
  return tolerance.atol + (std::isfinite(expected) ? tolerance.rtol * std::fabs(expected) : 0.0);
}

// What comes to the limit of a cell that was reconstructed; of what was reconstructed from NaN nothing is known.
inline double uncertainty_of(const TensorData& data, std::int64_t cell) {
  if (data.uncertainty.empty()) return 0.0;
  const auto x = static_cast<double>(data.uncertainty[static_cast<std::size_t>(cell)]);
  return std::isnan(x) ? HUGE_VAL : x;
}

// Whether a cell could fail. Where the bound is infinite nothing can be said of it: it is not counted as
// compared, and is no mismatch.
inline bool is_judged(double expected, double limit) {
  return limit != HUGE_VAL || std::isinf(expected);
}

// Equal values (infinities of one sign among them) and NaN where NaN is expected pass; else the
// error must be finite and within the limit. Written positively: NaN never slips through. What is not
// judged passes.
inline bool passes(double actual, double expected, double limit) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
  if (!is_judged(expected, limit)) return true;
  const double err = std::fabs(actual - expected);
  return std::isfinite(err) && err <= limit;
}

}  // namespace attn_diag
