#include "harness/host/test_kernels/test_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

constexpr int kBlocks = 3, kThreads = 96;

cudaLaunchConfig_t three_blocks() {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(kThreads);
  return config;
}

__device__ int global_thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// Exchange through shared memory, with all the synchronisation it needs.
__global__ void right_kernel(float* out) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  float x = 1.0f / static_cast<float>(3 + global_thread());
  for (int round = 0; round < 4; ++round) {
    values[t] = x;
    __syncthreads();
    x = x * 0.75f + values[(t + 31) % kThreads];
    for (int i = 4; i > 0; i /= 2) x += 0.125f * __shfl_xor_sync(0xFFFFFFFFu, x, i, 8);
    __syncthreads();
  }
  out[global_thread()] = x;
}

// Lanes take different numbers of turns and meet at __syncwarp.
__global__ void right_with_divergence_kernel(float* out) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = 1.0f;
  for (int i = 0; i < t % 7; ++i) values[t] += 0.1f * static_cast<float>(i);
  if (t % 2 == 0)
    values[t] *= 3.0f;
  else
    values[t] -= 0.3f;
  __syncwarp();
  out[global_thread()] = values[t] + values[t ^ 1];
}

// Right only while the warp is converged: nothing orders a lane's store before its neighbour's load.
__global__ void missing_syncwarp_kernel(float* out) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = static_cast<float>(t);
  const float left = values[t ^ 1], right = values[t ^ 2];
  out[global_thread()] = left + 100.0f * right;
}

// As above, after lanes have taken different branches: they converge again where the paths meet.
__global__ void missing_syncwarp_after_divergence_kernel(float* out) {
  __shared__ float values[kThreads], sums[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  sums[t] = 0;
  for (int i = 0; i < t % 5; ++i) sums[t] += 1.0f;
  values[t] = sums[t];
  const float left = values[t ^ 1], right = values[t ^ 2];
  out[global_thread()] = left + 100.0f * right;
}

// Wrong however the warps run: a thread reads what another warp has yet to write.
__global__ void missing_syncthreads_kernel(float* out) {
  __shared__ float values[kThreads];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = static_cast<float>(t);
  const float before = values[(t + 32) % kThreads], after = values[(t + 64) % kThreads];
  out[global_thread()] = before + 100.0f * after;
}

__global__ void active_masks_kernel(unsigned* out) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = __activemask();
  if (t < 5) out[t] += 1000 * (__activemask() == 0x1Fu);
}

__global__ void order_of_threads_kernel(int* counter, int* out) {
  out[global_thread()] = (*counter)++;
  __syncthreads();
}

}  // namespace

cudaError_t right(float* out) {
  const auto config = three_blocks();
  return cudaLaunchKernelEx(&config, right_kernel, out);
}
cudaError_t right_with_divergence(float* out) {
  const auto config = three_blocks();
  return cudaLaunchKernelEx(&config, right_with_divergence_kernel, out);
}
cudaError_t missing_syncwarp(float* out) {
  const auto config = three_blocks();
  return cudaLaunchKernelEx(&config, missing_syncwarp_kernel, out);
}
cudaError_t missing_syncwarp_after_divergence(float* out) {
  const auto config = three_blocks();
  return cudaLaunchKernelEx(&config, missing_syncwarp_after_divergence_kernel, out);
}
cudaError_t missing_syncthreads(float* out) {
  const auto config = three_blocks();
  return cudaLaunchKernelEx(&config, missing_syncthreads_kernel, out);
}
cudaError_t active_masks(unsigned* out) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(32);
  return cudaLaunchKernelEx(&config, active_masks_kernel, out);
}
cudaError_t order_of_threads(int threads, int blocks, int* counter, int* out) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  return cudaLaunchKernelEx(&config, order_of_threads_kernel, counter, out);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
