// Mathematical functions. What rounds correctly in CUDA does here; the approximate ones are deterministic
// on every instruction set (no fused multiply-add is used, and the kernel must be compiled with
// -ffp-contract=off) and at least as exact as the device's.
#pragma once

#include <math.h>

#include <cmath>

#include "attn_diag_host/conversions.h"

// e^x with relative error below 2^-23 (CUDA: 2 + floor(1.173 |x|) ulp). Results below
// 2^-126 are subnormal, as without -ftz; -inf gives 0, NaN gives NaN. Written without branches so
// that loops over it vectorise.
inline float __expf(float x) {
  // e^-104 rounds to 0 and e^89 overflows; a NaN passes both comparisons.
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  // x = n ln 2 + f with |f| <= ln(2) / 2. Adding 1.5 * 2^23 rounds to an integer, whose low bits
  // are then those of the sum; kLn2High has 9 trailing zero bits, so that n * kLn2High is exact.
  constexpr float kRound = 12582912.0f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float f = (x - n * kLn2High) - n * kLn2Low;
  // Minimax polynomial of (e^f - 1 - f) / f^2 on [-ln(2)/2, ln(2)/2], error below 2^-28 of e^f.
  float p = 1.38145406e-3f;
  p = p * f + 8.36874545e-3f;
  p = p * f + 4.16683890e-2f;
  p = p * f + 1.66665211e-1f;
  p = p * f + 4.99999940e-1f;
  const float e = 1.0f + (f + f * f * p);
  // 2^n in two factors: the last multiplication alone rounds when the result is subnormal.
  const unsigned int bits = __float_as_uint(shifted) - 0x4B400000u;
  const unsigned int half = static_cast<unsigned int>(static_cast<int>(bits) >> 1);
  const float first = __uint_as_float((half + 127u) << 23);
  const float second = __uint_as_float((bits - half + 127u) << 23);
  return e * first * second;
}
// Correctly rounded in all but rare cases; CUDA promises less.
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __tanhf(float x) { return std::tanh(x); }
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return static_cast<float>(1.0 / std::cbrt(static_cast<double>(x))); }
inline double rcbrt(double x) { return 1.0 / std::cbrt(x); }
inline float normcdff(float x) {
  return static_cast<float>(0.5 * std::erfc(static_cast<double>(x) * -0.70710678118654752440));
}
inline double normcdf(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }
// sin(pi x); x is reduced before the multiplication.
inline double sinpi(double x) {
  const double rest = std::remainder(x, 2.0);
  return std::fabs(rest) == 1.0 ? std::copysign(0.0, x) : std::sin(rest * 3.14159265358979323846);
}
inline double cospi(double x) {
  const double rest = std::fabs(std::remainder(x, 2.0));
  return rest == 0.5 ? 0.0 : std::cos(rest * 3.14159265358979323846);
}
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }

inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// The product of two floats is a double; sums, quotients and roots are made sticky.
#define ATTN_DIAG_HOST_ARITHMETIC(suffix, rounding, unused)                              \
  inline float __fadd_##suffix(float a, float b) {                                       \
    return attn_diag::host::rounded_to_float(                                            \
        attn_diag::host::sticky_sum(static_cast<double>(a), static_cast<double>(b)),     \
        attn_diag::host::Rounding::rounding);                                            \
  }                                                                                      \
  inline float __fsub_##suffix(float a, float b) { return __fadd_##suffix(a, -b); }      \
  inline float __fmul_##suffix(float a, float b) {                                       \
    return attn_diag::host::rounded_to_float(static_cast<double>(a) * b,                 \
                                             attn_diag::host::Rounding::rounding);       \
  }                                                                                      \
  inline float __fmaf_##suffix(float a, float b, float c) {                              \
    return attn_diag::host::rounded_to_float(                                            \
        attn_diag::host::sticky_sum(static_cast<double>(a) * b, static_cast<double>(c)), \
        attn_diag::host::Rounding::rounding);                                            \
  }                                                                                      \
  inline float __fdiv_##suffix(float a, float b) {                                       \
    return attn_diag::host::rounded_to_float(attn_diag::host::sticky_quotient(a, b),     \
                                             attn_diag::host::Rounding::rounding);       \
  }                                                                                      \
  inline float __frcp_##suffix(float x) { return __fdiv_##suffix(1.0f, x); }             \
  inline float __fsqrt_##suffix(float x) {                                               \
    return attn_diag::host::rounded_to_float(attn_diag::host::sticky_root(x),            \
                                             attn_diag::host::Rounding::rounding);       \
  }
ATTN_DIAG_HOST_ARITHMETIC(rz, kTowardsZero, )
ATTN_DIAG_HOST_ARITHMETIC(rd, kDown, )
ATTN_DIAG_HOST_ARITHMETIC(ru, kUp, )
#undef ATTN_DIAG_HOST_ARITHMETIC
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

// CUDA's overloads in the global namespace. As fmin and fmax they ignore one NaN.
#define ATTN_DIAG_HOST_MIN_MAX(T)                     \
  constexpr T min(T a, T b) { return b < a ? b : a; } \
  constexpr T max(T a, T b) { return a < b ? b : a; }
ATTN_DIAG_HOST_MIN_MAX(int)
ATTN_DIAG_HOST_MIN_MAX(unsigned int)
ATTN_DIAG_HOST_MIN_MAX(long)
ATTN_DIAG_HOST_MIN_MAX(unsigned long)
ATTN_DIAG_HOST_MIN_MAX(long long)
ATTN_DIAG_HOST_MIN_MAX(unsigned long long)
#undef ATTN_DIAG_HOST_MIN_MAX
constexpr float min(float a, float b) { return b < a || a != a ? b : a; }
constexpr float max(float a, float b) { return a < b || a != a ? b : a; }
constexpr double min(double a, double b) { return b < a || a != a ? b : a; }
constexpr double max(double a, double b) { return a < b || a != a ? b : a; }

// Arguments of two types, converted by the usual arithmetic conversions.
#define ATTN_DIAG_HOST_MIN_MAX(T, A, B)                                           \
  constexpr T min(A a, B b) { return min(static_cast<T>(a), static_cast<T>(b)); } \
  constexpr T min(B a, A b) { return min(static_cast<T>(a), static_cast<T>(b)); } \
  constexpr T max(A a, B b) { return max(static_cast<T>(a), static_cast<T>(b)); } \
  constexpr T max(B a, A b) { return max(static_cast<T>(a), static_cast<T>(b)); }
ATTN_DIAG_HOST_MIN_MAX(unsigned int, unsigned int, int)
ATTN_DIAG_HOST_MIN_MAX(unsigned long, unsigned long, long)
ATTN_DIAG_HOST_MIN_MAX(unsigned long long, unsigned long long, long long)
ATTN_DIAG_HOST_MIN_MAX(double, double, float)
#undef ATTN_DIAG_HOST_MIN_MAX

// One instruction or two, as on a device, where libm's would be a call for every element.
extern "C" {
extern inline __attribute__((gnu_inline, always_inline)) float fminf(float a, float b) noexcept {
  return min(a, b);
}
extern inline __attribute__((gnu_inline, always_inline)) float fmaxf(float a, float b) noexcept {
  return max(a, b);
}
}
