// The rule of compare.h for one cell, spelt out.
#pragma once

#include <cmath>

namespace attn_diag {

// Equal values (infinities of one sign among them) and NaN where NaN is expected pass; else the
// error must be finite and within the limit. Written positively: NaN never slips through. Where the
// bound itself is infinite nothing can be said of a cell: it is not counted as compared, and is no
// mismatch.
inline bool passes(double actual, double expected, double limit) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
  if (limit == HUGE_VAL && !std::isinf(expected)) return true;
  const double err = std::fabs(actual - expected);
  return std::isfinite(err) && err <= limit;
}

}  // namespace attn_diag
