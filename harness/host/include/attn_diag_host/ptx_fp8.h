// 8-bit floating-point numbers of inline PTX's cvt: e4m3 and e5m2, to nearest even, .satfinite.
#pragma once

#include "attn_diag_host/ptx_arithmetic.h"

namespace attn_diag::host::ptx {

struct E4M3 {
  static constexpr int kFraction = 3, kBias = 7;
  static constexpr float kLargest = 448.0f;
  static constexpr std::uint8_t kLargestBits = 0x7E, kNan = 0x7F;
};
struct E5M2 {
  static constexpr int kFraction = 2, kBias = 15;
  static constexpr float kLargest = 57344.0f;
  static constexpr std::uint8_t kLargestBits = 0x7B, kNan = 0x7F;
};

template <class Format>
std::uint8_t fp8_bits(float x) {
  const std::uint8_t sign = std::signbit(x) ? 0x80 : 0;
  if (x != x) return Format::kNan;
  const float magnitude = std::fabs(x);
  if (magnitude >= Format::kLargest) return sign | Format::kLargestBits;
  // In units of the last place of the number's binade, or of the subnormals.
  constexpr int kLeastExponent = 1 - Format::kBias;
  int exponent = magnitude > 0 ? std::ilogb(magnitude) : kLeastExponent;
  exponent = exponent < kLeastExponent ? kLeastExponent : exponent;
  const auto units =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, Format::kFraction - exponent)));
  // The implicit one of a normal number adds itself to the biased exponent, as does a carry.
  const int bits = ((exponent - kLeastExponent) << Format::kFraction) + units;
  return static_cast<std::uint8_t>(sign |
                                   (bits > Format::kLargestBits ? Format::kLargestBits : bits));
}

template <class Format>
float fp8_value(std::uint8_t bits) {
  const int magnitude = bits & 0x7F;
  const int exponent = magnitude >> Format::kFraction;
  const int fraction = magnitude & ((1 << Format::kFraction) - 1);
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  if (Format::kFraction == 3 ? magnitude == 0x7F : exponent == 31 && fraction != 0)
    return std::numeric_limits<float>::quiet_NaN();
  if (Format::kFraction == 2 && exponent == 31) return sign * HUGE_VALF;
  const int units = exponent == 0 ? fraction : fraction + (1 << Format::kFraction);
  const int scale = (exponent == 0 ? 1 : exponent) - Format::kBias - Format::kFraction;
  return sign * std::ldexp(static_cast<float>(units), scale);
}

// The first operand is the upper byte.
template <class Format>
std::uint16_t fp8_from_floats(float high, float low) {
  return static_cast<std::uint16_t>(fp8_bits<Format>(high) << 8 | fp8_bits<Format>(low));
}
template <class Format, class T>
std::uint16_t fp8_from_pair(T pair) {
  return fp8_from_floats<Format>(pair.high.value(), pair.low.value());
}
template <class Format>
F16x2 pair_from_fp8(std::uint16_t bits) {
  return {F16::of(fp8_value<Format>(static_cast<std::uint8_t>(bits))),
          F16::of(fp8_value<Format>(static_cast<std::uint8_t>(bits >> 8)))};
}

}  // namespace attn_diag::host::ptx
