// Kernels that the executor's tests launch. They are built twice: namespace `plain`, and `lockstep` with
// the compiler's call-outs. Each function launches the kernel of its name.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// One row a thread of the grid: what the thread saw.
struct SeenIndices {
  uint3 thread, block;
  dim3 block_dim, grid_dim;
};

struct WarpVotes {
  unsigned ballot, match_any, match_all, reduce_add, reduce_and, reduce_or, reduce_xor;
  int any, all, match_all_equal, reduce_min, reduce_max;
};

// Types of the inputs, of the accumulator read and of the one written.
enum class MatrixTypes {
  kHalfFloatFloat,
  kHalfHalfHalf,
  kHalfHalfFloat,
  kHalfFloatHalf,
  kBfloat16
};

struct MatrixOperands {
  const void *a, *b, *c;
  void* d;
  bool a_by_columns, b_by_columns, by_columns;  // memory order of a, of b, of c and d
};

enum class BadMatrix {
  kIndexPastTheEnd,
  kNegativeIndex,
  kStoreIntoOwnArray,
  kLoadFromOwnArray,
  kDifferentPointers,
  kDifferentStrides,
  kDifferentLayouts,
  kDifferentLines,
  kHalfStride,
  kFloatStride,
  kUnalignedLoad,
  kUnalignedStore,
  kUnsetAccumulator,
  kUnsetOperand,
  kUnsetStored,
  kScaledBeforeSet,
  kReturnedLanes,
  kSomeLanesElsewhere,
  kDifferentShapes
};

enum class BadCopy {
  kSize,
  kDestinationAlignment,
  kSourceAlignment,
  kZeros,
  kDestinationGlobal,
  kSourceShared,
  kSourceLocal
};
enum class BadBarrier { kNotInitialised, kNoArrivals, kTooManyArrivals, kNeverComplete };

enum class Shuffle { kIndex, kUp, kDown, kXor };

#define ATTN_DIAG_TEST_KERNELS                                                              \
  /* Barriers. `out` has one int a thread. */                                               \
  cudaError_t early_return(int threads, int staying, int* out);                             \
  cudaError_t divergent_barrier(dim3 block);                                                \
  cudaError_t barrier_against_syncwarp();                                                   \
  cudaError_t barrier_votes(int threads, int ayes, int3* out);                              \
  /* Warp collectives. */                                                                   \
  cudaError_t shuffle(Shuffle kind, int argument, int width, int threads, int* out);        \
  cudaError_t shuffle_in_one_warp(int warp, int threads, int* out);                         \
  cudaError_t shuffle_types(double* doubles, long long* longs, half* halves, half2* pairs); \
  cudaError_t votes(WarpVotes* out);                                                        \
  cudaError_t half_warps(int* out);                                                         \
  cudaError_t overlapping_masks(int* out);                                                  \
  cudaError_t read_outside_mask(unsigned* out);                                             \
  cudaError_t shuffle_after_exit(int staying, unsigned* out);                               \
  cudaError_t lane_not_in_mask();                                                           \
  cudaError_t mask_names_absent_lanes();                                                    \
  cudaError_t mixed_operations();                                                           \
  cudaError_t mixed_widths();                                                               \
  cudaError_t width_three();                                                                \
  cudaError_t partial_warp(int threads, int* out);                                          \
  /* Memory. */                                                                             \
  cudaError_t static_shared_poison(int blocks, std::uint32_t* out);                         \
  cudaError_t templated_shared_poison(int blocks, std::uint32_t* out);                      \
  cudaError_t dynamic_shared_poison(int blocks, std::size_t bytes, std::uint32_t* seen);    \
  cudaError_t dynamic_shared_alignment(std::uint64_t* out);                                 \
  cudaError_t dynamic_shared_with_attribute(std::size_t bytes, int attribute_bytes);        \
  cudaError_t local_poison(int blocks, std::uint32_t* out);                                 \
  cudaError_t large_locals(int threads, int* out);                                          \
  cudaError_t constant_memory(const float* values, float* out);                             \
  cudaError_t wide_loads(const float* in, float* out, int count);                           \
  /* Schedules: each writes one float a thread of 3 blocks of 96 threads. */                \
  cudaError_t right(float* out);                                                            \
  cudaError_t right_with_divergence(float* out);                                            \
  cudaError_t missing_syncwarp(float* out);                                                 \
  cudaError_t missing_syncwarp_after_divergence(float* out);                                \
  cudaError_t missing_syncthreads(float* out);                                              \
  cudaError_t active_masks(unsigned* out);                                                  \
  cudaError_t order_of_threads(int threads, int blocks, int* counter, int* out);            \
  /* Matrices, m x n x 16 with m n = 256. */                                                \
  cudaError_t product(int m, MatrixTypes types, const MatrixOperands& x);                   \
  cudaError_t bad_matrix(BadMatrix what, half* inputs, float* out);                         \
  /* a b, with all elements set through x[]; `out` is the 256 elements, row by row. */      \
  cudaError_t product_by_elements(float* out);                                              \
  /* A matrix written by the lanes and loaded, with or without a __syncwarp between. */     \
  cudaError_t write_then_load(bool synchronize, float* out);                                \
  /* A fragment stored and read back by other lanes, likewise. */                           \
  cudaError_t store_then_read(bool synchronize, float* out);                                \
  /* Asynchronous copies. `out` has one float a thread. */                                  \
  cudaError_t staged_copies(const float* in, int prior, float* out);                        \
  cudaError_t zero_filled_copies(const float* in, float* out);                              \
  cudaError_t pipelined_copies(const float* in, int tiles, float* out);                     \
  cudaError_t copies_with_barrier(const float* in, bool wait, float* out);                  \
  cudaError_t barrier_phases(int threads, int* out);                                        \
  cudaError_t producer_and_consumers(float* out);                                           \
  cudaError_t copies_not_waited_for(const float* in, bool bound);                           \
  cudaError_t bad_copy(BadCopy what, float* global);                                        \
  cudaError_t bad_barrier(BadBarrier what);                                                 \
  /* Ends, launches, indices, atomics. */                                                   \
  cudaError_t endless_barriers();                                                           \
  cudaError_t endless_syncwarps();                                                          \
  cudaError_t endless_loop(volatile int* flag);                                             \
  cudaError_t endless_after_barrier(volatile int* flag);                                    \
  cudaError_t floats(const float* in, float* out, unsigned blocks);                         \
  cudaError_t throws(int thread);                                                           \
  cudaError_t block_fails(int slow, int* started);                                          \
  cudaError_t indices(dim3 grid, dim3 block, SeenIndices* out);                             \
  cudaError_t shaped(dim3 grid, dim3 block, std::size_t dynamic_shared);                    \
  cudaError_t worker_ids(int blocks, int* out);                                             \
  cudaError_t atomics(int blocks, int threads, int* ints, unsigned* unsigneds,              \
                      unsigned long long* longs, float* floats, double* doubles, half2* halves)

namespace plain {
ATTN_DIAG_TEST_KERNELS;
}
namespace lockstep {
ATTN_DIAG_TEST_KERNELS;
}
