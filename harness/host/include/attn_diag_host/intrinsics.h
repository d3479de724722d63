// Mathematical functions and intrinsics. What rounds correctly in CUDA does here; the approximate
// ones are deterministic on every instruction set (no fused multiply-add is used, and the kernel
// must be compiled with -ffp-contract=off) and at least as exact as the device's.
#pragma once

#include <math.h>

#include <bit>
#include <cmath>
#include <limits>

#include "attn_diag_host/qualifiers.h"

inline unsigned int __float_as_uint(float x) { return std::bit_cast<unsigned int>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned int x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

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
  const unsigned int bits = std::bit_cast<unsigned int>(shifted) - 0x4B400000u;
  const unsigned int half = static_cast<unsigned int>(static_cast<int>(bits) >> 1);
  const float first = std::bit_cast<float>((half + 127u) << 23);
  const float second = std::bit_cast<float>((bits - half + 127u) << 23);
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
inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned int x) { return static_cast<float>(x); }

inline int __popc(unsigned int x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned int>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned int __brev(unsigned int x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0F0F0F0Fu) | ((x & 0x0F0F0F0Fu) << 4);
  return __builtin_bswap32(x);
}
inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
inline unsigned int __umulhi(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(a) * b) >> 32);
}

// Loads with a cache hint.
template <class T>
inline T __ldg(const T* address) {
  return *address;
}
template <class T>
inline T __ldcg(const T* address) {
  return *address;
}
template <class T>
inline T __ldcs(const T* address) {
  return *address;
}
template <class T>
inline void __stcs(T* address, T value) {
  *address = value;
}

// CUDA's overloads in the global namespace. Of a number and a NaN, the number, as fmin and fmax.
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

// One instruction or two, as on a device, where libm's would be a call for every element.
extern "C" {
extern inline __attribute__((gnu_inline, always_inline)) float fminf(float a, float b) noexcept {
  return min(a, b);
}
extern inline __attribute__((gnu_inline, always_inline)) float fmaxf(float a, float b) noexcept {
  return max(a, b);
}
}

[[noreturn]] inline void __trap() { __builtin_trap(); }
