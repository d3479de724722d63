// First kernel of split_k: a block attends one query tile of one head to the KV tiles of one split
// and leaves the state of its rows, unnormalised, in the workspace. A split without a visible key
// leaves m = -inf, l = 0, o = 0.
//
//   grid    (query tiles, num_splits, batch * heads)
//   block   Traits::kThreads
//   smem    Traits::shared_bytes(head_dim, head_dim_v), dynamic
#pragma once

#include "common/attend.cuh"
#include "split_k/workspace.h"

namespace attn_diag {

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
  if constexpr (Tap::ends_before(Stage::kReduce)) return;

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

}  // namespace attn_diag
