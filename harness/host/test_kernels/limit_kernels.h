// Kernels at and beyond what a device can launch. Built twice, as those of test_kernels.h.
#pragma once

#include <cuda_runtime.h>

#define ATTN_DIAG_LIMIT_TEST_KERNELS                   \
  cudaError_t static_beyond_limit();                   \
  cudaError_t static_and_dynamic(std::size_t dynamic); \
  cudaError_t dynamic_on(int architecture, std::size_t dynamic)

namespace plain {
ATTN_DIAG_LIMIT_TEST_KERNELS;
}
namespace lockstep {
ATTN_DIAG_LIMIT_TEST_KERNELS;
}
