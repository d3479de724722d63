// The fake kernel library (fake_kernels.cc), for tests.
#pragma once

#include <string>

#include "attn_diag/harness/kernel.h"

namespace attn_diag {

// ATTN_DIAG_FAKE_KERNELS: path of the library, set by the build.
inline Kernel fake_kernel(const std::string& name) {
  return Kernel::load(std::string(ATTN_DIAG_FAKE_KERNELS) + ":" + name, "host");
}

// B=1 H=2 S=6 D=8 fp32 causal: small enough to read, two query tiles and two KV tiles of 4.
inline Problem fake_problem() {
  Problem p;
  p.heads = p.kv_heads = 2;
  p.seqlen_q = p.seqlen_k = 6;
  p.head_dim = p.head_dim_v = 8;
  p.dtype = DType::kFp32;
  p.mask.kind = MaskKind::kCausal;
  p.softmax_scale = 0.35355339f;
  return p;
}

}  // namespace attn_diag
