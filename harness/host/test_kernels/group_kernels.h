// Kernels that groups_test.cc launches; built twice, as those of test_kernels.h.
#pragma once

#include <cuda_runtime.h>

// What the lanes of one group saw. One a thread.
struct GroupSeen {
  int rank, size, meta_rank, meta_size;
  int sum, most, before, up_to, first, ballot, any;
};

enum class GroupKind { kTile32, kTile8, kTileOfTile, kCoalesced, kLabeled, kBinary };
enum class Stop { kTrap, kAssert, kAssertHolds };

#define ATTN_DIAG_GROUP_KERNELS                                                           \
  cudaError_t groups(GroupKind kind, int threads, GroupSeen* out);                        \
  cudaError_t block_sum_of_groups(int threads, int* out);                                 \
  cudaError_t reductions(const float* in, int valid, float* out);                         \
  cudaError_t wide_shuffle(double4* out);                                                 \
  cudaError_t group_copies(const float* in, int count, bool wait, float* out);            \
  cudaError_t grid_rounds(int blocks, int threads, bool cooperative, int* values);        \
  cudaError_t grid_of_leavers(int blocks, int* values);                                   \
  cudaError_t launched_by_pointer(int* out, int value, float scale);                      \
  cudaError_t launched_by_untyped_pointer(int* out);                                      \
  cudaError_t clustered(unsigned blocks);                                                 \
  cudaError_t stops(Stop how, int thread);                                                \
  cudaError_t atomics_of_vectors(int threads, float4* sum, float2* pair, unsigned* bits); \
  cudaError_t address_spaces(const int* global, unsigned* out)

namespace plain {
ATTN_DIAG_GROUP_KERNELS;
}
namespace lockstep {
ATTN_DIAG_GROUP_KERNELS;
}
