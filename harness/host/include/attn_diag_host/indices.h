// threadIdx, blockIdx, blockDim, gridDim: real variables, so that a debugger prints them. The
// executor writes threadIdx whenever another thread of the block gets to run.
#pragma once

#include "attn_diag_host/vector_types.h"

namespace attn_diag::host {
struct alignas(16) ThreadIndex : uint3 {
  unsigned int linear;  // x + blockDim.x * (y + blockDim.y * z)
};
}  // namespace attn_diag::host

// Not lazily initialised: one load relative to the thread pointer.
#define ATTN_DIAG_HOST_INDEX \
  extern constinit thread_local __attribute__((tls_model("initial-exec")))
ATTN_DIAG_HOST_INDEX attn_diag::host::ThreadIndex threadIdx;
ATTN_DIAG_HOST_INDEX uint3 blockIdx;
ATTN_DIAG_HOST_INDEX dim3 blockDim;
ATTN_DIAG_HOST_INDEX dim3 gridDim;
#undef ATTN_DIAG_HOST_INDEX

inline constexpr int warpSize = 32;

namespace attn_diag::host {
// The block's dynamic shared memory, aligned to 128 bytes, of the size given at launch.
void* dynamic_shared_memory();
}  // namespace attn_diag::host
