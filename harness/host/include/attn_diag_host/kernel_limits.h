// What the source pass adds to kernels, so that what a device's compiler or driver refuses is refused.
#pragma once

#include "attn_diag_host/indices.h"

namespace attn_diag::host {

// Bytes of static shared memory a kernel may have: those that nvcc allows on the architecture.
#if !defined(ATTN_DIAG_HOST_MOST_STATIC_SHARED)
#define ATTN_DIAG_HOST_MOST_STATIC_SHARED 49152
#endif
inline constexpr std::size_t kMostStaticShared = ATTN_DIAG_HOST_MOST_STATIC_SHARED;

// A finding: the block has more threads than the kernel's __launch_bounds__ say.
[[noreturn]] void launch_bounds_exceeded(unsigned most_threads, const char* file, int line);
inline void check_launch_bounds(unsigned most_threads, const char* file, int line) {
  if (blockDim.x * blockDim.y * blockDim.z > most_threads)
    launch_bounds_exceeded(most_threads, file, line);
}

}  // namespace attn_diag::host
