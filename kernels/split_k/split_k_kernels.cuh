// The two kernels of split_k: parts of the keys each by a block of its own, then the merge of the parts.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "attn_diag/kernels/shared_memory.h"
#include "attn_diag/kernels/tap.h"
#include "common/attend.cuh"
#include "common/element.h"
#include "common/softmax_state.h"
#include "split_k/split_k.h"

namespace attn_diag {

// First kernel: a block attends one query tile of one head to the KV tiles of one split
// and leaves the state of its rows, unnormalised, in the workspace. A split without a visible key
// leaves m = -inf, l = 0, o = 0.
//
//   grid    (query tiles, num_splits, batch * heads)
//   block   Traits::kThreads
//   smem    Traits::shared_bytes(head_dim, head_dim_v), dynamic
template <class Traits, class Element, MaskPolicy Mask, TapPolicy Tap>
__global__ void __launch_bounds__(Traits::kThreads)
    split_k_partial_kernel(const Problem problem, const Geometry geometry,
                           const AttentionTensors<Element> tensors, const Mask mask,
                           const Partials partials, const Tap tap) {
  const int m_block = static_cast<int>(blockIdx.x);
  const int split = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z) / problem.heads;
  const int head = static_cast<int>(blockIdx.z) % problem.heads;
  const RowOfThread<Traits> at(batch, head, m_block);

  const int query_begin = m_block * Traits::kBlockM;
  const int query_end = query_begin + Traits::kBlockM < problem.seqlen_q
                            ? query_begin + Traits::kBlockM
                            : problem.seqlen_q;
  const TileRange tiles = intersect(tiles_of_split(problem, geometry, split),
                                    mask.tiles(query_begin, query_end, Traits::kBlockN));

  RowState<Traits> state;
  attend<Traits>(problem, tensors, mask, tiles, m_block, at, state, tap);
  if (tap.ends_before(Stage::kReduce)) return;

  if (at.query >= problem.seqlen_q) return;  // no barrier follows
  const std::int64_t row = partial_row(problem, geometry, batch, head, split, at.query);
  if (at.lane == 0) {
    partials.gM[row] = state.softmax.m;
    partials.gL[row] = state.softmax.l;
  }
  float* const gO_row = partials.gO + row * problem.head_dim_v;  // (head_dim_v)
  // A lane's columns are neighbours, those of different lanes are far apart: four at once if every
  // row begins at a multiple of 16 bytes.
  const bool vectors = problem.head_dim_v % 4 == 0 &&
                       reinterpret_cast<std::uintptr_t>(partials.gO) % sizeof(float4) == 0;
  ATTN_DIAG_UNROLL_WITHOUT_TAPS
  for (int chunk = 0; chunk < Traits::kColumnChunks; ++chunk) {
    ATTN_DIAG_UNROLL
    for (int j = 0; j < Traits::kColumns; j += 4) {
      const float* const rO = &state.rO[chunk][j];
      const int column = Traits::column_of(chunk, at.lane) + j;
      if (vectors && column < problem.head_dim_v) {
        *reinterpret_cast<float4*>(gO_row + column) = float4{rO[0], rO[1], rO[2], rO[3]};
      } else {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < 4; ++i)
          if (column + i < problem.head_dim_v) gO_row[column + i] = rO[i];
      }
    }
  }
}

// Second kernel: merges the splits of a row and normalises. A warp merges one row.
//
//   m = max_i m_i,  w_i = exp(m_i - m),  l = sum_i w_i l_i,  o = (sum_i w_i o_i) / l
//
//   grid    (query groups of kRowsPerBlock, heads, batch)
//   block   32 * kRowsPerBlock
//   smem    kRowsPerBlock * num_splits floats, dynamic: the weights
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
    merged.add(sWeight[split], partials.gL[first_row + split * split_stride]);
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
