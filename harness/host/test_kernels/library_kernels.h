// Kernels of libcu++'s classes that library_test.cc launches; built twice, as those of test_kernels.h.
#pragma once

#include <cuda_runtime.h>

enum class PipelineRoles { kAll, kCounted, kNamed };

#define ATTN_DIAG_LIBRARY_KERNELS                                                              \
  /* Rows of 64 floats through a pipeline of `stages` stages; `out` has 64 a row, reversed. */ \
  cudaError_t block_pipeline(PipelineRoles roles, const float* in, int rows, bool release,     \
                             float* out);                                                      \
  cudaError_t barrier_of_group(const float* in, float* out);                                   \
  cudaError_t atomic_references(int blocks, int* counters, float* sum)

namespace plain {
ATTN_DIAG_LIBRARY_KERNELS;
}
namespace lockstep {
ATTN_DIAG_LIBRARY_KERNELS;
}
