#include "harness/host/test_kernels/spin_kernels.h"

#include "attn_diag_host/give_way.h"

namespace ATTN_DIAG_TEST_NAMESPACE {
namespace {

cudaLaunchConfig_t shape(int blocks, int threads) {
  cudaLaunchConfig_t config;
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  return config;
}

__device__ int thread() { return static_cast<int>(threadIdx.x); }
__device__ int block() { return static_cast<int>(blockIdx.x); }
__device__ int blocks() { return static_cast<int>(gridDim.x); }

__device__ void wait_for(int* flag) {
  while (*static_cast<volatile int*>(flag) == 0) {
  }
  __threadfence();
}
__device__ void set(int* flag) {
  __threadfence();
  *static_cast<volatile int*>(flag) = 1;
}

__global__ void hand_off_kernel(int waiter, int* flag, int* out) {
  if (block() == waiter) {
    if (thread() == 0) wait_for(flag);
    __syncthreads();
    out[thread()] = out[32 + thread()] + 1;
  } else {
    out[32 + thread()] = thread();
    __syncthreads();
    if (thread() == 0) set(flag);
  }
}

__global__ void chain_kernel(bool backwards, int* flags, int* out) {
  const int before = backwards ? block() + 1 : block() - 1;
  const bool first = before < 0 || before == blocks();
  if (!first && thread() == 0) wait_for(&flags[before]);
  __syncthreads();
  if (thread() == 0) {
    out[block()] = first ? 1 : out[before] + 1;
    set(&flags[block()]);
  }
}

__global__ void ticket_lock_kernel(int* tickets, int* out) {
  const int mine = atomicAdd(&tickets[0], 1);
  while (atomicAdd(&tickets[1], 0) != mine) {
  }
  out[0] += 1;
  __threadfence();
  atomicAdd(&tickets[1], 1);
}

__global__ void exchange_lock_kernel(int* lock, int* out) {
  if (thread() % 32 != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  out[0] += 1;
  __syncwarp();  // with the lock held, so that another warp may run now
  out[0] += 1;
  atomicExch(lock, 0);
}

__global__ void grid_of_barriers_kernel(int phases, int* counter, int* values, int* out) {
  int value = block();
  for (int phase = 1; phase <= phases; ++phase) {
    if (thread() == 0) {
      values[phase % 2 * blocks() + block()] = value;
      __threadfence();
      atomicAdd(counter, 1);
      while (*static_cast<volatile int*>(counter) < phase * blocks()) {
      }
      __threadfence();
    }
    __syncthreads();
    value = values[phase % 2 * blocks() + (block() + 1) % blocks()];
  }
  if (thread() == 0) out[block()] = value;
}

__global__ void polling_with_give_way_kernel(int* counter, int* out) {
  if (thread() == 0) {
    atomicAdd(counter, 1);
    while (*static_cast<volatile int*>(counter) < blocks())
      attn_diag::host::give_way(__FILE__, __LINE__);
  }
  __syncthreads();
  if (thread() == 0) out[block()] = *counter;
}

__global__ void volatile_pipeline_kernel(int tiles, int* out) {
  __shared__ volatile int full, empty, buffer[32];
  if (thread() == 0) {
    full = 0;
    empty = 0;
  }
  __syncthreads();
  const int lane = thread() % 32;
  int sum = 0;
  for (int tile = 1; tile <= tiles; ++tile) {
    if (thread() < 32) {
      while (empty < (tile - 1) * 32) {
      }
      buffer[lane] = tile * lane;
      __syncwarp();
      if (lane == 0) full = tile;
    } else {
      while (full < tile) {
      }
      sum += buffer[31 - lane];
      __syncwarp();
      atomicAdd(const_cast<int*>(&empty), 1);
    }
  }
  out[thread()] = sum;
}

__global__ void lanes_in_turn_kernel(int* out) {
  __shared__ volatile int turn;
  if (thread() == 0) turn = 31;
  __syncwarp();
  while (turn != thread()) {
  }
  out[thread()] = 31 - turn;
  turn = thread() - 1;
}

__global__ void counting_wait_kernel(int* flag, int* out) {
  if (thread() == 0) {
    int polls = 0;
    while (*static_cast<volatile int*>(flag) == 0) ++polls;
    out[0] = polls > 0;
  } else {
    set(flag);
  }
}

__global__ void registers_kept_kernel(int* flag, const double* in, double* out) {
  // Many values live across the loop, as many as possible in registers.
  double x[24];
#pragma GCC unroll 24
  for (int i = 0; i < 24; ++i) x[i] = in[i] * (thread() + 1);
  if (thread() != 31) {
    while (*static_cast<volatile int*>(flag) == 0) {
    }
  } else {
    set(flag);
  }
#pragma GCC unroll 24
  for (int i = 0; i < 24; ++i) out[thread() * 24 + i] = x[i];
}

__global__ void long_computation_kernel(int steps, int* counter, int* order, double* sink) {
  double x = thread();
  for (int i = 0; i < steps; ++i) x = x * 0.999 + 1.0 / (i + 1);
  sink[thread()] = x;
  order[atomicAdd(counter, 1)] = thread();
}

__global__ void waits_for_nobody_kernel(int* flag) {
  __syncthreads();
  if (thread() == 5) wait_for(flag);
  __syncthreads();
}

__global__ void wait_in_a_circle_kernel(int* flags) {
  if (thread() == 0) wait_for(&flags[1 - block()]);
  __syncthreads();
  if (thread() == 0) set(&flags[block()]);
}

__global__ void other_block_fails_kernel(int* flag) {
  if (block() == 0) {
    if (thread() == 0) wait_for(flag);
    return;
  }
  if (thread() == 0)
    __syncthreads();
  else
    __syncthreads();
  set(flag);
}

}  // namespace

cudaError_t hand_off(int waiter, int* flag, int* out) {
  const auto config = shape(2, 32);
  return cudaLaunchKernelEx(&config, hand_off_kernel, waiter, flag, out);
}
cudaError_t chain(int blocks, bool backwards, int* flags, int* out) {
  const auto config = shape(blocks, 64);
  return cudaLaunchKernelEx(&config, chain_kernel, backwards, flags, out);
}
cudaError_t ticket_lock(int blocks, int* tickets, int* out) {
  const auto config = shape(blocks, 64);
  return cudaLaunchKernelEx(&config, ticket_lock_kernel, tickets, out);
}
cudaError_t exchange_lock(int blocks, int* lock, int* out) {
  const auto config = shape(blocks, 64);
  return cudaLaunchKernelEx(&config, exchange_lock_kernel, lock, out);
}
cudaError_t grid_of_barriers(int blocks, int phases, int* counter, int* values, int* out) {
  const auto config = shape(blocks, 64);
  return cudaLaunchKernelEx(&config, grid_of_barriers_kernel, phases, counter, values, out);
}
cudaError_t polling_with_give_way(int blocks, int* counter, int* out) {
  const auto config = shape(blocks, 64);
  return cudaLaunchKernelEx(&config, polling_with_give_way_kernel, counter, out);
}
cudaError_t volatile_pipeline(int tiles, int* out) {
  const auto config = shape(1, 64);
  return cudaLaunchKernelEx(&config, volatile_pipeline_kernel, tiles, out);
}
cudaError_t lanes_in_turn(int* out) {
  const auto config = shape(1, 32);
  return cudaLaunchKernelEx(&config, lanes_in_turn_kernel, out);
}
cudaError_t counting_wait(int* flag, int* out) {
  const auto config = shape(1, 32);
  return cudaLaunchKernelEx(&config, counting_wait_kernel, flag, out);
}
cudaError_t registers_kept(int* flag, const double* in, double* out) {
  const auto config = shape(1, 32);
  return cudaLaunchKernelEx(&config, registers_kept_kernel, flag, in, out);
}
cudaError_t long_computation(int steps, int* counter, int* order, double* sink) {
  const auto config = shape(1, 4);
  return cudaLaunchKernelEx(&config, long_computation_kernel, steps, counter, order, sink);
}
cudaError_t waits_for_nobody(int blocks, int* flag) {
  const auto config = shape(blocks, 64);
  return cudaLaunchKernelEx(&config, waits_for_nobody_kernel, flag);
}
cudaError_t wait_in_a_circle(int* flags) {
  const auto config = shape(2, 32);
  return cudaLaunchKernelEx(&config, wait_in_a_circle_kernel, flags);
}
cudaError_t other_block_fails(int* flag) {
  const auto config = shape(2, 32);
  return cudaLaunchKernelEx(&config, other_block_fails_kernel, flag);
}

}  // namespace ATTN_DIAG_TEST_NAMESPACE
