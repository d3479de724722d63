#include "harness/host/check/untaken_kernels.h"

#include "attn_diag_host/check_hooks.h"

namespace {
__device__ int g_sum = 0;
}

namespace attn_diag::host::checked {
namespace {

constexpr int kThreads = 64;

__global__ void local_loop(int* out, int steps, bool taken) {
  int rMost[2];
  local_array(rMost, sizeof rMost, "rMost", __FILE__, __LINE__);
  if (taken) out[threadIdx.x] = rMost[1];
  for (int i = 0; i < steps; ++i) {
    if (i == 0) {
      rMost[0] = steps;
      rMost[1] = 2 * steps;
    } else {
      rMost[0] = max(rMost[0], i * 3 % steps);
      rMost[1] = max(rMost[1], i * 5 % steps);
    }
  }
  out[threadIdx.x] = rMost[0] + rMost[1];
}

__global__ void shared_loop(int* out, int steps, bool taken) {
  __shared__ int sMost[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < steps; ++i) {
      if (i == 0 && !taken)
        sMost[0] = steps;
      else
        sMost[0] = max(sMost[0], i * 3 % steps);
    }
    out[0] = sMost[0];
  }
}

__global__ void one_thread(int* out, int steps, bool taken) {
  __shared__ int sSum[2];
  if (threadIdx.x == 0) sSum[0] = 0;
  __syncthreads();
  for (int i = 0; i < steps; ++i)
    if (threadIdx.x == 0 || (taken && threadIdx.x == 40)) sSum[0] += i * (threadIdx.x + 1);
  __syncthreads();
  out[threadIdx.x] = sSum[0];
}

__global__ void variable_loop(int* out, int steps, bool taken) {
  for (int i = 0; i < steps; ++i)
    if (threadIdx.x == 0 || (taken && threadIdx.x == 40)) g_sum += i * (threadIdx.x + 1);
  __syncthreads();
  out[threadIdx.x] = g_sum;
}

__global__ void local_choice(int* out, int steps, bool taken) {
  int rSet[2], rUnset[2];
  local_array(rSet, sizeof rSet, "rSet", __FILE__, __LINE__);
  local_array(rUnset, sizeof rUnset, "rUnset", __FILE__, __LINE__);
  rSet[0] = steps;
  if (steps == 12345) rUnset[1] = 1;
  out[threadIdx.x] = taken ? rUnset[1] : rSet[0];
}

__global__ void shared_choice(int* out, int steps, bool taken) {
  __shared__ int sSet[2], sUnset[2];
  if (threadIdx.x == 0) sSet[0] = steps;
  if (steps == 12345) sUnset[1] = 1;
  __syncthreads();
  out[threadIdx.x] = taken ? sUnset[1] : sSet[0];
}

// clang-format off
__global__ void without_line(int* out, int steps) {
  __shared__ int sUnset[kThreads];
  if (steps == 12345) sUnset[threadIdx.x] = 1;
#line 0
  out[threadIdx.x] = sUnset[threadIdx.x];
#line 84
}
// clang-format on

}  // namespace

cudaError_t load_without_line(int* out) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(kThreads);
  return cudaLaunchKernelEx(&config, without_line, out, 4);
}

cudaError_t loads_untaken(Untaken what, int* out, int steps, bool taken) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(kThreads);
  const auto kernel = what == Untaken::kLocalLoop      ? local_loop
                      : what == Untaken::kSharedLoop   ? shared_loop
                      : what == Untaken::kOneThread    ? one_thread
                      : what == Untaken::kVariableLoop ? variable_loop
                      : what == Untaken::kLocalChoice  ? local_choice
                                                       : shared_choice;
  return cudaLaunchKernelEx(&config, kernel, out, steps, taken);
}

}  // namespace attn_diag::host::checked
