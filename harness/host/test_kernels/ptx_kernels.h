// Kernels for what inline PTX asks of the executor: shared addresses, named barriers, mbarriers, matrix
// instructions. Built twice, as those of test_kernels.h.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "attn_diag_host/warp_matrix.h"

enum class BadAddress { kGlobal, kLocal, kNull, kZero, kPastTheEnd };
enum class BadNamedBarrier {
  kNumber,
  kOddCount,
  kTooManyThreads,
  kArriveWithoutCount,
  kDifferentCounts,
  kTwice,
  kZeroAgainstSyncthreads,
  kSyncthreadsAgainstZero,
  kTooFew
};
enum class BadMbarrier {
  kNotInitialised,
  kZeroed,
  kInvalidated,
  kNoArrivals,
  kTooManyArrivals,
  kGlobal,
  kMisaligned,
  kNeverComplete,
  kBytesNeverCome
};
enum class BadRow { kGlobal, kMisaligned, kReturnedLanes, kDifferentKinds };

// Static and dynamic shared memory as a thread sees them.
struct SeenAddresses {
  std::uint32_t static_address, dynamic_address, end_address;
  std::uintptr_t static_pointer, dynamic_pointer;
  bool same_static, same_dynamic, shared, global_shared, local, shared_local;
};

// Matrices row by row as 32-bit words of PTX's element type: f16 and bf16 in the low half.
struct MmaOperands {
  const std::uint32_t *a, *b, *c;
  std::uint32_t* d;
};

#define ATTN_DIAG_PTX_TEST_KERNELS                                                 \
  cudaError_t shared_addresses(SeenAddresses* out);                                \
  cudaError_t bad_address(BadAddress what, float* global);                         \
  /* `out`: one int a thread. */                                                   \
  cudaError_t named_pipeline(int tiles, int* out);                                 \
  cudaError_t named_whole_block(int threads, int staying, int* out);               \
  cudaError_t unfinished_arrival();                                                \
  cudaError_t bad_named_barrier(BadNamedBarrier what);                             \
  cudaError_t mbarrier_pipeline(int tiles, int* out);                              \
  cudaError_t mbarrier_bytes(int* out);                                            \
  cudaError_t mbarrier_states(std::uint64_t* out);                                 \
  cudaError_t mbarrier_copies(bool noinc, bool wait, const float* in, float* out); \
  cudaError_t bad_mbarrier(BadMbarrier what, std::uint64_t* global);               \
  /* 8 rows of 8 elements a matrix; `out`: `count` registers a lane. */            \
  cudaError_t load_matrices(int count, bool transposed, const std::uint16_t* in,   \
                            std::uint32_t* out);                                   \
  cudaError_t store_matrices(int count, bool transposed, const std::uint32_t* in,  \
                             std::uint16_t* out);                                  \
  cudaError_t write_then_load_matrix(bool synchronize, std::uint32_t* out);        \
  cudaError_t bad_row(BadRow what, std::uint16_t* global);                         \
  cudaError_t multiply_by_registers(attn_diag::host::MmaKind kind, const MmaOperands& x)

namespace plain {
ATTN_DIAG_PTX_TEST_KERNELS;
}
namespace lockstep {
ATTN_DIAG_PTX_TEST_KERNELS;
}
