// Stand-in for CUDA's header of this name: __nv_fp8_e4m3, __nv_fp8_e5m2, their pairs and fours.
#pragma once

#include "attn_diag_host/fp8_bits.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned int;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate,
                                                 __nv_fp8_interpretation_t format) {
  return format == __NV_E4M3
             ? attn_diag::host::fp8_bits<attn_diag::host::E4m3>(x, saturate == __NV_SATFINITE)
             : attn_diag::host::fp8_bits<attn_diag::host::E5m2>(x, saturate == __NV_SATFINITE);
}
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate,
                                                __nv_fp8_interpretation_t format) {
  return __nv_cvt_double_to_fp8(static_cast<double>(x), saturate, format);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturate,
                                                  __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(static_cast<float>(__half(x)), saturate, format);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x,
                                                      __nv_saturation_t saturate,
                                                      __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(static_cast<float>(__nv_bfloat16(x)), saturate, format);
}
// The first of the two in the low byte.
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturate,
                                                     __nv_fp8_interpretation_t format) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_fp8(x.x, saturate, format) |
                                           __nv_cvt_float_to_fp8(x.y, saturate, format) << 8);
}
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t saturate,
                                                      __nv_fp8_interpretation_t format) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_double_to_fp8(x.x, saturate, format) |
                                           __nv_cvt_double_to_fp8(x.y, saturate, format) << 8);
}
inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t format) {
  return __nv_cvt_float2_to_fp8x2(__half22float2(__half2(x)), saturate, format);
}
inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw x,
                                                           __nv_saturation_t saturate,
                                                           __nv_fp8_interpretation_t format) {
  return __nv_cvt_float2_to_fp8x2(__bfloat1622float2(__nv_bfloat162(x)), saturate, format);
}
// Every number of 8 bits is one of binary16.
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t format) {
  return __half(format == __NV_E4M3 ? attn_diag::host::fp8_value(x, attn_diag::host::E4m3())
                                    : attn_diag::host::fp8_value(x, attn_diag::host::E5m2()));
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x,
                                              __nv_fp8_interpretation_t format) {
  return {__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(x), format).x,
          __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(x >> 8), format).x};
}

// The types saturate.
#define ATTN_DIAG_HOST_FP8(T, T2, T4, format)                                                    \
  struct T {                                                                                     \
    __nv_fp8_storage_t __x;                                                                      \
    T() = default;                                                                               \
    explicit T(float x) : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, format)) {}               \
    explicit T(double x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, format)) {}             \
    explicit T(__half x) : T(static_cast<float>(x)) {}                                           \
    explicit T(__nv_bfloat16 x) : T(static_cast<float>(x)) {}                                    \
    explicit T(int x) : T(static_cast<double>(x)) {}                                             \
    explicit T(unsigned int x) : T(static_cast<double>(x)) {}                                    \
    explicit T(short x) : T(static_cast<double>(x)) {}                                           \
    explicit T(unsigned short x) : T(static_cast<double>(x)) {}                                  \
    explicit T(long x) : T(static_cast<double>(x)) {}                                            \
    explicit T(unsigned long x) : T(static_cast<double>(x)) {}                                   \
    explicit operator __half() const { return __nv_cvt_fp8_to_halfraw(__x, format); }            \
    explicit operator float() const { return static_cast<float>(static_cast<__half>(*this)); }   \
    explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }  \
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(static_cast<float>(*this)); } \
    explicit operator int() const { return __float2int_rz(static_cast<float>(*this)); }          \
    explicit operator bool() const { return (__x & 0x7F) != 0; }                                 \
  };                                                                                             \
  struct alignas(2) T2 {                                                                         \
    __nv_fp8x2_storage_t __x;                                                                    \
    T2() = default;                                                                              \
    explicit T2(float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, format)) {}          \
    explicit T2(double2 x) : __x(__nv_cvt_double2_to_fp8x2(x, __NV_SATFINITE, format)) {}        \
    explicit T2(__half2 x) : T2(__half22float2(x)) {}                                            \
    explicit T2(__nv_bfloat162 x) : T2(__bfloat1622float2(x)) {}                                 \
    explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, format); }        \
    explicit operator float2() const { return __half22float2(static_cast<__half2>(*this)); }     \
  };                                                                                             \
  struct alignas(4) T4 {                                                                         \
    __nv_fp8x4_storage_t __x;                                                                    \
    T4() = default;                                                                              \
    explicit T4(float4 x)                                                                        \
        : __x(T2(float2{x.x, x.y}).__x |                                                         \
              static_cast<__nv_fp8x4_storage_t>(T2(float2{x.z, x.w}).__x) << 16) {}              \
    explicit T4(double4 x)                                                                       \
        : __x(T2(double2{x.x, x.y}).__x |                                                        \
              static_cast<__nv_fp8x4_storage_t>(T2(double2{x.z, x.w}).__x) << 16) {}             \
    explicit T4(__half2 low, __half2 high)                                                       \
        : __x(T2(low).__x | static_cast<__nv_fp8x4_storage_t>(T2(high).__x) << 16) {}            \
    explicit T4(__nv_bfloat162 low, __nv_bfloat162 high)                                         \
        : __x(T2(low).__x | static_cast<__nv_fp8x4_storage_t>(T2(high).__x) << 16) {}            \
    explicit operator float4() const {                                                           \
      T2 part;                                                                                   \
      part.__x = static_cast<__nv_fp8x2_storage_t>(__x);                                         \
      const auto low = static_cast<float2>(part);                                                \
      part.__x = static_cast<__nv_fp8x2_storage_t>(__x >> 16);                                   \
      const auto high = static_cast<float2>(part);                                               \
      return {low.x, low.y, high.x, high.y};                                                     \
    }                                                                                            \
  };
ATTN_DIAG_HOST_FP8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
ATTN_DIAG_HOST_FP8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
#undef ATTN_DIAG_HOST_FP8
