// Bit patterns of the 8-bit floating-point types (Micikevicius et al., "FP8 Formats for Deep Learning",
// 2022), to and from wider numbers.
#pragma once

#include "attn_diag_host/small_float.h"

namespace attn_diag::host {

struct E4m3 {
  static constexpr int kFractionBits = 3, kLeastExponent = -6;
  static constexpr std::uint8_t kMost = 0x7E, kOverflow = 0x7F;  // 448; there is no infinity
};
struct E5m2 {
  static constexpr int kFractionBits = 2, kLeastExponent = -14;
  static constexpr std::uint8_t kMost = 0x7B, kOverflow = 0x7C;  // 57344; infinity
};

// x rounded to nearest, ties to even; too large is the largest number if `saturate`, else infinity or, in
// e4m3, NaN. NaN is 0x7F.
template <class Format>
inline std::uint8_t fp8_bits(double x, bool saturate) {
  if (x != x) return 0x7F;
  const std::uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const double magnitude = std::fabs(x);
  const unsigned overflow = saturate ? Format::kMost : Format::kOverflow;
  if (magnitude == 0) return sign;
  if (magnitude > 0x1p17) return static_cast<std::uint8_t>(sign | overflow);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = exponent - 1 > Format::kLeastExponent ? exponent - 1 : Format::kLeastExponent;
  // In units of the last place; with the leading one, which raises the exponent field by one.
  const auto units = static_cast<unsigned>(
      std::nearbyint(std::ldexp(magnitude, Format::kFractionBits - exponent)));
  const unsigned code =
      units + (static_cast<unsigned>(exponent - Format::kLeastExponent) << Format::kFractionBits);
  return static_cast<std::uint8_t>(sign | (code > Format::kMost ? overflow : code));
}

inline float fp8_value(std::uint8_t bits, E5m2) {
  return half_value(static_cast<std::uint16_t>(bits << 8));  // the upper half of binary16
}
inline float fp8_value(std::uint8_t bits, E4m3) {
  if ((bits & 0x7F) == 0x7F) return half_value(0x7FFF);
  // As fields of binary16 they mean a number whose exponent is 8 too low.
  const auto fields = static_cast<std::uint16_t>((bits & 0x80) << 8 | (bits & 0x7F) << 7);
  return half_value(fields) * 256.0f;
}

}  // namespace attn_diag::host
