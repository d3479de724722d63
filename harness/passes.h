// The rule of compare.h for one cell, spelt out.
#pragma once

#include <cmath>

namespace attn_diag {

// Equal values (infinities of one sign among them) and NaN where NaN is expected pass; else the
// error must be finite and within the limit. Written positively: NaN never slips through.
inline bool passes(double actual, double expected, double limit) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
  const double err = std::fabs(actual - expected);
  return std::isfinite(err) && err <= limit;
}

}  // namespace attn_diag
