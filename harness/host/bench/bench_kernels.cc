#include "harness/host/bench/bench_kernels.h"

#include <cuda_runtime.h>

namespace {

constexpr unsigned kThreads = 128;

cudaLaunchConfig_t blocks_of_128(int blocks) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  return config;
}

__global__ void barriers_kernel(int count) {
  for (int i = 0; i < count; ++i) __syncthreads();
}

__global__ void shuffles_kernel(int count, float* out) {
  auto x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < count; ++i) x = __shfl_xor_sync(0xFFFFFFFFu, x, 1);
  out[threadIdx.x] = x;
}

__global__ void empty_kernel() {}

}  // namespace

int bench_barriers(int blocks, int count) {
  const auto config = blocks_of_128(blocks);
  return cudaLaunchKernelEx(&config, barriers_kernel, count);
}
int bench_shuffles(int blocks, int count, float* out) {
  const auto config = blocks_of_128(blocks);
  return cudaLaunchKernelEx(&config, shuffles_kernel, count, out);
}
int bench_empty_blocks(int blocks) {
  const auto config = blocks_of_128(blocks);
  return cudaLaunchKernelEx(&config, empty_kernel);
}
