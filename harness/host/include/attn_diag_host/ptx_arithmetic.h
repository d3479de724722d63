// Arithmetic of inline PTX.
#pragma once

#include <cmath>
#include <limits>

#include "attn_diag_host/float_intrinsics.h"
#include "attn_diag_host/ptx_values.h"

namespace attn_diag::host::ptx {

enum class Rounding { kNearest, kZero, kDown, kUp, kAway };

// For 16-bit types through float, which rounds once: float has more than twice their bits.
template <class T, class F>
auto by_parts(T a, F&& f) {
  if constexpr (is_pair<T>)
    return T{f(a.low), f(a.high)};
  else
    return f(a);
}
template <class T, class F>
auto by_parts(T a, T b, F&& f) {
  if constexpr (is_pair<T>)
    return T{f(a.low, b.low), f(a.high, b.high)};
  else
    return f(a, b);
}
template <class T>
auto to_float(T x) {
  if constexpr (is_small<T>)
    return x.value();
  else
    return x;
}
template <class T, class V>
T from_float(V x) {
  if constexpr (is_small<T>)
    return T::of(x);
  else
    return x;
}

#define ATTN_DIAG_PTX_ROUNDED(name, op)                                          \
  template <Rounding kRounding, class T>                                         \
  T name(T a, T b) {                                                             \
    return by_parts(a, b, [](auto x, auto y) {                                   \
      using V = decltype(x);                                                     \
      if constexpr (std::is_same_v<V, float> && kRounding != Rounding::kNearest) \
        return kRounding == Rounding::kZero   ? ::__f##name##_rz(x, y)           \
               : kRounding == Rounding::kDown ? ::__f##name##_rd(x, y)           \
                                              : ::__f##name##_ru(x, y);          \
      else                                                                       \
        return from_float<V>(to_float(x) op to_float(y));                        \
    });                                                                          \
  }
ATTN_DIAG_PTX_ROUNDED(add, +)
ATTN_DIAG_PTX_ROUNDED(sub, -)
ATTN_DIAG_PTX_ROUNDED(mul, *)
ATTN_DIAG_PTX_ROUNDED(div, /)
#undef ATTN_DIAG_PTX_ROUNDED

template <Rounding kRounding, class T>
T fma(T a, T b, T c) {
  if constexpr (is_pair<T>) {
    return {fma<kRounding>(a.low, b.low, c.low), fma<kRounding>(a.high, b.high, c.high)};
  } else if constexpr (is_small<T>) {
    return T::of(fused_multiply_add_to_odd(a.value(), b.value(), c.value()));
  } else if constexpr (std::is_same_v<T, float> && kRounding != Rounding::kNearest) {
    return kRounding == Rounding::kZero   ? ::__fmaf_rz(a, b, c)
           : kRounding == Rounding::kDown ? ::__fmaf_rd(a, b, c)
                                          : ::__fmaf_ru(a, b, c);
  } else {
    return std::fma(a, b, c);
  }
}

// Integers wrap around.
template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class T>
T sub(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
inline std::int32_t clamp_to_int32(std::int64_t x) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(x < kLeast ? kLeast : x > kMost ? kMost : x);
}
inline std::int32_t add_saturated(std::int32_t a, std::int32_t b) {
  return clamp_to_int32(std::int64_t{a} + b);
}
inline std::int32_t sub_saturated(std::int32_t a, std::int32_t b) {
  return clamp_to_int32(std::int64_t{a} - b);
}
__extension__ typedef __int128 Signed128;
__extension__ typedef unsigned __int128 Unsigned128;
template <class T>
T mul_lo(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class T>
T mul_hi(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>;
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
}
template <class T>
auto mul_wide(T a, T b) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4, "PTX: mul.wide is of 16-bit and 32-bit integers");
  using Unsigned = typename BitsOf<2 * sizeof(T)>::Type;
  using Wide = std::conditional_t<std::is_signed_v<T>, std::make_signed_t<Unsigned>, Unsigned>;
  return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b));
}
// By zero: all bits, as sm_80 gives.
template <class T>
T div(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return sub(T{0}, a);
  return static_cast<T>(a / b);
}
template <class T>
T rem(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}
template <class A, class B, class C>
C dp4a(A a, B b, C c) {
  std::int64_t sum = c;
  for (unsigned i = 0; i < 4; ++i) {
    const auto x = static_cast<std::uint8_t>(static_cast<std::uint32_t>(a) >> (8 * i));
    const auto y = static_cast<std::uint8_t>(static_cast<std::uint32_t>(b) >> (8 * i));
    sum += (std::is_signed_v<A> ? std::int64_t{static_cast<std::int8_t>(x)} : x) *
           (std::is_signed_v<B> ? std::int64_t{static_cast<std::int8_t>(y)} : y);
  }
  return static_cast<C>(sum);
}

template <class T>
bool is_nan(T x) {
  const auto value = to_float(x);
  return value != value;
}
template <class T>
T quiet_nan() {
  if constexpr (is_small<T>)
    return T{0x7FFF};
  else
    return __builtin_bit_cast(float, 0x7FFFFFFFu);
}
// One NaN: the other argument. -0 is less than +0.
template <bool kLess, class T>
T select_extreme(T a, T b) {
  return by_parts(a, b, [](auto x, auto y) {
    if constexpr (std::is_integral_v<decltype(x)>) {
      return kLess == (y < x) ? y : x;
    } else {
      if (is_nan(x)) return is_nan(y) ? static_cast<decltype(x)>(quiet_nan<decltype(x)>()) : y;
      if (is_nan(y)) return x;
      const auto p = to_float(x), q = to_float(y);
      if (p == q) return std::signbit(p) == kLess ? x : y;
      return (q < p) == kLess ? y : x;
    }
  });
}
template <class T>
T min(T a, T b) {
  return select_extreme<true>(a, b);
}
template <class T>
T max(T a, T b) {
  return select_extreme<false>(a, b);
}
template <bool kLess, class T>
T select_extreme_or_nan(T a, T b) {
  return by_parts(a, b, [](auto x, auto y) {
    using V = decltype(x);
    return is_nan(x) || is_nan(y) ? static_cast<V>(quiet_nan<V>()) : select_extreme<kLess>(x, y);
  });
}
template <class T>
T min_nan(T a, T b) {
  return select_extreme_or_nan<true>(a, b);
}
template <class T>
T max_nan(T a, T b) {
  return select_extreme_or_nan<false>(a, b);
}

template <class T>
T neg_of(T a) {
  return by_parts(a, [](auto x) {
    using V = decltype(x);
    if constexpr (is_small<V>)
      return V{static_cast<std::uint16_t>(x.bits ^ 0x8000u)};
    else if constexpr (std::is_integral_v<V>)
      return sub(V{0}, x);
    else
      return -x;
  });
}
template <class T>
T abs_of(T a) {
  return by_parts(a, [](auto x) {
    using V = decltype(x);
    if constexpr (is_small<V>)
      return V{static_cast<std::uint16_t>(x.bits & 0x7FFFu)};
    else if constexpr (std::is_integral_v<V>)
      return x < 0 ? sub(V{0}, x) : x;
    else
      return std::fabs(x);
  });
}

// Subnormals as zeros of their sign; of f32 alone, as .ftz is.
template <class T>
T flush(T x) {
  if constexpr (std::is_same_v<T, float>)
    return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  else
    return x;
}
// To [0, 1]; NaN is 0.
template <class T>
T saturate(T a) {
  return by_parts(a, [](auto x) {
    const auto value = to_float(x);
    using V = decltype(x);
    return value >= 1  ? from_float<V>(static_cast<decltype(value)>(1))
           : value > 0 ? x
                       : from_float<V>(static_cast<decltype(value)>(0));
  });
}
// Negative numbers are 0, NaN stays NaN.
template <class T>
T relu(T a) {
  return by_parts(a, [](auto x) {
    using V = decltype(x);
    const auto value = to_float(x);
    if (value != value) return static_cast<V>(quiet_nan<V>());
    return value > 0 ? x : from_float<V>(static_cast<decltype(value)>(0));
  });
}

#define ATTN_DIAG_PTX_FUNCTION(name, expression)                                  \
  template <Rounding, class T>                                                    \
  T name(T a) {                                                                   \
    return by_parts(a, [](auto operand) {                                         \
      const auto x = to_float(operand);                                           \
      return from_float<decltype(operand)>(static_cast<decltype(x)>(expression)); \
    });                                                                           \
  }
ATTN_DIAG_PTX_FUNCTION(ex2, std::exp2(x))
ATTN_DIAG_PTX_FUNCTION(lg2, std::log2(x))
ATTN_DIAG_PTX_FUNCTION(rcp, 1 / x)
ATTN_DIAG_PTX_FUNCTION(rsqrt, 1 / std::sqrt(x))
ATTN_DIAG_PTX_FUNCTION(sqrt, std::sqrt(x))
ATTN_DIAG_PTX_FUNCTION(sin, std::sin(x))
ATTN_DIAG_PTX_FUNCTION(cos, std::cos(x))
ATTN_DIAG_PTX_FUNCTION(tanh, std::tanh(x))
#undef ATTN_DIAG_PTX_FUNCTION

// Ordered comparisons are false of NaN, those with u are true.
#define ATTN_DIAG_PTX_COMPARE(name, op)                          \
  template <class T>                                             \
  bool compare_##name(T a, T b) {                                \
    return to_float(a) op to_float(b);                           \
  }                                                              \
  template <class T>                                             \
  bool compare_##name##u(T a, T b) {                             \
    return is_nan(a) || is_nan(b) || to_float(a) op to_float(b); \
  }
ATTN_DIAG_PTX_COMPARE(eq, ==)
ATTN_DIAG_PTX_COMPARE(lt, <)
ATTN_DIAG_PTX_COMPARE(le, <=)
ATTN_DIAG_PTX_COMPARE(gt, >)
ATTN_DIAG_PTX_COMPARE(ge, >=)
#undef ATTN_DIAG_PTX_COMPARE
template <class T>
bool compare_neu(T a, T b) {
  return !(to_float(a) == to_float(b));
}
template <class T>
bool compare_ne(T a, T b) {
  return !is_nan(a) && !is_nan(b) && compare_neu(a, b);
}
template <class T>
bool compare_lo(T a, T b) {
  return static_cast<Bits<T>>(a) < static_cast<Bits<T>>(b);
}
template <class T>
bool compare_ls(T a, T b) {
  return !compare_lo(b, a);
}
template <class T>
bool compare_hi(T a, T b) {
  return compare_lo(b, a);
}
template <class T>
bool compare_hs(T a, T b) {
  return !compare_lo(a, b);
}
template <class T>
bool compare_num(T a, T b) {
  return !is_nan(a) && !is_nan(b);
}
template <class T>
bool compare_nan(T a, T b) {
  return is_nan(a) || is_nan(b);
}
// set: 1.0 for float types, all bits for integers.
template <class T>
T set_value(bool holds) {
  if constexpr (std::is_integral_v<T>)
    return holds ? static_cast<T>(-1) : T{0};
  else
    return from_float<T>(holds ? 1.0f : 0.0f);
}

}  // namespace attn_diag::host::ptx
