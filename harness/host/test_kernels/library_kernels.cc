#include "harness/host/test_kernels/library_kernels.h"

#include <cooperative_groups.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

constexpr unsigned kThreads = 64, kStages = 2;
using BlockPipeline = cuda::pipeline<cuda::thread_scope_block>;

cudaLaunchConfig_t shape(int blocks) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  return config;
}

// `release`: consumers say when they are done with a stage, as they must.
__device__ void consume(BlockPipeline& pipe, const float* tile, int row, unsigned rank,
                        unsigned ranks, bool release, float* out) {
  pipe.consumer_wait();
  for (unsigned i = rank; i < kThreads; i += ranks)
    out[static_cast<unsigned>(row) * kThreads + i] = tile[kThreads - 1 - i];
  if (release) pipe.consumer_release();
}

__global__ void block_pipeline_kernel(PipelineRoles roles, const float* in, int rows, bool release,
                                      float* out) {
  alignas(16) __shared__ float tiles[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const cg::thread_block block = cg::this_thread_block();
  constexpr unsigned kProducers = 32;
  const bool produces = threadIdx.x < kProducers;
  if (roles == PipelineRoles::kAll) {
    auto pipe = cuda::make_pipeline(block, &state);
    for (int row = 0; row < rows; ++row) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tiles[row % 2], in + row * 64, sizeof(float) * kThreads, pipe);
      pipe.producer_commit();
      consume(pipe, tiles[row % 2], row, threadIdx.x, kThreads, release, out);
    }
    return;
  }
  auto pipe = roles == PipelineRoles::kCounted
                  ? cuda::make_pipeline(block, &state, std::size_t{kProducers})
                  : cuda::make_pipeline(
                        block, &state,
                        produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  for (int row = 0; row < rows; ++row) {
    if (produces) {
      pipe.producer_acquire();
      const unsigned first = threadIdx.x * 2;
      cuda::memcpy_async(&tiles[row % 2][first], in + row * 64 + first,
                         cuda::aligned_size_t<8>(2 * sizeof(float)), pipe);
      pipe.producer_commit();
    } else {
      consume(pipe, tiles[row % 2], row, threadIdx.x - kProducers, kThreads - kProducers, release,
              out);
    }
  }
}

__global__ void barrier_of_group_kernel(const float* in, float* out) {
  alignas(16) __shared__ float tile[kThreads];
  __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
  const cg::thread_block block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&arrived, static_cast<std::ptrdiff_t>(block.size()));
  block.sync();
  for (int half = 0; half < 2; ++half) {
    cuda::memcpy_async(block, tile + 32 * half, in + 32 * half, cuda::aligned_size_t<16>(128),
                       arrived);
    static_cast<void>(arrived.arrive());
    arrived.wait_parity(half != 0);
  }
  out[threadIdx.x] = tile[kThreads - 1 - threadIdx.x];
}

__global__ void atomic_references_kernel(int* counters, float* sum) {
  const cuda::atomic_ref<int, cuda::thread_scope_device> count(counters[0]), most(counters[1]),
      bits(counters[2]), changed(counters[3]);
  const cuda::atomic_ref<float> total(*sum);
  const auto own = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  count.fetch_add(1, cuda::memory_order_relaxed);
  most.fetch_max(own);
  bits.fetch_or(1 << own % 32);
  total.fetch_add(0.5f);
  int expected = 7;
  if (own == 5) changed.compare_exchange_strong(expected, 8);

  __shared__ cuda::atomic<unsigned, cuda::thread_scope_block> arrived;
  if (threadIdx.x == 0) arrived.store(0, cuda::memory_order_relaxed);
  __syncthreads();
  ++arrived;
  __syncthreads();
  if (threadIdx.x == 0 && arrived.load(cuda::memory_order_acquire) == blockDim.x)
    atomicAdd(&counters[4], 1);
}

}  // namespace

cudaError_t block_pipeline(PipelineRoles roles, const float* in, int rows, bool release,
                           float* out) {
  const auto config = shape(1);
  return cudaLaunchKernelEx(&config, block_pipeline_kernel, roles, in, rows, release, out);
}
cudaError_t barrier_of_group(const float* in, float* out) {
  const auto config = shape(1);
  return cudaLaunchKernelEx(&config, barrier_of_group_kernel, in, out);
}
cudaError_t atomic_references(int blocks, int* counters, float* sum) {
  const auto config = shape(blocks);
  return cudaLaunchKernelEx(&config, atomic_references_kernel, counters, sum);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
