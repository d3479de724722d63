// __nv_bfloat16 and __nv_bfloat162: the upper half of binary32 in a trivially constructible type.
// Rounding and NaN as in half.h.
#pragma once

#include "attn_diag_host/intrinsics.h"
#include "attn_diag_host/small_float.h"
#include "attn_diag_host/vector_types.h"

struct alignas(2) __nv_bfloat16 {
  std::uint16_t x_bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : x_bits(attn_diag::host::bfloat16_bits(value)) {}
  __nv_bfloat16(double value)
      : x_bits(attn_diag::host::bfloat16_bits(attn_diag::host::round_to_odd(value))) {}
  __nv_bfloat16(int value) : __nv_bfloat16(static_cast<double>(value)) {}
  __nv_bfloat16(unsigned int value) : __nv_bfloat16(static_cast<double>(value)) {}
  operator float() const { return attn_diag::host::bfloat16_value(x_bits); }

  __nv_bfloat16& operator+=(__nv_bfloat16 b);
  __nv_bfloat16& operator-=(__nv_bfloat16 b);
  __nv_bfloat16& operator*=(__nv_bfloat16 b);
  __nv_bfloat16& operator/=(__nv_bfloat16 b);
};
using nv_bfloat16 = __nv_bfloat16;

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;

  __nv_bfloat162() = default;
  __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
};
using nv_bfloat162 = __nv_bfloat162;

#define ATTN_DIAG_HOST_T __nv_bfloat16
#define ATTN_DIAG_HOST_T2 __nv_bfloat162
#include "attn_diag_host/small_float_arithmetic.inc"
#undef ATTN_DIAG_HOST_T
#undef ATTN_DIAG_HOST_T2

inline __nv_bfloat16 __float2bfloat16(float x) { return {x}; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {x}; }
inline __nv_bfloat16 __double2bfloat16(double x) { return {x}; }
inline __nv_bfloat16 __int2bfloat16_rn(int x) { return {x}; }
inline float __bfloat162float(__nv_bfloat16 x) { return static_cast<float>(x); }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return {__nv_bfloat16(x), __nv_bfloat16(x)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
  return {__nv_bfloat16(low), __nv_bfloat16(high)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 x) {
  return {__nv_bfloat16(x.x), __nv_bfloat16(x.y)};
}
inline float2 __bfloat1622float2(__nv_bfloat162 x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
  return {low, high};
}
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return {low, high}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 x) { return x.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 x) { return x.y; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 x) { return {x.x, x.x}; }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 x) { return {x.y, x.y}; }
inline __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 x) { return {x.y, x.x}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.x_bits; }
inline short __bfloat16_as_short(__nv_bfloat16 x) { return static_cast<short>(x.x_bits); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) {
  return std::bit_cast<__nv_bfloat16>(x);
}
inline __nv_bfloat16 __short_as_bfloat16(short x) { return std::bit_cast<__nv_bfloat16>(x); }
