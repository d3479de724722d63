#include "harness/host/test_kernels/group_kernels.h"

#undef NDEBUG  // of the kernels under test
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/cub.cuh>

#include <cassert>

namespace cg = cooperative_groups;

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

cudaLaunchConfig_t shape(int blocks, int threads) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  return config;
}

template <class Group>
__device__ void look(const Group& group, int value, GroupSeen* out) {
  GroupSeen seen;
  seen.rank = static_cast<int>(group.thread_rank());
  seen.size = static_cast<int>(group.size());
  seen.meta_rank = static_cast<int>(group.meta_group_rank());
  seen.meta_size = static_cast<int>(group.meta_group_size());
  seen.sum = cg::reduce(group, value, cg::plus<int>());
  seen.most = cg::reduce(group, value, cg::greater<int>());
  seen.before = cg::exclusive_scan(group, value);
  seen.up_to = cg::inclusive_scan(group, value, cg::plus<int>());
  seen.first = group.shfl(value, 0);
  seen.ballot = static_cast<int>(group.ballot(value % 3 == 0));
  seen.any = group.any(value == 5);
  group.sync();
  out[threadIdx.x] = seen;
}

__global__ void groups_kernel(GroupKind kind, GroupSeen* out) {
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const int value = static_cast<int>(threadIdx.x);
  switch (kind) {
    case GroupKind::kTile32:
      return look(warp, value, out);
    case GroupKind::kTile8:
      return look(cg::tiled_partition<8>(block), value, out);
    case GroupKind::kTileOfTile:
      return look(cg::tiled_partition<4>(cg::tiled_partition<16>(block)), value, out);
    case GroupKind::kCoalesced:
      if (value % 2 == 0) look(cg::coalesced_threads(), value, out);
      return;
    case GroupKind::kLabeled:
      return look(cg::labeled_partition(warp, value % 3), value, out);
    case GroupKind::kBinary:
      return look(cg::binary_partition(warp, value % 32 < 20), value, out);
  }
}

// Any group, as CUDA's own examples write it.
__device__ int sum_of(const cg::thread_group& group, int* temporary, int value) {
  const int lane = static_cast<int>(group.thread_rank());
  for (int i = static_cast<int>(group.size()) / 2; i > 0; i /= 2) {
    temporary[lane] = value;
    group.sync();
    if (lane < i) value += temporary[lane + i];
    group.sync();
  }
  return value;
}

__global__ void block_sum_kernel(int* out) {
  __shared__ int temporary[256];
  const cg::thread_block block = cg::this_thread_block();
  const int all = sum_of(block, temporary, static_cast<int>(block.thread_rank()));
  block.sync();
  const cg::thread_group tile = cg::tiled_partition(block, 16);
  const unsigned first = block.thread_rank() / 16 * 16;
  const int part = sum_of(tile, temporary + first, static_cast<int>(block.thread_rank()));
  if (block.thread_rank() == 0) out[0] = all;
  if (tile.thread_rank() == 0) out[1 + first / 16] = part;
}

constexpr int kReduced = 96;

// out: of the block its sum, its maximum, the sum of the first `valid`, the sum of two of each; then the sum of each eight,
// then the minimum of each warp.
__global__ void reductions_kernel(const float* in, int valid, float* out) {
  using OfBlock = cub::BlockReduce<float, kReduced>;
  using OfEight = cub::WarpReduce<float, 8>;
  __shared__ OfBlock::TempStorage storage;
  __shared__ OfEight::TempStorage eights[kReduced / 8];
  __shared__ cub::WarpReduce<float>::TempStorage warps[kReduced / 32];
  const unsigned own = threadIdx.x;
  const float sum = OfBlock(storage).Sum(in[own]);
  __syncthreads();
  const float most = OfBlock(storage).Reduce(in[own], cub::Max());
  __syncthreads();
  const float some = OfBlock(storage).Sum(in[own], valid);
  __syncthreads();
  float each[2] = {in[own], in[own]};
  const float both = OfBlock(storage).Sum(each);
  const float part = OfEight(eights[own / 8]).Sum(in[own]);
  const float least = cub::WarpReduce<float>(warps[own / 32]).Reduce(in[own], cub::Min());
  if (own == 0) {
    out[0] = sum;
    out[1] = most;
    out[2] = some;
    out[3] = both;
  }
  if (own % 8 == 0) out[4 + own / 8] = part;
  if (own % 32 == 0) out[4 + kReduced / 8 + own / 32] = least;
}

__global__ void wide_shuffle_kernel(double4* out) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  const double x = threadIdx.x;
  out[threadIdx.x] = tile.shfl_xor(double4{x, x + 0.25, x + 0.5, x + 0.75}, 5);
}

__global__ void group_copies_kernel(const float* in, int count, bool wait, float* out) {
  alignas(16) __shared__ float tile[2][256];
  const cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, tile[0], in, sizeof(float) * static_cast<std::size_t>(count));
  cg::memcpy_async(block, tile[1], 256, in + count, static_cast<std::size_t>(count));
  if (wait) cg::wait_prior<1>(block);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    out[i] = tile[0][count - 1 - i];
  cg::wait(block);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    out[count + i] = tile[1][count - 1 - i];
}

// Odd blocks come to the first of two barriers alone.
__global__ void grid_of_leavers_kernel(int* values) {
  const cg::grid_group grid = cg::this_grid();
  grid.sync();
  values[blockIdx.x] = 1;
  if (blockIdx.x % 2 == 1) return;
  grid.sync();
}

// In each round every thread takes its neighbour's value of the round before; one past the end.
__global__ void grid_rounds_kernel(int* values) {
  const cg::grid_group grid = cg::this_grid();
  const auto count = static_cast<int>(grid.size());
  const auto own = static_cast<int>(grid.thread_rank());
  values[own] = own;
  for (int round = 0; round < 3; ++round) {
    grid.sync();
    const int next = values[(own + 1) % count];
    grid.sync();
    values[own] = next;
  }
}

__global__ void pointer_kernel(int* out, int value, float scale) {
  out[threadIdx.x] =
      static_cast<int>(static_cast<float>(value) * scale) + static_cast<int>(threadIdx.x);
}

__global__ void stops_kernel(Stop how, int thread) {
  __syncthreads();
  const int own = static_cast<int>(threadIdx.x);
  if (own == thread && how == Stop::kTrap) __trap();
  if (how != Stop::kTrap) assert((how == Stop::kAssertHolds || own != thread) && "no such thread");
  __syncthreads();
}

__global__ void atomics_kernel(float4* sum, float2* pair, unsigned* bits) {
  const auto x = static_cast<float>(threadIdx.x);
  atomicAdd(sum, make_float4(x, 1, 2, 0.5f));
  atomicAdd(pair, make_float2(1, x));
  atomicOr_block(bits, 1u << threadIdx.x % 32);
  atomicMax_system(bits + 1, threadIdx.x);
  atomicCAS_block(bits + 2, 0u, threadIdx.x + 1);
}

__global__ void spaces_kernel(const int* global, unsigned* out) {
  __shared__ int shared[32];
  int local = 0;
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(&shared[3]));
  out[0] = address - static_cast<unsigned>(__cvta_generic_to_shared(shared));
  out[1] = __cvta_shared_to_generic(address) == &shared[3];
  out[2] = __isShared(shared) << 2 | __isShared(global) << 1 | __isShared(&local);
  out[3] = __isGlobal(shared) << 2 | __isGlobal(global) << 1 | __isGlobal(&local);
  out[4] = __isLocal(shared) << 2 | __isLocal(global) << 1 | __isLocal(&local);
  out[5] = __cvta_generic_to_global(global) == reinterpret_cast<std::size_t>(global);
  const long long before = clock64();
  __nanosleep(100);
  out[6] = clock64() > before;
}

}  // namespace

cudaError_t groups(GroupKind kind, int threads, GroupSeen* out) {
  const auto config = shape(1, threads);
  return cudaLaunchKernelEx(&config, groups_kernel, kind, out);
}
cudaError_t block_sum_of_groups(int threads, int* out) {
  const auto config = shape(1, threads);
  return cudaLaunchKernelEx(&config, block_sum_kernel, out);
}
cudaError_t reductions(const float* in, int valid, float* out) {
  const auto config = shape(1, kReduced);
  return cudaLaunchKernelEx(&config, reductions_kernel, in, valid, out);
}
cudaError_t wide_shuffle(double4* out) {
  const auto config = shape(1, 32);
  return cudaLaunchKernelEx(&config, wide_shuffle_kernel, out);
}
cudaError_t group_copies(const float* in, int count, bool wait, float* out) {
  const auto config = shape(1, 64);
  return cudaLaunchKernelEx(&config, group_copies_kernel, in, count, wait, out);
}
cudaError_t grid_rounds(int blocks, int threads, bool cooperative, int* values) {
  void* arguments[] = {&values};
  const dim3 grid(static_cast<unsigned>(blocks)), block(static_cast<unsigned>(threads));
  return cooperative ? cudaLaunchCooperativeKernel(grid_rounds_kernel, grid, block, arguments)
                     : cudaLaunchKernel(grid_rounds_kernel, grid, block, arguments);
}
cudaError_t grid_of_leavers(int blocks, int* values) {
  void* arguments[] = {&values};
  return cudaLaunchCooperativeKernel(grid_of_leavers_kernel, dim3(static_cast<unsigned>(blocks)),
                                     dim3(32), arguments);
}
cudaError_t launched_by_pointer(int* out, int value, float scale) {
  void* arguments[] = {&out, &value, &scale};
  return cudaLaunchKernel(pointer_kernel, dim3(1), dim3(32), arguments, 0, nullptr);
}
cudaError_t launched_by_untyped_pointer(int* out) {
  const void* kernel = reinterpret_cast<const void*>(pointer_kernel);
  void* arguments[] = {&out};
  return cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments);
}
cudaError_t clustered(unsigned blocks) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {blocks, 1, 1};
  attributes[1].id = cudaLaunchAttributePriority;
  auto config = shape(2, 32);
  config.attrs = attributes;
  config.numAttrs = 2;
  return cudaLaunchKernelEx(&config, stops_kernel, Stop::kAssertHolds, 0);
}
cudaError_t stops(Stop how, int thread) {
  const auto config = shape(2, 64);
  return cudaLaunchKernelEx(&config, stops_kernel, how, thread);
}
cudaError_t atomics_of_vectors(int threads, float4* sum, float2* pair, unsigned* bits) {
  const auto config = shape(1, threads);
  return cudaLaunchKernelEx(&config, atomics_kernel, sum, pair, bits);
}
cudaError_t address_spaces(const int* global, unsigned* out) {
  const auto config = shape(1, 1);
  return cudaLaunchKernelEx(&config, spaces_kernel, global, out);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
