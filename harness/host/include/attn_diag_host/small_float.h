// Bit patterns of the 16-bit floating-point types, to and from float, rounding to nearest even.
#pragma once

#include <cmath>

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

// binary16 of x. Overflow gives infinity, NaN 0x7FFF.
inline std::uint16_t half_bits(float x) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  // Normal results: rebias the exponent (127 to 15), add just under half of the last place kept,
  // and one more if that place is odd. A carry into the exponent is right, up to infinity.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results (|x| < 2^-14): adding 0.5 leaves 2^-24 as the last place of the sum.
  const std::uint32_t subnormal =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3F000000u;
  std::uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x47800000u ? 0x7C00u : result;          // 2^16 and more
  result = magnitude > 0x7F800000u ? 0x7FFFu : (result | sign);  // NaN
  return static_cast<std::uint16_t>(result);
}

inline float half_value(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7FFFu) << 13;
  const std::uint32_t exponent = magnitude & 0x0F800000u;
  const std::uint32_t normal = magnitude + (112u << 23);
  const std::uint32_t special = magnitude + (224u << 23);  // infinity and NaN
  // As the fraction of a number of exponent -14, less that number's leading one.
  const std::uint32_t subnormal =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude + (113u << 23)) -
                                            __builtin_bit_cast(float, 113u << 23));
  std::uint32_t result = exponent == 0 ? subnormal : normal;
  result = exponent == 0x0F800000u ? special : result;
  return __builtin_bit_cast(float, result | (static_cast<std::uint32_t>(half & 0x8000u) << 16));
}

inline std::uint16_t bfloat16_bits(float x) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FFFu : rounded);
}

inline float bfloat16_value(std::uint16_t bfloat16) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bfloat16) << 16);
}

// The float nearest to x; if x is not a float, that of its two neighbours with an odd last bit.
// Rounding the result again, to a type with at least two bits less, is then rounding once (Boldo
// and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding
// to odd", IEEE Transactions on Computers 57(4), 2008).
inline float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  std::uint32_t bits = __builtin_bit_cast(std::uint32_t, nearest);
  const double back = nearest;
  const bool other = back != x && x == x && (bits & 1u) == 0;
  bits += other ? (std::fabs(back) > std::fabs(x) ? ~0u : 1u) : 0u;
  return __builtin_bit_cast(float, bits);
}

// a * b + c as above, for a, b, c of a 16-bit type: the product is exact in double.
inline float fused_multiply_add_to_odd(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;
  const double sum = product + c;
  const double virtual_c = sum - product;  // Knuth's TwoSum: error is the exact rest of the sum
  const double error = (product - (sum - virtual_c)) + (c - virtual_c);
  std::uint64_t bits = __builtin_bit_cast(std::uint64_t, sum);
  const bool other = error != 0 && error == error && (bits & 1u) == 0;
  bits += other ? ((error < 0) == (sum > 0) ? ~0ull : 1ull) : 0ull;
  return round_to_odd(__builtin_bit_cast(double, bits));
}

}  // namespace attn_diag::host
