// __nv_bfloat16 and __nv_bfloat162: the upper half of binary32 in a trivially constructible type.
// Rounding and NaN as in half.h.
#pragma once

#include "attn_diag_host/intrinsics.h"
#include "attn_diag_host/small_float.h"
#include "attn_diag_host/vector_types.h"

// The bits alone.
struct alignas(2) __nv_bfloat16_raw {
  unsigned short x;
};
struct alignas(4) __nv_bfloat162_raw {
  unsigned short x, y;
};

struct alignas(2) __nv_bfloat16 {
  std::uint16_t x_bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : x_bits(attn_diag::host::bfloat16_bits(value)) {}
  __nv_bfloat16(double value)
      : x_bits(attn_diag::host::bfloat16_bits(attn_diag::host::round_to_odd(value))) {}
  __nv_bfloat16(int value) : __nv_bfloat16(static_cast<double>(value)) {}
  __nv_bfloat16(unsigned int value) : __nv_bfloat16(static_cast<double>(value)) {}
  __nv_bfloat16(short value) : __nv_bfloat16(static_cast<double>(value)) {}
  __nv_bfloat16(unsigned short value) : __nv_bfloat16(static_cast<double>(value)) {}
  __nv_bfloat16(long value) : __nv_bfloat16(attn_diag::host::sticky_integer(value)) {}
  __nv_bfloat16(unsigned long value) : __nv_bfloat16(attn_diag::host::sticky_integer(value)) {}
  __nv_bfloat16(long long value) : __nv_bfloat16(attn_diag::host::sticky_integer(value)) {}
  __nv_bfloat16(unsigned long long value) : __nv_bfloat16(attn_diag::host::sticky_integer(value)) {}
  __nv_bfloat16(const __nv_bfloat16_raw& raw) : x_bits(raw.x) {}
  operator float() const { return attn_diag::host::bfloat16_value(x_bits); }
  operator __nv_bfloat16_raw() const { return {x_bits}; }

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
  __nv_bfloat162(const __nv_bfloat162_raw& raw)
      : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
  operator __nv_bfloat162_raw() const { return {x.x_bits, y.x_bits}; }
};
using nv_bfloat162 = __nv_bfloat162;

#define ATTN_DIAG_HOST_T __nv_bfloat16
#define ATTN_DIAG_HOST_T2 __nv_bfloat162
#define ATTN_DIAG_HOST_NAME bfloat16
#include "attn_diag_host/small_float_arithmetic.inc"
#include "attn_diag_host/small_float_comparisons.inc"
#include "attn_diag_host/small_float_conversions.inc"
#undef ATTN_DIAG_HOST_NAME
#undef ATTN_DIAG_HOST_T
#undef ATTN_DIAG_HOST_T2

inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }

#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7F80))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7FFF))
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0001))
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7F7F))
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x8000))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3F80))
