// half and half2: IEEE binary16 in a trivially constructible type. Conversions and arithmetic round
// once, to nearest, ties to even, with subnormals; NaN results are 0x7FFF, as on the device. The
// conversions have no branches, so that loops over them vectorise.
#pragma once

#include "attn_diag_host/intrinsics.h"
#include "attn_diag_host/small_float.h"
#include "attn_diag_host/vector_types.h"

// The bits alone.
struct alignas(2) __half_raw {
  unsigned short x;
};
struct alignas(4) __half2_raw {
  unsigned short x, y;
};

struct alignas(2) __half {
  std::uint16_t x_bits;

  __half() = default;
  __half(float value) : x_bits(attn_diag::host::half_bits(value)) {}
  __half(double value) : x_bits(attn_diag::host::half_bits(attn_diag::host::round_to_odd(value))) {}
  __half(int value) : __half(static_cast<double>(value)) {}
  __half(unsigned int value) : __half(static_cast<double>(value)) {}
  __half(short value) : __half(static_cast<double>(value)) {}
  __half(unsigned short value) : __half(static_cast<double>(value)) {}
  __half(long value) : __half(attn_diag::host::sticky_integer(value)) {}
  __half(unsigned long value) : __half(attn_diag::host::sticky_integer(value)) {}
  __half(long long value) : __half(attn_diag::host::sticky_integer(value)) {}
  __half(unsigned long long value) : __half(attn_diag::host::sticky_integer(value)) {}
  __half(const __half_raw& raw) : x_bits(raw.x) {}
  operator float() const { return attn_diag::host::half_value(x_bits); }
  operator __half_raw() const { return {x_bits}; }

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
  __half2(const __half2_raw& raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
  operator __half2_raw() const { return {x.x_bits, y.x_bits}; }
};
using half2 = __half2;

#define ATTN_DIAG_HOST_T __half
#define ATTN_DIAG_HOST_T2 __half2
#define ATTN_DIAG_HOST_NAME half
#include "attn_diag_host/small_float_arithmetic.inc"
#include "attn_diag_host/small_float_comparisons.inc"
#include "attn_diag_host/small_float_conversions.inc"
#undef ATTN_DIAG_HOST_NAME
#undef ATTN_DIAG_HOST_T
#undef ATTN_DIAG_HOST_T2

using __nv_half = __half;
using __nv_half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;

inline __half2 __half2half2(__half x) { return {x, x}; }

#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7C00))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7FFF))
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(static_cast<unsigned short>(0x0001))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7BFF))
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x8000))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3C00))
