// Second kernel of split_k: merges the splits of a row and normalises. A warp merges one row.
//
//   m = max_i m_i,  w_i = exp(m_i - m),  l = sum_i w_i l_i,  o = (sum_i w_i o_i) / l
//
//   grid    (query groups of kRowsPerBlock, heads, batch)
//   block   32 * kRowsPerBlock
//   smem    kRowsPerBlock * num_splits floats, dynamic: the weights
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "attn_diag/kernels/shared_memory.h"
#include "attn_diag/kernels/tap.h"
#include "common/element.h"
#include "common/softmax_state.h"
#include "split_k/workspace.h"

namespace attn_diag {

struct ReduceTraits {
  static constexpr int kWarpSize = 32;
  static constexpr int kRowsPerBlock = 4;
  static constexpr int kThreads = kWarpSize * kRowsPerBlock;
  static constexpr std::size_t shared_bytes(int num_splits) {
    return sizeof(float) * kRowsPerBlock * static_cast<std::size_t>(num_splits);
  }
};

template <class Element, TapPolicy Tap>
__global__ void __launch_bounds__(ReduceTraits::kThreads)
    split_k_reduce_kernel(const Problem problem, const Geometry geometry, const Partials partials,
                          Element* __restrict__ gO, float* __restrict__ gLse, const Tap tap) {
  constexpr int kWarpSize = ReduceTraits::kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int query = static_cast<int>(blockIdx.x) * ReduceTraits::kRowsPerBlock + warp;
  const int head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z);
  if (query >= problem.seqlen_q) return;  // whole warps leave; only warps synchronise below

  const int num_splits = geometry.num_splits;
  const std::int64_t first_row = partial_row(problem, geometry, batch, head, 0, query);
  const std::int64_t split_stride = problem.seqlen_q;  // rows from one split to the next
  float* const sWeight = dynamic_shared<float>() + warp * num_splits;  // (num_splits)

  // Splits are dealt out to lanes to find the maximum and the weights.
  SoftmaxState merged;
  for (int split = lane; split < num_splits; split += kWarpSize)
    merged.m = fmaxf(merged.m, partials.gM[first_row + split * split_stride]);
  for (int step = kWarpSize / 2; step > 0; step /= 2)
    merged.m = fmaxf(merged.m, __shfl_xor_sync(0xffffffffu, merged.m, step));
  for (int split = lane; split < num_splits; split += kWarpSize)
    sWeight[split] = rescale_factor(partials.gM[first_row + split * split_stride], merged.m);
  __syncwarp();

  // Every lane sums l, in the same order.
  for (int split = 0; split < num_splits; ++split) {
    merged.l += sWeight[split] * partials.gL[first_row + split * split_stride];
    tap.template visit<Tensor::kMergedL>(merged.l, lane == 0, batch, head, query, split, 0);
  }

  const Strides o_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, problem.head_dim_v);
  Element* const gO_row =
      gO + batch * o_strides.batch + head * o_strides.head + query * o_strides.seq;  // (head_dim_v)
  for (int column = lane; column < problem.head_dim_v; column += kWarpSize) {
    float sum = 0.0f;
    for (int split = 0; split < num_splits; ++split) {
      const std::int64_t row = first_row + split * split_stride;
      sum += sWeight[split] * partials.gO[row * problem.head_dim_v + column];
      tap.template visit<Tensor::kMergedO>(sum, batch, head, query, split, column);
    }
    float o = merged.normalise(sum);
    tap.template visit<Tensor::kO>(o, batch, head, query, column);
    gO_row[column] = from_float<Element>(o);
  }

  if (lane == 0) {
    float lse = merged.lse();
    tap.template visit<Tensor::kLse>(lse, batch, head, query);
    const std::int64_t row = std::int64_t{batch} * problem.heads + head;
    gLse[row * problem.seqlen_q + query] = lse;
  }
}

}  // namespace attn_diag
