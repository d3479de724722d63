#include <cuda_pipeline.h>

#include <cuda/barrier>
#include <cuda/pipeline>

#include "harness/host/test_kernels/test_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

using BlockBarrier = cuda::barrier<cuda::thread_scope_block>;

cudaLaunchConfig_t one_block(int threads) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  return config;
}

__device__ int thread() { return static_cast<int>(threadIdx.x); }

// Three groups, of which all but `prior` are waited for; out: the sum of what the thread's neighbour copied.
// A negative prior is no wait at all.
__global__ void staged_copies_kernel(const float* in, int prior, float* out) {
  __shared__ float stage[3][64];
  const int t = thread();
  for (int s = 0; s < 3; ++s) {
    __pipeline_memcpy_async(&stage[s][t], &in[s * 64 + t], sizeof(float));
    __pipeline_commit();
  }
  if (prior >= 0) __pipeline_wait_prior(static_cast<std::size_t>(prior));
  __syncthreads();
  for (int s = 0; s < 3; ++s) out[s * 64 + t] = stage[s][t ^ 1];
  __syncthreads();
  __pipeline_wait_prior(0);
}

// 4, 8 and 16 bytes, the last of them zeros.
__global__ void zero_filled_copies_kernel(const float* in, float* out) {
  __shared__ __align__(16) float buffer[12];
  if (thread() == 0) {
    __pipeline_memcpy_async(&buffer[0], nullptr, 4, 4);
    __pipeline_memcpy_async(&buffer[2], &in[2], 8, 4);
    __pipeline_memcpy_async(&buffer[4], &in[4], 16, 12);
    __pipeline_memcpy_async(&buffer[8], &in[8], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int i = 0; i < 12; ++i) out[i] = i == 1 ? -1.0f : buffer[i];
  }
}

// The usual double buffering: tile i + 1 is on its way while tile i is summed.
__global__ void pipelined_copies_kernel(const float* in, int tiles, float* out) {
  __shared__ __align__(16) float buffer[2][32 * 4];
  const int t = thread();
  auto pipe = cuda::make_pipeline();
  const auto issue = [&](int tile) {
    pipe.producer_acquire();
    if (tile < tiles)
      cuda::memcpy_async(&buffer[tile % 2][t * 4], &in[(tile * 32 + t) * 4],
                         cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
  };
  issue(0);
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    issue(tile + 1);
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    __syncthreads();
    for (int i = 0; i < 4; ++i) sum += buffer[tile % 2][(t ^ 1) * 4 + i];
    __syncthreads();
    pipe.consumer_release();
  }
  pipe.consumer_wait();
  out[t] = sum;
}

__global__ void copies_with_barrier_kernel(const float* in, bool wait, float* out) {
  __shared__ float buffer[64];
  __shared__ BlockBarrier barrier;
  const int t = thread();
  if (t == 0) init(&barrier, 64);
  __syncthreads();
  cuda::memcpy_async(&buffer[t], &in[t], sizeof(float), barrier);
  BlockBarrier::arrival_token token = barrier.arrive();
  if (wait) barrier.wait(std::move(token));
  out[t] = buffer[t ^ 33];
  __syncthreads();
}

// Each thread leaves after a number of phases; what it saw of the others' counts.
__global__ void barrier_phases_kernel(int* out) {
  __shared__ BlockBarrier barrier;
  __shared__ int count[64];
  const int t = thread(), threads = static_cast<int>(blockDim.x);
  if (t == 0) init(&barrier, threads);
  count[t] = 0;
  __syncthreads();
  int sum = 0;
  for (int phase = 0; phase < 3; ++phase) {
    ++count[t];
    barrier.arrive_and_wait();
    sum = sum * 10 + count[(t + 1) % threads];
    barrier.arrive_and_wait();
  }
  if (t % 2 == 1) {
    barrier.arrive_and_drop();
    out[t] = sum;
    return;
  }
  barrier.arrive_and_wait();
  barrier.arrive_and_wait();
  out[t] = sum;
}

// Warp 0 fills, warp 1 reads; they meet only in barriers.
__global__ void producer_and_consumers_kernel(float* out) {
  __shared__ BlockBarrier full, empty;
  __shared__ float value[32];
  const int t = thread();
  if (t == 0) {
    init(&full, 64);
    init(&empty, 64);
  }
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (t < 32) {
      value[t] = static_cast<float>(i * 100 + t);
      static_cast<void>(full.arrive());
      empty.arrive_and_wait();
    } else {
      full.arrive_and_wait();
      sum += value[63 - t];
      static_cast<void>(empty.arrive());
    }
  }
  out[t] = sum;
}

__global__ void copies_not_waited_for_kernel(const float* in, bool bound) {
  __shared__ float buffer[32];
  __shared__ BlockBarrier barrier;
  if (thread() == 0) init(&barrier, 1000);
  __syncthreads();
  if (bound)
    cuda::memcpy_async(&buffer[thread()], &in[thread()], sizeof(float), barrier);
  else
    __pipeline_memcpy_async(&buffer[thread()], &in[thread()], sizeof(float));
  __pipeline_wait_prior(0);  // not committed
}

__global__ void bad_copy_kernel(BadCopy what, float* global) {
  __shared__ __align__(16) float buffer[16];
  alignas(16) float local[4] = {};
  switch (what) {
    case BadCopy::kSize:
      __pipeline_memcpy_async(buffer, global, 12);
      break;
    case BadCopy::kDestinationAlignment:
      __pipeline_memcpy_async(buffer + 2, global, 16);
      break;
    case BadCopy::kSourceAlignment:
      __pipeline_memcpy_async(buffer, global + 1, 8);
      break;
    case BadCopy::kZeros:
      __pipeline_memcpy_async(buffer, global, 8, 9);
      break;
    case BadCopy::kDestinationGlobal:
      __pipeline_memcpy_async(global, global + 4, 4);
      break;
    case BadCopy::kSourceShared:
      __pipeline_memcpy_async(buffer, buffer + 4, 4);
      break;
    case BadCopy::kSourceLocal:
      __pipeline_memcpy_async(buffer, local, 4);
      break;
  }
}

__global__ void bad_barrier_kernel(BadBarrier what) {
  __shared__ BlockBarrier barrier;
  if (thread() == 0 && what != BadBarrier::kNotInitialised)
    init(&barrier, what == BadBarrier::kNoArrivals      ? 0
                   : what == BadBarrier::kNeverComplete ? 33
                                                        : 4);
  __syncthreads();
  if (what == BadBarrier::kTooManyArrivals) static_cast<void>(barrier.arrive(5));
  barrier.arrive_and_wait();
}

}  // namespace

cudaError_t staged_copies(const float* in, int prior, float* out) {
  const auto config = one_block(64);
  return cudaLaunchKernelEx(&config, staged_copies_kernel, in, prior, out);
}
cudaError_t zero_filled_copies(const float* in, float* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, zero_filled_copies_kernel, in, out);
}
cudaError_t pipelined_copies(const float* in, int tiles, float* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, pipelined_copies_kernel, in, tiles, out);
}
cudaError_t copies_with_barrier(const float* in, bool wait, float* out) {
  const auto config = one_block(64);
  return cudaLaunchKernelEx(&config, copies_with_barrier_kernel, in, wait, out);
}
cudaError_t barrier_phases(int threads, int* out) {
  const auto config = one_block(threads);
  return cudaLaunchKernelEx(&config, barrier_phases_kernel, out);
}
cudaError_t producer_and_consumers(float* out) {
  const auto config = one_block(64);
  return cudaLaunchKernelEx(&config, producer_and_consumers_kernel, out);
}
cudaError_t copies_not_waited_for(const float* in, bool bound) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, copies_not_waited_for_kernel, in, bound);
}
cudaError_t bad_copy(BadCopy what, float* global) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, bad_copy_kernel, what, global);
}
cudaError_t bad_barrier(BadBarrier what) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, bad_barrier_kernel, what);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
