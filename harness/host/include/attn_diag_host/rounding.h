// Rounding in a direction that the caller names: down, up, towards zero.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "attn_diag_host/qualifiers.h"

namespace attn_diag::host {

enum class Rounding : std::uint8_t { kNearest, kTowardsZero, kDown, kUp };

// The neighbour of the number of these bits (sign and magnitude) below or above it.
template <class Bits>
constexpr Bits neighbour(Bits bits, bool below) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  if (static_cast<Bits>(bits & ~kSign) == 0) return static_cast<Bits>(below ? kSign | 1 : 1);
  const bool negative = (bits & kSign) != 0;
  return static_cast<Bits>(negative == below ? bits + 1 : bits - 1);
}

// `bits`, of value `nearest`, is x rounded to nearest; returns x rounded in the direction. An infinity
// that is too far becomes the largest number.
template <class Bits, class T>
constexpr Bits redirected(Bits bits, T nearest, T x, Rounding rounding) {
  const bool above = nearest > x, below = nearest < x;
  if (rounding == Rounding::kTowardsZero) rounding = x > 0 ? Rounding::kDown : Rounding::kUp;
  if (rounding == Rounding::kDown && above) return neighbour(bits, true);
  if (rounding == Rounding::kUp && below) return neighbour(bits, false);
  return bits;
}

inline float rounded_to_float(double x, Rounding rounding) {
  const auto nearest = static_cast<float>(x);
  if (rounding == Rounding::kNearest || nearest != nearest) return nearest;
  const auto bits = __builtin_bit_cast(std::uint32_t, nearest);
  return __builtin_bit_cast(float, redirected<std::uint32_t, double>(bits, nearest, x, rounding));
}

// The exact number is x plus something with the sign of `rest`. Returns the double on that side whose last bit is
// odd: rounding it to float in any direction is rounding the exact number.
inline double sticky(double x, double rest) {
  auto bits = __builtin_bit_cast(std::uint64_t, x);
  if (rest == 0 || rest != rest || (bits & 1u) != 0 || x != x || x - x != 0) return x;
  bits = neighbour(bits, rest < 0);
  return __builtin_bit_cast(double, bits);
}
inline double sticky_sum(double a, double b) {
  const double sum = a + b, virtual_b = sum - a;  // Knuth's TwoSum
  return sticky(sum, (a - (sum - virtual_b)) + (b - virtual_b));
}
inline double sticky_quotient(float a, float b) {
  const double quotient = static_cast<double>(a) / b;
  const double rest = std::fma(-quotient, static_cast<double>(b), static_cast<double>(a));
  return sticky(quotient, b < 0 ? -rest : rest);
}
inline double sticky_root(float x) {
  const double root = std::sqrt(static_cast<double>(x));
  return sticky(root, std::fma(-root, root, static_cast<double>(x)));
}

// x rounded to an integer. As on the device, what T cannot hold becomes T's nearest; NaN is 0 in 32 bits
// and the top bit in 64.
template <class T>
inline T rounded_to_integer(double x, Rounding rounding) {
  const double whole = rounding == Rounding::kNearest       ? std::nearbyint(x)
                       : rounding == Rounding::kTowardsZero ? std::trunc(x)
                       : rounding == Rounding::kDown        ? std::floor(x)
                                                            : std::ceil(x);
  constexpr double kLimit = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
  if (whole != whole) return sizeof(T) < 8 ? T{0} : static_cast<T>(std::uint64_t{1} << 63);
  if (whole >= kLimit) return std::numeric_limits<T>::max();
  if (whole < static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(whole);
}

// x as a double, sticky if it has more than 53 bits.
template <class T>
inline double sticky_integer(T x) {
  if constexpr (sizeof(T) <= 4) return static_cast<double>(x);
  constexpr T kLow = static_cast<T>(0xFFFFFFFF);  // both parts are doubles
  const T low = static_cast<T>(x & kLow);
  return sticky_sum(static_cast<double>(x - low), static_cast<double>(low));
}

}  // namespace attn_diag::host
