// half and half2: IEEE binary16 in a trivially constructible type. Conversions and arithmetic round
// once, to nearest, ties to even, with subnormals; NaN results are 0x7FFF, as on the device. The
// conversions have no branches, so that loops over them vectorise.
#pragma once

#include "attn_diag_host/intrinsics.h"
#include "attn_diag_host/small_float.h"
#include "attn_diag_host/vector_types.h"

struct alignas(2) __half {
  std::uint16_t x_bits;

  __half() = default;
  __half(float value) : x_bits(attn_diag::host::half_bits(value)) {}
  __half(double value) : x_bits(attn_diag::host::half_bits(attn_diag::host::round_to_odd(value))) {}
  __half(int value) : __half(static_cast<double>(value)) {}
  __half(unsigned int value) : __half(static_cast<double>(value)) {}
  operator float() const { return attn_diag::host::half_value(x_bits); }

  __half& operator+=(__half b);
  __half& operator-=(__half b);
  __half& operator*=(__half b);
  __half& operator/=(__half b);
};
using half = __half;

struct alignas(4) __half2 {
  __half x, y;

  __half2() = default;
  __half2(__half low, __half high) : x(low), y(high) {}
};
using half2 = __half2;

#define ATTN_DIAG_HOST_T __half
#define ATTN_DIAG_HOST_T2 __half2
#include "attn_diag_host/small_float_arithmetic.inc"
#undef ATTN_DIAG_HOST_T
#undef ATTN_DIAG_HOST_T2

inline __half __float2half(float x) { return {x}; }
inline __half __float2half_rn(float x) { return {x}; }
inline __half __double2half(double x) { return {x}; }
inline __half __int2half_rn(int x) { return {x}; }
inline __half __uint2half_rn(unsigned int x) { return {x}; }
inline float __half2float(__half x) { return static_cast<float>(x); }
inline int __half2int_rn(__half x) { return __float2int_rn(static_cast<float>(x)); }
inline int __half2int_rz(__half x) { return static_cast<int>(static_cast<float>(x)); }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float low, float high) { return {__half(low), __half(high)}; }
inline __half2 __float22half2_rn(float2 x) { return {__half(x.x), __half(x.y)}; }
inline float2 __half22float2(__half2 x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __halves2half2(__half low, __half high) { return {low, high}; }
inline __half2 make_half2(__half low, __half high) { return {low, high}; }
inline __half __low2half(__half2 x) { return x.x; }
inline __half __high2half(__half2 x) { return x.y; }
inline __half2 __low2half2(__half2 x) { return {x.x, x.x}; }
inline __half2 __high2half2(__half2 x) { return {x.y, x.y}; }
inline __half2 __lowhigh2highlow(__half2 x) { return {x.y, x.x}; }
inline unsigned short __half_as_ushort(__half x) { return x.x_bits; }
inline short __half_as_short(__half x) { return static_cast<short>(x.x_bits); }
inline __half __ushort_as_half(unsigned short x) { return std::bit_cast<__half>(x); }
inline __half __short_as_half(short x) { return std::bit_cast<__half>(x); }
