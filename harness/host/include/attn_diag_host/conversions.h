// Conversions between numbers that name their rounding, and casts of bits.
#pragma once

#include "attn_diag_host/rounding.h"

inline unsigned int __float_as_uint(float x) { return __builtin_bit_cast(unsigned int, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __uint_as_float(unsigned int x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(
      static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}

#define ATTN_DIAG_HOST_ROUNDINGS(X, ...) \
  X(rn, kNearest, __VA_ARGS__)           \
  X(rz, kTowardsZero, __VA_ARGS__)       \
  X(rd, kDown, __VA_ARGS__)              \
  X(ru, kUp, __VA_ARGS__)
#define ATTN_DIAG_HOST_TO_INTEGER(suffix, rounding, name, From, To)                         \
  inline To name##_##suffix(From x) {                                                       \
    return attn_diag::host::rounded_to_integer<To>(x, attn_diag::host::Rounding::rounding); \
  }
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_INTEGER, __float2int, float, int)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_INTEGER, __float2uint, float, unsigned int)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_INTEGER, __float2ll, float, long long)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_INTEGER, __float2ull, float, unsigned long long)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_INTEGER, __double2int, double, int)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_INTEGER, __double2uint, double, unsigned int)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_INTEGER, __double2ll, double, long long)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_INTEGER, __double2ull, double, unsigned long long)
#undef ATTN_DIAG_HOST_TO_INTEGER
#define ATTN_DIAG_HOST_TO_FLOAT(suffix, rounding, name, From)                      \
  inline float name##_##suffix(From x) {                                           \
    return attn_diag::host::rounded_to_float(attn_diag::host::sticky_integer(x),   \
                                             attn_diag::host::Rounding::rounding); \
  }
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_FLOAT, __int2float, int)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_FLOAT, __uint2float, unsigned int)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_FLOAT, __ll2float, long long)
ATTN_DIAG_HOST_ROUNDINGS(ATTN_DIAG_HOST_TO_FLOAT, __ull2float, unsigned long long)
#undef ATTN_DIAG_HOST_TO_FLOAT
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline float __double2float_rz(double x) {
  return attn_diag::host::rounded_to_float(x, attn_diag::host::Rounding::kTowardsZero);
}
inline float __double2float_rd(double x) {
  return attn_diag::host::rounded_to_float(x, attn_diag::host::Rounding::kDown);
}
inline float __double2float_ru(double x) {
  return attn_diag::host::rounded_to_float(x, attn_diag::host::Rounding::kUp);
}
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned int x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
