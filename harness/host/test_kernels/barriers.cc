#include "harness/host/test_kernels/test_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

cudaLaunchConfig_t one_block(dim3 block) {
  cudaLaunchConfig_t config;
  config.blockDim = block;
  return config;
}

__global__ void early_return_kernel(int staying, int* out) {
  __shared__ int values[1024];
  const int t = static_cast<int>(threadIdx.x);
  if (t >= staying) return;
  values[t] = t;
  __syncthreads();
  out[t] = values[staying - 1 - t];
}

__global__ void divergent_barrier_kernel() {
  if (threadIdx.x < 16 && threadIdx.y == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void barrier_against_syncwarp_kernel() {
  if (threadIdx.x < 8)
    __syncwarp();
  else
    __syncthreads();
}

__global__ void barrier_votes_kernel(int ayes, int3* out) {
  const int aye = static_cast<int>(threadIdx.x) < ayes ? 5 : 0;
  const int count = __syncthreads_count(aye);
  const int all = __syncthreads_and(aye);
  const int any = __syncthreads_or(aye);
  out[threadIdx.x] = make_int3(count, all, any);
}

}  // namespace

cudaError_t early_return(int threads, int staying, int* out) {
  const auto config = one_block(threads);
  return cudaLaunchKernelEx(&config, early_return_kernel, staying, out);
}
cudaError_t divergent_barrier(dim3 block) {
  const auto config = one_block(block);
  return cudaLaunchKernelEx(&config, divergent_barrier_kernel);
}
cudaError_t barrier_against_syncwarp() {
  const auto config = one_block(64);
  return cudaLaunchKernelEx(&config, barrier_against_syncwarp_kernel);
}
cudaError_t barrier_votes(int threads, int ayes, int3* out) {
  const auto config = one_block(threads);
  return cudaLaunchKernelEx(&config, barrier_votes_kernel, ayes, out);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
