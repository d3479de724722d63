// fa1: attention in one pass over the KV tiles, with online softmax (Milakov and Gimelshein 2018;
// Dao et al. 2022). One block computes one query tile of one head.
//
//   grid    (query tiles, heads, batch)
//   block   Traits::kThreads
//   smem    Traits::shared_bytes(head_dim, head_dim_v), dynamic
//
// S, P and the running output never leave the block; o and lse are written once.
#pragma once

#include "common/attend.cuh"

namespace attn_diag {

template <class Traits, class Element, MaskPolicy Mask, TapPolicy Tap>
__global__ void __launch_bounds__(Traits::kThreads)
    fa1_kernel(const Problem problem, const AttentionTensors<Element> tensors, const Mask mask,
               const Tap tap) {
  const int m_block = static_cast<int>(blockIdx.x);
  const RowOfThread<Traits> at(static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y), m_block);

  const int query_begin = m_block * Traits::kBlockM;
  const int query_end = query_begin + Traits::kBlockM < problem.seqlen_q
                            ? query_begin + Traits::kBlockM
                            : problem.seqlen_q;
  const TileRange tiles = mask.tiles(query_begin, query_end, Traits::kBlockN);

  RowState<Traits> state;
  attend<Traits>(problem, tensors, mask, tiles, m_block, at, state, tap);
  if (tap.ends_before(Stage::kReduce)) return;

  // Stage reduce, last part: normalise and store. No barrier follows, so rows past the end leave.
  if (at.query >= problem.seqlen_q) return;
  if (at.lane == 0) {
    float lse = state.softmax.lse();
    tap.template visit<Tensor::kLse>(lse, at.batch, at.head, at.query);
    const std::int64_t row = std::int64_t{at.batch} * problem.heads + at.head;
    tensors.gLse[row * problem.seqlen_q + at.query] = lse;
  }
  const Strides o_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, problem.head_dim_v);
  Element* const gO_row = tensors.gO + at.batch * o_strides.batch + at.head * o_strides.head +
                          at.query * o_strides.seq;  // (head_dim_v)
  ATTN_DIAG_UNROLL_WITHOUT_TAPS
  for (int chunk = 0; chunk < Traits::kColumnChunks; ++chunk) {
    ATTN_DIAG_UNROLL
    for (int j = 0; j < Traits::kColumns; ++j) {
      const int column = Traits::column_of(chunk, at.lane) + j;
      if (column >= problem.head_dim_v) continue;
      float o = state.softmax.normalise(state.rO[chunk][j]);
      tap.template visit<Tensor::kO>(o, at.batch, at.head, at.query, column);
      gO_row[column] = from_float<Element>(o);
    }
  }
}

}  // namespace attn_diag
