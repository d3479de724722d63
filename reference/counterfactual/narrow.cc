#include "reference/counterfactual/narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn_diag::reference {
namespace {

struct Format {
  int mantissa_bits, least_exponent;
  double largest;
  bool saturates;
};

Format format_of(Narrow type) {
  switch (type) {
    case Narrow::kFp16:
    case Narrow::kFp16Cut:
      return {10, -14, 65504, false};
    case Narrow::kFp16Saturated:
      return {10, -14, 65504, true};
    case Narrow::kBf16:
    case Narrow::kBf16Cut:
      return {7, -126, 0x1.fep127, false};
    case Narrow::kTf32:
      return {10, -126, 0x1.ffcp127, false};
    case Narrow::kFp8E4m3:
      return {3, -6, 448, true};
    case Narrow::kNone:
      break;
  }
  return {52, -1022, std::numeric_limits<double>::max(), false};
}

}  // namespace

double round_to(Narrow type, double x) {
  if (type == Narrow::kNone || x == 0 || !std::isfinite(x)) return x;
  const Format f = format_of(type);
  const double quantum =
      std::ldexp(1.0, std::max(std::ilogb(x), f.least_exponent) - f.mantissa_bits);
  const bool cut = type == Narrow::kFp16Cut || type == Narrow::kBf16Cut;
  const double rounded = (cut ? std::trunc(x / quantum) : std::nearbyint(x / quantum)) * quantum;
  if (std::fabs(rounded) <= f.largest) return rounded;
  return std::copysign(f.saturates ? f.largest : std::numeric_limits<double>::infinity(), x);
}

void round_both(Narrow type, double& value, double& error) {
  if (type == Narrow::kNone) return;
  const double rounded = round_to(type, value);
  const double low = round_to(type, value - error), high = round_to(type, value + error);
  const bool certain = low == high || std::isnan(value);
  value = certain ? rounded : std::isfinite(high - low) ? (low + high) / 2 : 0;
  error = certain ? 0 : (high - low) / 2;
}

}  // namespace attn_diag::reference
