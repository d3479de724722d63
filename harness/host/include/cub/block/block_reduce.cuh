// Stand-in for CUDA's header of this name: reductions over a block, by its warps and then by thread 0, which has the
// result. Whoever uses the storage again waits before, as on a GPU.
#pragma once

#include <cstddef>

#include "../warp/warp_reduce.cuh"

#define ATTN_DIAG_CUB_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};

template <class T, int BLOCK_DIM_X, BlockReduceAlgorithm ALGORITHM = BLOCK_REDUCE_WARP_REDUCTIONS,
          int BLOCK_DIM_Y = 1, int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockReduce {
  static constexpr int kThreads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z;
  static constexpr int kWarps = (kThreads + 31) / 32;

 public:
  struct TempStorage {
    T warp_aggregates[kWarps];
  };

  explicit BlockReduce(TempStorage& storage) : x_storage(storage) {}

  T Sum(T input, ATTN_DIAG_CUB_SITE) { return reduce(input, cub::Sum(), kThreads, file, line); }
  T Sum(T input, int num_valid, ATTN_DIAG_CUB_SITE) {
    return reduce(input, cub::Sum(), num_valid, file, line);
  }
  template <int N>
  T Sum(T (&inputs)[N], ATTN_DIAG_CUB_SITE) {
    return reduce(of_thread(inputs, cub::Sum()), cub::Sum(), kThreads, file, line);
  }
  template <class Op>
  T Reduce(T input, Op op, ATTN_DIAG_CUB_SITE) {
    return reduce(input, op, kThreads, file, line);
  }
  template <class Op>
  T Reduce(T input, Op op, int num_valid, ATTN_DIAG_CUB_SITE) {
    return reduce(input, op, num_valid, file, line);
  }
  template <int N, class Op>
  T Reduce(T (&inputs)[N], Op op, ATTN_DIAG_CUB_SITE) {
    return reduce(of_thread(inputs, op), op, kThreads, file, line);
  }

 private:
  template <int N, class Op>
  static T of_thread(const T (&inputs)[N], Op op) {
    T value = inputs[0];
    for (int i = 1; i < N; ++i) value = op(value, inputs[i]);
    return value;
  }

  template <class Op>
  T reduce(T value, Op op, int valid, const char* file, int line) {
    const int thread =
        static_cast<int>(threadIdx.x + BLOCK_DIM_X * (threadIdx.y + BLOCK_DIM_Y * threadIdx.z));
    const int warp = thread / 32;
    typename WarpReduce<T>::TempStorage none;
    value = WarpReduce<T>(none).Reduce(value, op, valid - 32 * warp, file, line);
    if (thread % 32 == 0) x_storage.warp_aggregates[warp] = value;
    __syncthreads(file, line);
    if (thread == 0)
      for (int other = 1; other < kWarps && 32 * other < valid; ++other)
        value = op(value, x_storage.warp_aggregates[other]);
    return value;
  }

  TempStorage& x_storage;
};

}  // namespace cub

#undef ATTN_DIAG_CUB_SITE
