// cvt of inline PTX, but for 8-bit floating-point numbers.
#pragma once

#include "attn_diag_host/ptx_arithmetic.h"

namespace attn_diag::host::ptx {

template <Rounding kRounding, class V>
V round_integral(V x) {
  switch (kRounding) {
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    case Rounding::kUp:
      return std::ceil(x);
    default:
      return std::nearbyint(x);
  }
}
template <Rounding kRounding, class T>
T to_integral(T x) {
  return from_float<T>(round_integral<kRounding>(to_float(x)));
}

// x rounded to float: of an exact value, in the direction asked for.
template <Rounding kRounding>
float round_to_float(double x) {
  const float nearest = static_cast<float>(x);
  if (kRounding == Rounding::kNearest || static_cast<double>(nearest) == x || x != x)
    return nearest;
  const bool too_large = static_cast<double>(nearest) > x;
  const bool wants_larger = kRounding == Rounding::kUp || (kRounding == Rounding::kZero && x < 0);
  if (wants_larger) return too_large ? nearest : std::nextafter(nearest, HUGE_VALF);
  return too_large ? std::nextafter(nearest, -HUGE_VALF) : nearest;
}

// A 16-bit type by its own rounding to nearest, corrected by one step where that went the wrong way.
template <Rounding kRounding, class T>
T round_to_small(double x) {
  const T nearest = T::of_double(x);
  const auto back = static_cast<double>(nearest.value());
  if (kRounding == Rounding::kNearest || back == x || x != x) return nearest;
  const bool wants_larger = kRounding == Rounding::kUp || (kRounding == Rounding::kZero && x < 0);
  if ((back > x) == wants_larger) return nearest;
  // Neighbours in value are neighbours in bits; away from zero is one more.
  const bool away = wants_larger == (x > 0);
  const auto step = static_cast<std::uint16_t>(away ? 1 : 0xFFFF);
  return T{static_cast<std::uint16_t>(nearest.bits + step)};
}

// Results past the ends of an integer type are its ends; NaN is 0.
template <class To, class V>
To clamp_to(V x) {
  if (x != x) return 0;
  constexpr To kLeast = std::numeric_limits<To>::min(), kMost = std::numeric_limits<To>::max();
  if (x <= static_cast<V>(kLeast)) return kLeast;
  if (x >= static_cast<V>(kMost)) return kMost;
  return static_cast<To>(x);
}

template <class To, Rounding kRounding, class From>
To convert(From from) {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(from);
  } else if constexpr (std::is_integral_v<From>) {
    if constexpr (std::is_same_v<To, double>)
      return static_cast<double>(from);
    else if constexpr (std::is_same_v<To, float>)
      return sizeof(From) == 8 && kRounding == Rounding::kNearest
                 ? static_cast<float>(from)
                 : round_to_float<kRounding>(static_cast<double>(from));
    else
      return round_to_small<kRounding, To>(static_cast<double>(from));
  } else {
    const auto value = to_float(from);
    if constexpr (std::is_integral_v<To>)
      return clamp_to<To>(value);
    else if constexpr (std::is_same_v<To, double>)
      return static_cast<double>(value);
    else if constexpr (std::is_same_v<To, float>)
      return round_to_float<kRounding>(static_cast<double>(value));
    else
      return round_to_small<kRounding, To>(static_cast<double>(value));
  }
}

template <class To, Rounding kRounding, class From>
To convert_saturated(From from) {
  if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    const auto wide = static_cast<Signed128>(from);
    constexpr auto kLeast = static_cast<Signed128>(std::numeric_limits<To>::min());
    constexpr auto kMost = static_cast<Signed128>(std::numeric_limits<To>::max());
    return static_cast<To>(wide < kLeast ? kLeast : wide > kMost ? kMost : wide);
  } else if constexpr (std::is_integral_v<To>) {
    return convert<To, kRounding>(from);
  } else {
    return saturate(convert<To, kRounding>(from));
  }
}

// .satfinite: infinities are the largest numbers.
template <class T>
T finite(T a) {
  return by_parts(a, [](auto x) {
    using V = decltype(x);
    if constexpr (is_small<V>) {
      constexpr std::uint16_t kInfinity = std::is_same_v<V, F16> ? 0x7C00 : 0x7F80;
      const bool infinite = (x.bits & 0x7FFFu) == kInfinity;
      return infinite ? V{static_cast<std::uint16_t>(x.bits - 1)} : x;
    } else {
      return x;
    }
  });
}

// The first operand is the upper half.
template <class To, Rounding kRounding>
To pair(float high, float low, bool satfinite) {
  using Small = decltype(To{}.low);
  const To result = {convert<Small, kRounding>(low), convert<Small, kRounding>(high)};
  return satfinite ? finite(result) : result;
}

// 10 bits of fraction; kAway: ties away from zero, as the only rounding of sm_80.
template <Rounding kRounding>
std::uint32_t tf32(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  if ((bits & 0x7F800000u) == 0x7F800000u) return bits & 0xFFFFE000u;
  if (kRounding == Rounding::kAway) return (bits + 0x1000u) & 0xFFFFE000u;
  if (kRounding == Rounding::kZero) return bits & 0xFFFFE000u;
  return (bits + 0xFFFu + (bits >> 13 & 1u)) & 0xFFFFE000u;
}

}  // namespace attn_diag::host::ptx
