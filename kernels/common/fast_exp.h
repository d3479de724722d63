// e^x for the inner loops of the fused kernels.
#pragma once

#include <cuda_runtime.h>

#include "attn_diag/kernels/tap.h"

namespace attn_diag {

// __expf(x), but 0 where that is subnormal (Arithmetic::exp_flush): what __expf does for the sake of
// subnormals takes three instructions beside its two.
ATTN_DIAG_DEVICE float fast_exp(float x) {
#if defined(__CUDA_ARCH__) && !defined(ATTN_DIAG_HOST_EXECUTOR)
  constexpr float kLog2E = 1.4426950408889634f;
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * kLog2E));
  return y;
#else
  return __expf(x);
#endif
}

}  // namespace attn_diag
