#include "harness/host/test_kernels/test_kernels.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

cudaLaunchConfig_t one_block(int threads) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  return config;
}

constexpr unsigned kAll = 0xFFFFFFFFu;

__device__ int thread() { return static_cast<int>(threadIdx.x); }

__global__ void shuffle_kernel(Shuffle kind, int argument, int width, int* out) {
  const int mine = 1000 + thread();
  int got = 0;
  switch (kind) {
    case Shuffle::kIndex:
      got = __shfl_sync(kAll, mine, argument, width);
      break;
    case Shuffle::kUp:
      got = __shfl_up_sync(kAll, mine, static_cast<unsigned>(argument), width);
      break;
    case Shuffle::kDown:
      got = __shfl_down_sync(kAll, mine, static_cast<unsigned>(argument), width);
      break;
    case Shuffle::kXor:
      got = __shfl_xor_sync(kAll, mine, argument, width);
      break;
  }
  out[thread()] = got;
}

// Only one warp shuffles, several times, before the barrier at which the others already wait.
__global__ void shuffle_in_one_warp_kernel(int warp, int* out) {
  int sum = thread();
  if (thread() / warpSize == warp)
    for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(kAll, sum, i);
  __syncthreads();
  out[thread()] = sum;
}

__global__ void shuffle_types_kernel(double* doubles, long long* longs, half* halves,
                                     half2* pairs) {
  const int t = thread();
  doubles[t] = __shfl_xor_sync(kAll, t + 0.1, 1);
  longs[t] = __shfl_xor_sync(kAll, (1ll << 40) + t, 1);
  halves[t] = __shfl_xor_sync(kAll, __float2half(static_cast<float>(t) + 0.5f), 1);
  pairs[t] = __shfl_xor_sync(kAll, __floats2half2_rn(static_cast<float>(t), -1.0f), 1);
}

__global__ void votes_kernel(WarpVotes* out) {
  const int t = thread();
  WarpVotes v;
  v.ballot = __ballot_sync(kAll, t % 3 == 0);
  v.any = __any_sync(kAll, t == 7) + 2 * __any_sync(kAll, t == 99);
  v.all = __all_sync(kAll, t < 32) + 2 * __all_sync(kAll, t != 7);
  v.match_any = __match_any_sync(kAll, t % 4);
  v.match_all = __match_all_sync(kAll, 3.5f, &v.match_all_equal);
  int equal = 1;
  v.match_all += __match_all_sync(kAll, t / 31, &equal);
  v.match_all_equal += 2 * equal;
  v.reduce_add = __reduce_add_sync(kAll, static_cast<unsigned>(t));
  v.reduce_min = __reduce_min_sync(kAll, t - 16);
  v.reduce_max = __reduce_max_sync(kAll, t - 40);
  v.reduce_and = __reduce_and_sync(kAll, 0xF0u | static_cast<unsigned>(t));
  v.reduce_or = __reduce_or_sync(kAll, 1u << t);
  v.reduce_xor = __reduce_xor_sync(kAll, static_cast<unsigned>(t < 3 ? t : 0) + (t == 9 ? 4u : 0));
  out[t] = v;
}

// The two halves of a warp shuffle separately, a different number of times.
__global__ void half_warps_kernel(int* out) {
  const int t = thread();
  int sum = t;
  if (t < 16) {
    for (int i = 8; i > 0; i /= 2) sum += __shfl_xor_sync(0x0000FFFFu, sum, i, 16);
  } else {
    sum += __shfl_down_sync(0xFFFF0000u, sum, 1, 16);
  }
  out[t] = sum;
}

// Lane 0 meets lane 1 and lane 2 one after the other; lane 2 may come before lane 1.
__global__ void overlapping_masks_kernel(int* out) {
  const int t = thread();
  int got = 100 + t;
  if (t <= 1) got += 10 * __shfl_xor_sync(0b011u, t, 1);
  if (t != 1 && t <= 2) got += 1000 * __shfl_xor_sync(0b101u, t, 2);
  out[t] = got;
}

__global__ void read_outside_mask_kernel(unsigned* out) {
  if (thread() < 8) out[thread()] = __shfl_sync(0xFFu, static_cast<unsigned>(thread()), 12);
}

__global__ void shuffle_after_exit_kernel(int staying, unsigned* out) {
  if (thread() >= staying) return;
  out[thread()] = __shfl_down_sync(kAll, static_cast<unsigned>(thread()), 1);
}

__global__ void lane_not_in_mask_kernel() { __syncwarp(0xFFu); }

__global__ void mask_names_absent_lanes_kernel() {
  if (thread() < 4)
    __shfl_sync(kAll, 1, 0);
  else
    __syncthreads();
}

__global__ void mixed_operations_kernel() {
  if (thread() < 4)
    __shfl_sync(kAll, 1, 0);
  else
    __ballot_sync(kAll, 1);
}

__global__ void mixed_widths_kernel() { __shfl_sync(kAll, 1, 0, thread() < 4 ? 8 : 16); }

__global__ void width_three_kernel() { __shfl_sync(kAll, 1, 0, 3); }

__global__ void partial_warp_kernel(int* out) {
  int sum = 1;
  for (int i = 1; i < warpSize; i *= 2) {
    const int other = __shfl_down_sync(kAll, sum, static_cast<unsigned>(i));
    if (thread() % warpSize + i < warpSize && thread() + i < static_cast<int>(blockDim.x))
      sum += other;
  }
  out[thread()] = sum;
}

}  // namespace

cudaError_t shuffle(Shuffle kind, int argument, int width, int threads, int* out) {
  const auto config = one_block(threads);
  return cudaLaunchKernelEx(&config, shuffle_kernel, kind, argument, width, out);
}
cudaError_t shuffle_in_one_warp(int warp, int threads, int* out) {
  const auto config = one_block(threads);
  return cudaLaunchKernelEx(&config, shuffle_in_one_warp_kernel, warp, out);
}
cudaError_t shuffle_types(double* doubles, long long* longs, half* halves, half2* pairs) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, shuffle_types_kernel, doubles, longs, halves, pairs);
}
cudaError_t votes(WarpVotes* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, votes_kernel, out);
}
cudaError_t half_warps(int* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, half_warps_kernel, out);
}
cudaError_t overlapping_masks(int* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, overlapping_masks_kernel, out);
}
cudaError_t read_outside_mask(unsigned* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, read_outside_mask_kernel, out);
}
cudaError_t shuffle_after_exit(int staying, unsigned* out) {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, shuffle_after_exit_kernel, staying, out);
}
cudaError_t lane_not_in_mask() {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, lane_not_in_mask_kernel);
}
cudaError_t mask_names_absent_lanes() {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, mask_names_absent_lanes_kernel);
}
cudaError_t mixed_operations() {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, mixed_operations_kernel);
}
cudaError_t mixed_widths() {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, mixed_widths_kernel);
}
cudaError_t width_three() {
  const auto config = one_block(32);
  return cudaLaunchKernelEx(&config, width_three_kernel);
}
cudaError_t partial_warp(int threads, int* out) {
  const auto config = one_block(threads);
  return cudaLaunchKernelEx(&config, partial_warp_kernel, out);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
