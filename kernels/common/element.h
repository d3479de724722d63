// Element types of q, k, v and o, and their conversions to and from float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "attn_diag/kernels/tap.h"

namespace attn_diag {

ATTN_DIAG_DEVICE float to_float(float x) { return x; }
ATTN_DIAG_DEVICE float to_float(__half x) { return __half2float(x); }
ATTN_DIAG_DEVICE float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

// Rounds to nearest even.
template <class Element>
ATTN_DIAG_DEVICE Element from_float(float x);
template <>
ATTN_DIAG_DEVICE float from_float<float>(float x) {
  return x;
}
template <>
ATTN_DIAG_DEVICE __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
ATTN_DIAG_DEVICE __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// Two neighbours in memory, of a 16-bit type.
template <class Element>
struct PairOf;
template <>
struct PairOf<__half> {
  using Type = __half2;
  static ATTN_DIAG_DEVICE Type from_floats(float x, float y) { return __floats2half2_rn(x, y); }
};
template <>
struct PairOf<__nv_bfloat16> {
  using Type = __nv_bfloat162;
  static ATTN_DIAG_DEVICE Type from_floats(float x, float y) { return __floats2bfloat162_rn(x, y); }
};

}  // namespace attn_diag
