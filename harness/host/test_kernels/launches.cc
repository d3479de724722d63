#include <unistd.h>

#include <stdexcept>

#include "harness/host/test_kernels/test_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

cudaLaunchConfig_t shape(dim3 grid, dim3 block, std::size_t dynamic_shared = 0) {
  cudaLaunchConfig_t config;
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = dynamic_shared;
  return config;
}

__global__ void endless_barriers_kernel() {
  for (;;) __syncthreads();
}

__global__ void endless_syncwarps_kernel() {
  if (threadIdx.x < 32) {
    for (;;) __syncwarp();
  }
  __syncthreads();
}

__global__ void endless_loop_kernel(volatile int* flag) {
  if (threadIdx.x == 3 && blockIdx.x == 1)
    while (*flag == 0) {
    }
}

__global__ void endless_after_barrier_kernel(volatile int* flag) {
  __syncthreads();
  while (*flag == 0) {
  }
}

__global__ void floats_kernel(const float* in, float* out) {
  out[2 * blockIdx.x] = in[0] + in[1];
  out[2 * blockIdx.x + 1] = in[2] * in[3];
}

__global__ void throws_kernel(int thread) {
  __syncthreads();
  if (static_cast<int>(threadIdx.x) == thread) throw std::runtime_error("no such tile");
  __syncthreads();
}

// Blocks 7 and 8 fail, while both run; block `slow` later than the other.
__global__ void block_fails_kernel(int slow, int* started) {
  const int block = static_cast<int>(blockIdx.x);
  if (block < 7) return;
  if (block == 8 && threadIdx.x == 0) atomicExch(started, 1);
  if (block == 7)
    while (__syncthreads_or(threadIdx.x == 0 && atomicAdd(started, 0) == 0)) {
    }
  if (block == slow)
    for (int i = 0; i < 20000; ++i) __syncthreads();
  if (threadIdx.x == 0)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void indices_kernel(SeenIndices* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  __syncthreads();
  out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] = {threadIdx, blockIdx, blockDim,
                                                                  gridDim};
}

__global__ void empty_kernel() {}

__global__ void worker_ids_kernel(int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = gettid();
}

__global__ void atomics_kernel(int* ints, unsigned* unsigneds, unsigned long long* longs,
                               float* floats, double* doubles, half2* halves) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int n = static_cast<int>(gridDim.x * blockDim.x);
  atomicAdd(&ints[0], 1);
  atomicMax(&ints[1], t);
  atomicMin(&ints[2], -t);
  atomicSub(&ints[3], 2);
  atomicOr(&ints[4], 1 << (t % 20));
  atomicAnd(&ints[5], ~(1 << (t % 20)));
  atomicXor(&ints[6], t);
  int expected = ints[7];
  for (;;) {  // a maximum by compare-and-swap
    const int seen = atomicCAS(&ints[7], expected, max(expected, t));
    if (seen == expected) break;
    expected = seen;
  }
  atomicExch(&ints[8 + t % 4], 77);
  atomicAdd(&unsigneds[0], 3u);
  atomicInc(&unsigneds[1], 9u);
  atomicDec(&unsigneds[2], 9u);
  atomicMax(&unsigneds[3], 0x80000000u + static_cast<unsigned>(t));
  atomicAdd(&longs[0], 1ull << 33);
  atomicAdd(&floats[0], 1.0f);
  atomicExch(&floats[1], t < n ? 2.5f : 0.0f);
  atomicAdd(&doubles[0], 0.5);
  atomicAdd(&halves[0], __floats2half2_rn(1.0f, -1.0f));
}

}  // namespace

cudaError_t endless_barriers() {
  const auto config = shape(1, 64);
  return cudaLaunchKernelEx(&config, endless_barriers_kernel);
}
cudaError_t endless_syncwarps() {
  const auto config = shape(1, 64);
  return cudaLaunchKernelEx(&config, endless_syncwarps_kernel);
}
cudaError_t endless_loop(volatile int* flag) {
  const auto config = shape(2, 64);
  return cudaLaunchKernelEx(&config, endless_loop_kernel, flag);
}
cudaError_t endless_after_barrier(volatile int* flag) {
  const auto config = shape(1, 32);
  return cudaLaunchKernelEx(&config, endless_after_barrier_kernel, flag);
}
cudaError_t floats(const float* in, float* out, unsigned blocks) {
  const auto config = shape(blocks, 1);
  return cudaLaunchKernelEx(&config, floats_kernel, in, out);
}
cudaError_t throws(int thread) {
  const auto config = shape(1, 64);
  return cudaLaunchKernelEx(&config, throws_kernel, thread);
}
cudaError_t block_fails(int slow, int* started) {
  const auto config = shape(9, 32);
  return cudaLaunchKernelEx(&config, block_fails_kernel, slow, started);
}
cudaError_t indices(dim3 grid, dim3 block, SeenIndices* out) {
  const auto config = shape(grid, block);
  return cudaLaunchKernelEx(&config, indices_kernel, out);
}
cudaError_t shaped(dim3 grid, dim3 block, std::size_t dynamic_shared) {
  const auto config = shape(grid, block, dynamic_shared);
  return cudaLaunchKernelEx(&config, empty_kernel);
}
cudaError_t worker_ids(int blocks, int* out) {
  const auto config = shape(static_cast<unsigned>(blocks), 32);
  return cudaLaunchKernelEx(&config, worker_ids_kernel, out);
}
cudaError_t atomics(int blocks, int threads, int* ints, unsigned* unsigneds,
                    unsigned long long* longs, float* floats, double* doubles, half2* halves) {
  const auto config = shape(static_cast<unsigned>(blocks), static_cast<unsigned>(threads));
  return cudaLaunchKernelEx(&config, atomics_kernel, ints, unsigneds, longs, floats, doubles,
                            halves);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
