// Kernels whose threads and blocks wait for one another by polling memory. Built twice, as those of
// test_kernels.h.
#pragma once

#include <cuda_runtime.h>

#define ATTN_DIAG_SPIN_TEST_KERNELS                                                          \
  /* Block `waiter` of two waits for the other's flag. */                                    \
  cudaError_t hand_off(int waiter, int* flag, int* out);                                     \
  /* Each block waits for the one before it, or after it. `out`: one int a block. */         \
  cudaError_t chain(int blocks, bool backwards, int* flags, int* out);                       \
  /* Threads of all blocks count under a lock; out[0] is the count. */                       \
  cudaError_t ticket_lock(int blocks, int* tickets, int* out);                               \
  cudaError_t exchange_lock(int blocks, int* lock, int* out);                                \
  /* Each phase reads what another block has written in the phase before. */                 \
  cudaError_t grid_of_barriers(int blocks, int phases, int* counter, int* values, int* out); \
  cudaError_t polling_with_give_way(int blocks, int* counter, int* out);                     \
  /* Warp 0 produces, warp 1 consumes, by volatile flags in shared memory. */                \
  cudaError_t volatile_pipeline(int tiles, int* out);                                        \
  /* Every lane waits for the next one. */                                                   \
  cudaError_t lanes_in_turn(int* out);                                                       \
  cudaError_t counting_wait(int* flag, int* out);                                            \
  cudaError_t registers_kept(int* flag, const double* in, double* out);                      \
  /* Threads write the order in which they end; each computes for a while. */                \
  cudaError_t long_computation(int steps, int* counter, int* order, double* sink);           \
  /* Without end. */                                                                         \
  cudaError_t waits_for_nobody(int blocks, int* flag);                                       \
  cudaError_t wait_in_a_circle(int* flags);                                                  \
  cudaError_t other_block_fails(int* flag)

namespace plain {
ATTN_DIAG_SPIN_TEST_KERNELS;
}
namespace lockstep {
ATTN_DIAG_SPIN_TEST_KERNELS;
}
