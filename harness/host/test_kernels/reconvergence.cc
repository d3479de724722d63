// Lanes part in every way that a source has, and then exchange values with nothing but their convergence
// to order them.
#include "harness/host/test_kernels/reconvergence.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

constexpr int kLanes = 32, kRounds = 4;

struct Shared {
  int values[kLanes];
  int other[kLanes];
};

// What the neighbour stores by the same instruction.
__device__ __forceinline__ int exchange(Shared& shared, int t, int value) {
  shared.values[t] = value;
  return shared.values[t ^ 1] + 1000 * shared.values[t ^ 2];
}

__device__ __noinline__ void store_some(Shared& shared, int t) {
  for (int i = 0; i <= t % 3; ++i) shared.other[t] += i;
  if (t % 5 == 0) return;
  shared.other[t] -= 1;
}

__device__ void part(Parting parting, Shared& shared, int t, int round) {
  switch (parting) {
    case Parting::kIf:
      if (t == 0) shared.other[0] = round;
      break;
    case Parting::kElse:
      if (t % 2 == 0) {
        shared.other[t] = round;
        shared.other[t] += 3;
      } else {
        shared.other[t] = 5;
      }
      break;
    case Parting::kBreak:
      for (int i = 0; i < 10; ++i) {
        shared.other[t] += i;
        if (shared.other[t] > t) break;
      }
      break;
    case Parting::kContinue:
      for (int i = 0; i < 6; ++i) {
        if ((t + i) % 3 == 0) continue;
        shared.other[t] += i;
        if ((t + i) % 2 == 0) shared.other[t] -= 1;
      }
      break;
    case Parting::kNestedLoops:
      for (int i = 0; i < t % 4; ++i)
        for (int j = 0; j < (t + i) % 3; ++j) shared.other[t] += j;
      break;
    case Parting::kCall:
      if (t % 3 != 1) store_some(shared, t);
      break;
    case Parting::kSwitch:
      switch (shared.other[t] % 3) {
        case 0:
          shared.other[t] += 1;
          [[fallthrough]];
        case 1:
          shared.other[t] += 1;
          break;
        default:
          shared.other[t] = 0;
      }
      break;
    case Parting::kReturn:
      break;
  }
}

// The branch is the last thing in the body of a loop, and is the only code of it.
template <Parting kParting>
__global__ void part_in_loop(int* out) {
  __shared__ Shared shared;
  const int t = static_cast<int>(threadIdx.x);
  shared.other[t] = t;
  if (kParting == Parting::kReturn && t % 4 == 3) {
    out[t] = -1;
    return;
  }
  int sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    sum += exchange(shared, t, t * (round + 1));
    part(kParting, shared, t, round);
  }
  out[t] = sum + exchange(shared, t, t);
}

template <Parting kParting>
cudaError_t run(int* out) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(kLanes);
  return cudaLaunchKernelEx(&config, part_in_loop<kParting>, out);
}

// One lane stores what all load behind the branch.
__global__ void broadcast_kernel(int* out) {
  __shared__ int sValues[kLanes];
  const int t = static_cast<int>(threadIdx.x);
  int sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    sValues[t] = t + round;
    __syncthreads();
    if (t == 0) {
      const int value = sValues[0];
      sValues[0] = 2 * value + 1;
      sValues[1] = value + 7;
    }
    sum += sValues[0] + 10 * sValues[1];
    __syncthreads();
  }
  out[t] = sum;
}

// Two lanes take turns, by a lock that each holds on its own: waiting for lanes to converge must not keep the
// one that holds the lock from releasing it.
__global__ void lock_of_lanes_kernel(unsigned* lock, int* out) {
  while (atomicCAS(lock, 0u, 1u) != 0u) {
  }
  out[0] += 1;
  __threadfence();
  atomicExch(lock, 0u);
}

}  // namespace

cudaError_t reconverge(Parting parting, int* out) {
  switch (parting) {
    case Parting::kIf:
      return run<Parting::kIf>(out);
    case Parting::kElse:
      return run<Parting::kElse>(out);
    case Parting::kBreak:
      return run<Parting::kBreak>(out);
    case Parting::kContinue:
      return run<Parting::kContinue>(out);
    case Parting::kNestedLoops:
      return run<Parting::kNestedLoops>(out);
    case Parting::kCall:
      return run<Parting::kCall>(out);
    case Parting::kSwitch:
      return run<Parting::kSwitch>(out);
    case Parting::kReturn:
      break;
  }
  return run<Parting::kReturn>(out);
}

cudaError_t broadcast(int* out) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(kLanes);
  return cudaLaunchKernelEx(&config, broadcast_kernel, out);
}

cudaError_t lock_of_lanes(unsigned* lock, int* out) {
  cudaLaunchConfig_t config;
  config.blockDim = dim3(kLanes);
  return cudaLaunchKernelEx(&config, lock_of_lanes_kernel, lock, out);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
