// Dynamic shared memory, for nvcc and for the host executor alike.
#pragma once

#include <cuda_runtime.h>

namespace attn_diag {

// The block's dynamic shared memory, 128-byte aligned, of the size given at launch.
template <class T>
__device__ inline T* dynamic_shared() {
#if defined(__CUDACC__) && !defined(ATTN_DIAG_HOST_EXECUTOR)
  extern __shared__ __align__(128) unsigned char attn_diag_dynamic_shared_memory[];
  return reinterpret_cast<T*>(attn_diag_dynamic_shared_memory);
#else
  return static_cast<T*>(::attn_diag::host::dynamic_shared_memory());
#endif
}

}  // namespace attn_diag
