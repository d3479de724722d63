// Macros of c10/macros/Macros.h that kernels use.
#pragma once

#include <cuda_runtime.h>

#include <cassert>

#if defined(__CUDACC__) && !defined(ATTN_DIAG_HOST_EXECUTOR)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#define C10_LAUNCH_BOUNDS_1(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks)
#endif
#define C10_RESTRICT __restrict__
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_WARP_SIZE 32
#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
