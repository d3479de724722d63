#include "reference/counterfactual/narrow.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
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
    case Narrow::kTf32Cut:
      return {10, -126, 0x1.ffcp127, false};
    case Narrow::kFp8E4m3:
      return {3, -6, 448, true};
    case Narrow::kFp8E5m2:
      return {2, -14, 57344, false};
    case Narrow::kNone:
      break;
  }
  return {52, -1022, std::numeric_limits<double>::max(), false};
}

// For normal numbers. Faster than std::ilogb and std::ldexp, which are calls: this is done for every product of q.k.
int exponent(double x) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;
}
double power_of_2(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace

double round_to(Narrow type, double x) {
  if (type == Narrow::kNone || x == 0 || !std::isfinite(x)) return x;
  const Format f = format_of(type);
  const int bits = std::max(exponent(x), f.least_exponent) - f.mantissa_bits;
  const double scaled = x * power_of_2(-bits);
  const bool cut = type == Narrow::kFp16Cut || type == Narrow::kBf16Cut || type == Narrow::kTf32Cut;
  const double rounded = (cut ? std::trunc(scaled) : std::nearbyint(scaled)) * power_of_2(bits);
  if (std::fabs(rounded) <= f.largest) return rounded;
  return std::copysign(f.saturates ? f.largest : std::numeric_limits<double>::infinity(), x);
}

void round_both(Narrow type, double& value, double& error) {
  if (type == Narrow::kNone) return;
  const double low = round_to(type, value - error), high = round_to(type, value + error);
  if (low == high || std::isnan(value)) {
    value = low;
    error = 0;
    return;
  }
  value = std::isfinite(high - low) ? (low + high) / 2 : 0;
  error = (high - low) / 2;
}

}  // namespace attn_diag::reference
