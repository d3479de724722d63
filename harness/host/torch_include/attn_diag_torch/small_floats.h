// c10::Half and c10::BFloat16: CUDA's 16-bit types with the operators that PyTorch gives them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <limits>

#include "attn_diag_torch/macros.h"

namespace c10 {

struct alignas(2) Half {
  unsigned short x;

  struct from_bits_t {};
  static constexpr C10_HOST_DEVICE from_bits_t from_bits() { return {}; }

  Half() = default;
  constexpr C10_HOST_DEVICE Half(unsigned short bits, from_bits_t) : x(bits) {}
  C10_HOST_DEVICE Half(float value) : x(__half_as_ushort(__float2half(value))) {}
  C10_HOST_DEVICE Half(const __half& value) : x(__half_as_ushort(value)) {}
  C10_HOST_DEVICE operator float() const { return __half2float(__ushort_as_half(x)); }
  C10_HOST_DEVICE operator __half() const { return __ushort_as_half(x); }
};

struct alignas(2) BFloat16 {
  unsigned short x;

  struct from_bits_t {};
  static constexpr C10_HOST_DEVICE from_bits_t from_bits() { return {}; }

  BFloat16() = default;
  constexpr C10_HOST_DEVICE BFloat16(unsigned short bits, from_bits_t) : x(bits) {}
  C10_HOST_DEVICE BFloat16(float value) : x(__bfloat16_as_ushort(__float2bfloat16(value))) {}
  C10_HOST_DEVICE BFloat16(const __nv_bfloat16& value) : x(__bfloat16_as_ushort(value)) {}
  C10_HOST_DEVICE operator float() const { return __bfloat162float(__ushort_as_bfloat16(x)); }
  C10_HOST_DEVICE operator __nv_bfloat16() const { return __ushort_as_bfloat16(x); }
};

// Computed in float and rounded once; with a float or double, in that type.
#define ATTN_DIAG_TORCH_OPERATOR(T, symbol)                                                 \
  inline C10_HOST_DEVICE T operator symbol(const T& a, const T& b) {                        \
    return T(static_cast<float>(a) symbol static_cast<float>(b));                           \
  }                                                                                         \
  inline C10_HOST_DEVICE T& operator symbol##=(T& a, const T& b) { return a = a symbol b; } \
  inline C10_HOST_DEVICE float operator symbol(T a, float b) {                              \
    return static_cast<float>(a) symbol b;                                                  \
  }                                                                                         \
  inline C10_HOST_DEVICE float operator symbol(float a, T b) {                              \
    return a symbol static_cast<float>(b);                                                  \
  }                                                                                         \
  inline C10_HOST_DEVICE float& operator symbol##=(float& a, const T& b) {                  \
    return a = a symbol static_cast<float>(b);                                              \
  }                                                                                         \
  inline C10_HOST_DEVICE double operator symbol(T a, double b) {                            \
    return static_cast<double>(static_cast<float>(a)) symbol b;                             \
  }                                                                                         \
  inline C10_HOST_DEVICE double operator symbol(double a, T b) {                            \
    return a symbol static_cast<double>(static_cast<float>(b));                             \
  }                                                                                         \
  inline C10_HOST_DEVICE T operator symbol(T a, int b) {                                    \
    return a symbol T(static_cast<float>(b));                                               \
  }                                                                                         \
  inline C10_HOST_DEVICE T operator symbol(int a, T b) { return T(static_cast<float>(a)) symbol b; }
#define ATTN_DIAG_TORCH_OPERATORS(T) \
  ATTN_DIAG_TORCH_OPERATOR(T, +)     \
  ATTN_DIAG_TORCH_OPERATOR(T, -)     \
  ATTN_DIAG_TORCH_OPERATOR(T, *)     \
  ATTN_DIAG_TORCH_OPERATOR(T, /)     \
  inline C10_HOST_DEVICE T operator-(const T& a) { return T(-static_cast<float>(a)); }
ATTN_DIAG_TORCH_OPERATORS(Half)
ATTN_DIAG_TORCH_OPERATORS(BFloat16)
#undef ATTN_DIAG_TORCH_OPERATORS
#undef ATTN_DIAG_TORCH_OPERATOR

}  // namespace c10

namespace at {
using c10::BFloat16;
using c10::Half;
}  // namespace at

namespace std {
template <>
class numeric_limits<c10::Half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, has_infinity = true;
  static constexpr int digits = 11;
  static constexpr c10::Half lowest() { return {0xFBFF, c10::Half::from_bits()}; }
  static constexpr c10::Half max() { return {0x7BFF, c10::Half::from_bits()}; }
  static constexpr c10::Half min() { return {0x0400, c10::Half::from_bits()}; }
  static constexpr c10::Half epsilon() { return {0x1400, c10::Half::from_bits()}; }
  static constexpr c10::Half infinity() { return {0x7C00, c10::Half::from_bits()}; }
  static constexpr c10::Half quiet_NaN() { return {0x7E00, c10::Half::from_bits()}; }
};
template <>
class numeric_limits<c10::BFloat16> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, has_infinity = true;
  static constexpr int digits = 8;
  static constexpr c10::BFloat16 lowest() { return {0xFF7F, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 max() { return {0x7F7F, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 min() { return {0x0080, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 epsilon() { return {0x3C00, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 infinity() { return {0x7F80, c10::BFloat16::from_bits()}; }
  static constexpr c10::BFloat16 quiet_NaN() { return {0x7FC0, c10::BFloat16::from_bits()}; }
};
}  // namespace std
