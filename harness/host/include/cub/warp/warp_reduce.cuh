// Stand-in for CUDA's header of this name: reductions over a warp, or over equal parts of one. Lane 0 has the result; what
// the others have is as little use as on a GPU.
#pragma once

#include <cuda_runtime.h>

#include "../thread/thread_operators.cuh"

#define ATTN_DIAG_CUB_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace cub {

template <class T, int LOGICAL_WARP_THREADS = 32, int LEGACY_PTX_ARCH = 0>
class WarpReduce {
  static_assert(LOGICAL_WARP_THREADS > 0 && LOGICAL_WARP_THREADS <= 32 &&
                    (LOGICAL_WARP_THREADS & (LOGICAL_WARP_THREADS - 1)) == 0,
                "the host executor's WarpReduce is for 1, 2, 4, 8, 16 or 32 lanes");

 public:
  struct TempStorage {
    char unused;
  };

  explicit WarpReduce(TempStorage&) {}

  T Sum(T input, ATTN_DIAG_CUB_SITE) { return reduce(input, cub::Sum(), kLanes, file, line); }
  T Sum(T input, int valid_items, ATTN_DIAG_CUB_SITE) {
    return reduce(input, cub::Sum(), valid_items, file, line);
  }
  template <class Op>
  T Reduce(T input, Op op, ATTN_DIAG_CUB_SITE) {
    return reduce(input, op, kLanes, file, line);
  }
  template <class Op>
  T Reduce(T input, Op op, int valid_items, ATTN_DIAG_CUB_SITE) {
    return reduce(input, op, valid_items, file, line);
  }

 private:
  static constexpr int kLanes = LOGICAL_WARP_THREADS;

  template <class Op>
  static T reduce(T value, Op op, int valid, const char* file, int line) {
    const int lane_of_warp = static_cast<int>(
        (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32u);
    const int lane = lane_of_warp % kLanes;
    const unsigned mask = (kLanes == 32 ? ~0u : (1u << kLanes % 32) - 1) << (lane_of_warp - lane);
    for (int step = 1; step < kLanes; step *= 2) {
      const T other =
          __shfl_down_sync(mask, value, static_cast<unsigned>(step), kLanes, file, line);
      if (lane + step < (valid < kLanes ? valid : kLanes)) value = op(value, other);
    }
    return value;
  }
};

}  // namespace cub

#undef ATTN_DIAG_CUB_SITE
