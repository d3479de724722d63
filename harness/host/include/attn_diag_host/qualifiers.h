// The CUDA qualifiers, as the host compiler reads them.
#pragma once

#include <cstddef>
#include <cstdint>

#define ATTN_DIAG_HOST_EXECUTOR 1

#if !defined(ATTN_DIAG_HOST_TRANSLATED)  // else the source pass reads these words
// libstdc++ writes __attribute__((__noinline__)) there: to be read before __noinline__ becomes a macro.
#include <memory>

#define __global__
#define __device__
#define __host__
#define __managed__
#define __constant__
#define __grid_constant__
// Storage of the block's worker thread. The executor fills it with 0xFF bytes before every block.
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif
#define __align__(n) __attribute__((aligned(n)))
#endif

// 1 in the lockstep build of a kernel library, whose loads and stores call the executor.
#ifndef ATTN_DIAG_HOST_INSTRUMENTED
#define ATTN_DIAG_HOST_INSTRUMENTED 0
#endif
