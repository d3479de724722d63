#include "harness/host/check/test_kernels.h"

#include <cuda_pipeline.h>
#include <cuda/barrier>

#include "attn_diag_host/check_hooks.h"
#include "attn_diag_host/mbarrier.h"
#include "attn_diag_host/named_barrier.h"

namespace attn_diag::host::checked {
namespace {

constexpr int kThreads = 64;

template <class... Parameters, class... Arguments>
cudaError_t run(int blocks, std::size_t dynamic, void (*kernel)(Parameters...),
                Arguments... arguments) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = dynamic;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

__global__ void exchange(int* out, bool synchronise) {
  __shared__ int sRow[kThreads];
  const unsigned t = threadIdx.x;
  sRow[t] = static_cast<int>(t);  // [store]
  if (synchronise) __syncthreads();
  out[t] = sRow[(t + 32) % kThreads];  // [load]
}

constexpr unsigned kFourWarps = 128;
__global__ void all_read_one_stores(int* out, unsigned who) {
  __shared__ int sRow[32];
  const unsigned t = threadIdx.x;
  if (t < 32) sRow[t] = static_cast<int>(t);
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 32; ++i) sum += sRow[i];  // [all load]
  if (t == who) sRow[5] = sum;                  // [one stores]
  out[t] = sum;
}

__global__ void all_store_the_same(int* out) {
  __shared__ int sFlag;
  sFlag = 7;
  __syncthreads();
  out[threadIdx.x] = sFlag;
}

enum class Between { kNothing, kSyncwarp, kShuffle };
__global__ void exchange_in_warp(int* out, Between between) {
  __shared__ int sRow[kThreads];
  const unsigned t = threadIdx.x;
  sRow[t] = static_cast<int>(t);
  if (between == Between::kSyncwarp) __syncwarp();
  if (between == Between::kShuffle) out[t] = __shfl_xor_sync(0xFFFFFFFFu, 1, 1);
  out[t] = sRow[t ^ 1u];
}

// Sums of groups of eight lanes.
__global__ void sum_of_eight(int* out, EightLanes lanes) {
  const unsigned t = threadIdx.x;
  if (lanes == EightLanes::kSomeReturn && t % 8 >= 6) return;
  const unsigned eight = 0xFFu << (t % 32 / 8 * 8);
  unsigned mask = lanes == EightLanes::kActive       ? __activemask()
                  : lanes == EightLanes::kOneMissing ? eight & ~(0x80u << (t % 32 / 8 * 8))
                                                     : eight;
  if (lanes == EightLanes::kOneMissing && t % 8 == 7) mask = 0x80u << (t % 32 / 8 * 8);
  int sum = static_cast<int>(t);
  for (int step = 4; step > 0; step /= 2)
    sum += __shfl_xor_sync(mask, sum, step, 8);  // [reads another lane]
  out[t] = sum;
}

__global__ void lanes_store_to_one(int* out) {
  __shared__ int sOne[kThreads / 32];
  sOne[threadIdx.x / 32] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = sOne[threadIdx.x / 32];
}

__global__ void two_stores_kernel(int* out, float first, float second, bool one_line) {
  __shared__ float sOne;
  const unsigned t = threadIdx.x;
  if (one_line) {
    if (t % 32 == 5) sOne = t == 5 ? first : second;
  } else {
    if (t == 5) sOne = first;
    out[t] = 0;  // else the two stores become one
    if (t == 37) sOne = second;
  }
  __syncthreads();
  out[t] = sOne > 0;
}

__global__ void exchange_in_half_warps(int* out, bool right) {
  __shared__ int sRow[kThreads];
  const unsigned t = threadIdx.x;
  sRow[t] = static_cast<int>(t);
  __syncwarp(t % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u);
  out[t] = sRow[t ^ (right ? 1u : 16u)];
}

__global__ void read_unset(int* out) {
  __shared__ int sRow[kThreads];
  if (threadIdx.x != 5) sRow[threadIdx.x] = 1;
  out[threadIdx.x] = sRow[threadIdx.x];
}

__global__ void read_of_returned(int* out, int threads) {
  __shared__ int sRow[kThreads];
  if (static_cast<int>(threadIdx.x) >= threads) return;
  sRow[threadIdx.x] = 1;
  __syncthreads();  // [some returned]
  out[threadIdx.x] = sRow[kThreads - 1 - threadIdx.x];
}

__global__ void bytes_kernel(int* out) {
  __shared__ unsigned char sBytes[kThreads];
  sBytes[threadIdx.x] = 1;
  __syncthreads();
  sBytes[threadIdx.x] = static_cast<unsigned char>(sBytes[threadIdx.x] + 1);
  out[threadIdx.x] = sBytes[threadIdx.x];
}

__global__ void static_overrun(int* out) {
  __shared__ int sRow[kThreads - 1];
  sRow[threadIdx.x] = 1;  // [past]
  __syncthreads();
  out[threadIdx.x] = sRow[threadIdx.x / 2];
}

__global__ void dynamic_overrun(int* out) {
  int* const row = static_cast<int*>(dynamic_shared_memory());
  row[threadIdx.x] = 1;
  out[threadIdx.x] = 1;
}

__global__ void barrier_object_kernel(int* out, bool waits) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int sRow[kThreads];
  const unsigned t = threadIdx.x;
  if (t == 0) init(&barrier, kThreads);
  __syncthreads();
  sRow[t] = static_cast<int>(t);
  auto token = barrier.arrive();
  if (waits) barrier.wait(std::move(token));
  out[t] = sRow[(t + 32) % kThreads];
}

__global__ void unpublished_kernel(int* out, bool object, bool publishes) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ std::uint64_t word;
  if (threadIdx.x == 0) {
    init(&barrier, kThreads);
    mbarrier_init(&word, kThreads, __FILE__, __LINE__);
  }
  if (publishes) __syncthreads();
  if (object)
    barrier.arrive_and_wait();
  else
    mbarrier_arrive(&word, 1, __FILE__, __LINE__);
  out[threadIdx.x] = 1;
}

__device__ __forceinline__ void meet(unsigned id) {
  named_barrier_sync(id, kThreads, __FILE__, __LINE__);  // [waits in vain]
}
__attribute__((noinline)) __device__ void meet_called(int* out, unsigned id) {
  out[threadIdx.x] = 1;
  meet(id);  // [in a helper]
  out[threadIdx.x] = 2;
}
__global__ void vain_kernel(int* out, bool called) {
  if (threadIdx.x >= 32) return;
  if (called)
    meet_called(out, 1);  // [calls]
  else
    meet(2);  // [inlines]
  out[threadIdx.x] = 3;
}

__global__ void crossed_kernel(int* out) {
  if (threadIdx.x < 32)
    meet_called(out, 1);  // [one calls]
  else
    meet(2);  // [the other inlines]
  out[threadIdx.x] = 3;
}

__global__ void named_kernel(int* out, bool waits) {
  __shared__ int sRow[32];
  const unsigned t = threadIdx.x;
  if (t < 32) {
    sRow[t] = static_cast<int>(t);
    named_barrier_arrive(1, kThreads, __FILE__, __LINE__);
  } else {
    if (waits) named_barrier_sync(1, kThreads, __FILE__, __LINE__);
    out[t] = sRow[t - 32];
    if (!waits) named_barrier_sync(1, kThreads, __FILE__, __LINE__);
  }
}

__global__ void two_named_kernel(int* out) {
  __shared__ int sRow[kThreads];
  const unsigned t = threadIdx.x, warp = t / 32;
  sRow[t] = static_cast<int>(t);
  named_barrier_sync(1 + warp, 32, __FILE__, __LINE__);  // [of its own]
  out[t] = sRow[(t + 32) % kThreads];
}

__global__ void async_copy_kernel(int* out, const int* from, int left_in_flight) {
  alignas(16) __shared__ int sRow[kThreads];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(&sRow[t], from + t, sizeof(int));
  __pipeline_commit();
  __pipeline_wait_prior(static_cast<std::size_t>(left_in_flight));
  out[t] = sRow[t];
}

// Two stages of a ring, of which one may lie over the other.
__global__ void copied_over_kernel(int* out, const int* from, int apart) {
  alignas(16) __shared__ int sRing[2 * kThreads];
  const unsigned t = threadIdx.x;
  int* const second = sRing + apart + t;
  __pipeline_memcpy_async(&sRing[t], from + t, sizeof(int));
  __pipeline_commit();
  __pipeline_memcpy_async(second, from + kThreads + t, sizeof(int));  // [copies over]
  __pipeline_commit();
  __pipeline_wait_prior(1);
  out[t] = sRing[t];
  __pipeline_wait_prior(0);
  out[t] += *second;
}

__global__ void wide_async_copy_kernel(int* out, const int* from) {
  alignas(16) __shared__ int sRow[kThreads];
  const unsigned t = threadIdx.x;
  if (t < kThreads / 4) __pipeline_memcpy_async(&sRow[4 * t], from + 4 * t, 16);
  __pipeline_commit();
  __syncthreads();
  if (t == 0) out[0] = sRow[0];
}

// Each copies an element and waits for that, behind a barrier or not; then loads that of another.
__global__ void waited_copy_kernel(int* out, const int* from, int missing) {
  alignas(16) __shared__ int sRow[kThreads];
  const unsigned t = threadIdx.x;
  __pipeline_memcpy_async(&sRow[t], from + t, sizeof(int));
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);  // [waits]
  if (missing == 0) __syncthreads();
  out[t] = sRow[(t + 32) % kThreads];  // [reads of others]
}

__global__ void every_block_stores(int* out) { out[threadIdx.x] = static_cast<int>(blockIdx.x); }
__global__ void every_block_adds(int* out) { atomicAdd(&out[threadIdx.x], 1); }

// Blocks store one after another, each while it holds the lock; `taken` 0: which nobody can see.
__global__ void locked_kernel(int* lock, int* owner, int taken, bool by_sub) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, taken) != 0) __nanosleep(100);
  __threadfence();
  *owner = static_cast<int>(blockIdx.x);  // [locked]
  __threadfence();
  if (by_sub)
    atomicSub(reinterpret_cast<unsigned*>(lock), 1u);
  else
    atomicExch(lock, 0);
}

__global__ void last_block_done_kernel(int* partial, unsigned* count, int* out, Fence fence) {
  __shared__ bool sLast;
  const unsigned t = threadIdx.x;
  if (fence == Fence::kByOneTooEarly && t == 0) __threadfence();
  partial[blockIdx.x * kThreads + t] = static_cast<int>(t);  // [partial]
  if (fence == Fence::kByEach) __threadfence();
  __syncthreads();
  if (t == 0) {
    if (fence == Fence::kByLast) __threadfence();
    sLast = atomicAdd(count, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!sLast) return;
  int sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b * kThreads + t];  // [sum]
  out[t] = sum;
}

__global__ void flag_kernel(volatile int* flag, int* data, int* out, bool fenced) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = 3;
    if (fenced) __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) __nanosleep(100);
    *out = *data;
  }
}

__global__ void warp_flag_kernel(volatile int* flag, int* data, int* out, bool fenced) {
  const unsigned t = threadIdx.x;
  if (t >= 32) return;
  if (blockIdx.x == 0) {
    data[t] = static_cast<int>(t);
    if (fenced) __threadfence();
    __syncwarp();
    if (t == 0) *flag = 1;
  } else {
    if (t == 0)
      while (*flag == 0) __nanosleep(100);
    __syncwarp();
    out[t] = data[t];
  }
}

__global__ void store_kernel(int* data) { data[threadIdx.x] = 1; }
__global__ void load_kernel(const int* data, int* out, int offset) {
  out[threadIdx.x] = data[static_cast<int>(threadIdx.x) + offset];
}

__global__ void vector_kernel(const int* data, int* out, int offset) {
  if (threadIdx.x == 0)
    *reinterpret_cast<int4*>(out) = *reinterpret_cast<const int4*>(data + offset);
}

__global__ void overflow_kernel(const int* data, int* out, int factor) {
  const int row = static_cast<int>(threadIdx.x) * factor;  // [overflow]
  out[threadIdx.x] = data[row == 12345 ? 1 : 0];
}

__device__ __noinline__ long long wide_at(const int* at) {
  return *reinterpret_cast<const long long*>(at);
}

__global__ void local_vector_kernel(int* out, int offset) {
  alignas(8) int values[4] = {1, 2, 3, offset};
  out[threadIdx.x] = static_cast<int>(wide_at(values + offset) >> 32);
}

__global__ void local_kernel(int* out, bool right) {
  int rSum[4];
  local_array(rSum, sizeof rSum, "rSum", __FILE__, __LINE__);
  for (int i = 0; i < (right ? 4 : 1); ++i) rSum[i] = 0;
  for (int i = 0; i < 4; ++i) rSum[(i + static_cast<int>(threadIdx.x)) % 4] += i;
  out[threadIdx.x] = rSum[0] + rSum[3];
}

}  // namespace

cudaError_t barrier_right(int* out) { return run(1, 0, exchange, out, true); }
cudaError_t barrier_missing(int* out) { return run(1, 0, exchange, out, false); }
cudaError_t same_value(int* out) { return run(1, 0, all_store_the_same, out); }
cudaError_t warp_right(int* out) { return run(1, 0, exchange_in_warp, out, Between::kSyncwarp); }
cudaError_t warp_latent(int* out) { return run(1, 0, exchange_in_warp, out, Between::kNothing); }
cudaError_t shuffle_between(int* out) {
  return run(1, 0, exchange_in_warp, out, Between::kShuffle);
}
cudaError_t eight_lanes(int* out, EightLanes lanes) { return run(1, 0, sum_of_eight, out, lanes); }
cudaError_t reads_of_four_warps(int* out, unsigned who_stores) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(1);
  config.blockDim = dim3(kFourWarps);
  return cudaLaunchKernelEx(&config, all_read_one_stores, out, who_stores);
}
cudaError_t one_store_of_a_warp(int* out) { return run(1, 0, lanes_store_to_one, out); }
cudaError_t two_stores(int* out, float first, float second, bool one_line) {
  return run(1, 0, two_stores_kernel, out, first, second, one_line);
}
cudaError_t half_warps(int* out, bool right) {
  return run(1, 0, exchange_in_half_warps, out, right);
}
cudaError_t uninitialised_shared(int* out) { return run(1, 0, read_unset, out); }
cudaError_t returned_early(int* out, int threads) {
  return run(1, 0, read_of_returned, out, threads);
}
cudaError_t bytes_of_neighbours(int* out) { return run(1, 0, bytes_kernel, out); }
cudaError_t past_static_array(int* out) { return run(1, 0, static_overrun, out); }
cudaError_t past_dynamic(int* out) {
  return run(1, (kThreads - 1) * sizeof(int), dynamic_overrun, out);
}
cudaError_t barrier_object(int* out, bool waits) {
  return run(1, 0, barrier_object_kernel, out, waits);
}
cudaError_t unpublished(int* out, bool object, bool publishes) {
  return run(1, 0, unpublished_kernel, out, object, publishes);
}
cudaError_t waits_in_vain(int* out, bool called) { return run(1, 0, vain_kernel, out, called); }
cudaError_t wait_for_each_other(int* out) { return run(1, 0, crossed_kernel, out); }
cudaError_t two_named(int* out) { return run(1, 0, two_named_kernel, out); }
cudaError_t named(int* out, bool waits) { return run(1, 0, named_kernel, out, waits); }
cudaError_t async_copy(int* out, const int* from, int left_in_flight) {
  return run(1, 0, async_copy_kernel, out, from, left_in_flight);
}
cudaError_t copied_over(int* out, const int* from, int apart) {
  return run(1, 0, copied_over_kernel, out, from, apart);
}
cudaError_t wide_async_copy(int* out, const int* from) {
  return run(1, 0, wide_async_copy_kernel, out, from);
}
cudaError_t waited_copy(int* out, const int* from, int missing) {
  return run(1, 0, waited_copy_kernel, out, from, missing);
}
cudaError_t blocks_race(int* out) { return run(3, 0, every_block_stores, out); }
cudaError_t blocks_add(int* out) { return run(3, 0, every_block_adds, out); }
cudaError_t locked(int* lock, int* owner, int taken, bool by_sub) {
  return run(3, 0, locked_kernel, lock, owner, taken, by_sub);
}
cudaError_t last_block_done(int* partial, unsigned* count, int* out, Fence fence) {
  return run(4, 0, last_block_done_kernel, partial, count, out, fence);
}
cudaError_t flag(volatile int* flag, int* data, int* out, bool fenced) {
  return run(2, 0, flag_kernel, flag, data, out, fenced);
}
cudaError_t warp_flag(volatile int* flag, int* data, int* out, bool fenced) {
  return run(2, 0, warp_flag_kernel, flag, data, out, fenced);
}
cudaError_t two_launches(int* data, int* out) {
  const cudaError_t error = run(1, 0, store_kernel, data);
  return error != cudaSuccess ? error : run(1, 0, load_kernel, data, out, 0);
}
cudaError_t read_through(const int* from, int* out, int offset) {
  return run(1, 0, load_kernel, from, out, offset);
}
cudaError_t read_as_vector(const int* from, int* out, int offset) {
  return run(1, 0, vector_kernel, from, out, offset);
}
cudaError_t read_local_as_vector(int* out, int offset) {
  return run(1, 0, local_vector_kernel, out, offset);
}
cudaError_t overflow(const int* from, int* out, int factor) {
  return run(1, 0, overflow_kernel, from, out, factor);
}
cudaError_t local_array_partly_set(int* out, bool right) {
  return run(1, 0, local_kernel, out, right);
}

}  // namespace attn_diag::host::checked
