// What fa1 and split_k share: one query tile attends to a range of KV tiles, with online softmax.
//
//   for each KV tile:   S = scale * Q K^T, masked      stage qk
//                       m, P = exp(S - m), l           stage softmax
//                       partial_o = P V                stage pv
//                       acc = alpha * acc + partial_o  stage reduce
//
// The product of one tile is finished apart from the accumulator, so that stage pv can be seen and
// fed alone.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "attn_diag/kernels/shared_memory.h"
#include "attn_diag/kernels/tap.h"
#include "common/attention_tensors.h"
#include "common/element.h"
#include "common/kernel_traits.h"
#include "common/mask.h"
#include "common/row_times_tile.h"
#include "common/softmax_state.h"
#include "common/tile_range.h"

namespace attn_diag {

// The row a thread works on, and its place in the group of lanes that share it.
template <class Traits>
struct RowOfThread {
  int batch, head, query;
  int row;              // query - first query of the tile
  int lane;             // 0 .. kLanesPerRow - 1
  unsigned group_mask;  // the lanes of this row; all of them take part in every exchange

  ATTN_DIAG_DEVICE RowOfThread(int batch_, int head_, int m_block)
      : batch(batch_),
        head(head_),
        row(static_cast<int>(threadIdx.x) / Traits::kLanesPerRow),
        lane(static_cast<int>(threadIdx.x) % Traits::kLanesPerRow) {
    query = m_block * Traits::kBlockM + row;
    const unsigned first_lane = threadIdx.x % 32u - static_cast<unsigned>(lane);
    group_mask = ((1u << Traits::kLanesPerRow) - 1u) << first_lane;
  }
};

// Online softmax state of a row and the lane's part of its unnormalised output.
template <class Traits>
struct RowState {
  SoftmaxState softmax;
  float rO[Traits::kColumnChunks][Traits::kColumns] = {};  // columns column_of(chunk, lane) + j
};

// Copies kRows rows of a (num_rows, dim) matrix, from first_row on, into a shared fp32 tile:
// (kRows, padded_dim), or (padded_dim, kRows) if transposed. What lies outside the matrix is 0.
template <class Traits, int kRows, bool kTransposed, class Element>
ATTN_DIAG_DEVICE void load_tile(float* __restrict__ sTile, int s_stride,
                                const Element* __restrict__ gMatrix, std::int64_t g_stride,
                                int first_row, int num_rows, int dim, int padded_dim) {
  constexpr int kRowsAtOnce = Traits::kThreads / Traits::kLoadLanes;
  const int thread = static_cast<int>(threadIdx.x);
  for (int row = thread / Traits::kLoadLanes; row < kRows; row += kRowsAtOnce) {
    const bool row_exists = first_row + row < num_rows;
    const Element* gRow = gMatrix + (first_row + row) * g_stride;  // (dim), if row_exists
    for (int d = thread % Traits::kLoadLanes; d < padded_dim; d += Traits::kLoadLanes) {
      const float x = row_exists && d < dim ? to_float(gRow[d]) : 0.0f;
      sTile[kTransposed ? d * s_stride + row : row * s_stride + d] = x;
    }
  }
}

// Maximum and sum over the lanes of a row; every lane gets the result, bit for bit the same.
template <class Traits>
ATTN_DIAG_DEVICE float row_max(float x, unsigned group_mask) {
  for (int step = 1; step < Traits::kLanesPerRow; step *= 2)
    x = fmaxf(x, __shfl_xor_sync(group_mask, x, step));
  return x;
}
template <class Traits>
ATTN_DIAG_DEVICE float row_sum(float x, unsigned group_mask) {
  for (int step = 1; step < Traits::kLanesPerRow; step *= 2)
    x += __shfl_xor_sync(group_mask, x, step);
  return x;
}

// Attends the query tile m_block to the KV tiles of `tiles`.
//   block   kThreads threads, every one of which must call this
//   smem    Traits::shared_bytes(head_dim, head_dim_v), dynamic
template <class Traits, class Element, MaskPolicy Mask, TapPolicy Tap>
ATTN_DIAG_DEVICE void attend(const Problem& problem, const AttentionTensors<Element>& tensors,
                             const Mask& mask, TileRange tiles, int m_block,
                             const RowOfThread<Traits>& at, RowState<Traits>& state,
                             const Tap& tap) {
  constexpr int kBlockM = Traits::kBlockM;
  constexpr int kBlockN = Traits::kBlockN;
  constexpr int kKeysPerLane = Traits::kKeysPerLane;
  const int head_dim = problem.head_dim;
  const int head_dim_v = problem.head_dim_v;
  const int q_stride = Traits::q_stride(head_dim);
  const int v_stride = Traits::v_stride(head_dim_v);

  float* const smem = dynamic_shared<float>();
  float* const sQ = smem;                                           // (kBlockM, head_dim)
  float* const sKV = smem + Traits::kv_offset(head_dim);            // K: (head_dim, kBlockN)
                                                                    // V: (kBlockN, head_dim_v)
  float* const sP = smem + Traits::p_offset(head_dim, head_dim_v);  // (kBlockM, kBlockN)
  float* const sP_row = sP + at.row * Traits::kPStride;             // (kBlockN)
  const float* const sQ_row = sQ + at.row * q_stride;               // (head_dim)

  const int kv_head = at.head / group_size(problem);
  const Strides q_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, head_dim);
  const Strides k_strides =
      dense_strides(problem.layout, problem.kv_heads, problem.seqlen_k, head_dim);
  const Strides v_strides =
      dense_strides(problem.layout, problem.kv_heads, problem.seqlen_k, head_dim_v);
  const Element* const gQ =
      tensors.gQ + at.batch * q_strides.batch + at.head * q_strides.head;  // (seqlen_q, head_dim)
  const Element* const gK =
      tensors.gK + at.batch * k_strides.batch + kv_head * k_strides.head;  // (seqlen_k, head_dim)
  const Element* const gV =
      tensors.gV + at.batch * v_strides.batch + kv_head * v_strides.head;  // (seqlen_k, head_dim_v)

  load_tile<Traits, kBlockM, false>(sQ, q_stride, gQ, q_strides.seq, m_block * kBlockM,
                                    problem.seqlen_q, head_dim, head_dim);
  const KeyRange visible = mask.visible(at.query);
  const int no_key = problem.seqlen_k;  // stands for a key that does not exist: always masked

  for (int n_block = tiles.begin; n_block < tiles.end; ++n_block) {
    const int first_key = n_block * kBlockN;
    const int lane_key = at.lane * kKeysPerLane;  // first key of this lane within the tile

    // Stage qk.
    __syncthreads();  // V of the previous tile has been read
    load_tile<Traits, Traits::kKeyStride, true>(sKV, Traits::kKeyStride, gK, k_strides.seq,
                                                first_key, problem.seqlen_k, head_dim, head_dim);
    __syncthreads();
    float rS[kKeysPerLane];
    row_times_tile(sQ_row, sKV + lane_key, head_dim, Traits::kKeyStride, rS);
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kKeysPerLane; ++j) {
      const int key = Traits::owns_key(lane_key + j) ? first_key + lane_key + j : no_key;
      rS[j] = visible.apply(problem.softmax_scale * rS[j], key);
      tap.template visit<Tensor::kS>(rS[j], at.batch, at.head, at.query, key);
    }
    if (tap.ends_after(Stage::kQk)) continue;

    // Stage softmax.
    float lane_max = -INFINITY;
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kKeysPerLane; ++j) lane_max = fmaxf(lane_max, rS[j]);
    float m = fmaxf(state.softmax.m, row_max<Traits>(lane_max, at.group_mask));
    tap.template visit<Tensor::kM>(m, at.lane == 0, at.batch, at.head, at.query, n_block, 0);
    const float origin = exponent_origin(m);
    float rP[kKeysPerLane];
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kKeysPerLane; ++j) rP[j] = __expf(rS[j] - origin);
    float lane_l = 0.0f;
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kKeysPerLane; ++j) {
      const int key = Traits::owns_key(lane_key + j) ? first_key + lane_key + j : no_key;
      tap.template visit<Tensor::kP>(rP[j], at.batch, at.head, at.query, key);
      sP_row[lane_key + j] = rP[j];
      lane_l += rP[j];
    }
    float l = row_sum<Traits>(lane_l, at.group_mask);
    tap.template visit<Tensor::kL>(l, at.lane == 0, at.batch, at.head, at.query, n_block, 0);
    // The state moves on under every gate: the next tile's m is relative to it.
    tap.template visit<Tensor::kRunningM>(m, at.lane == 0, at.batch, at.head, at.query, n_block, 0);
    const float alpha = state.softmax.merge({m, l});
    if (tap.ends_after(Stage::kSoftmax)) continue;

    // Stage pv, and the in-loop part of stage reduce: rescale to the new maximum, add.
    __syncthreads();  // K has been read; P of this row has been written
    load_tile<Traits, kBlockN, false>(sKV, v_stride, gV, v_strides.seq, first_key, problem.seqlen_k,
                                      head_dim_v, v_stride);
    __syncthreads();
    tap.template visit<Tensor::kRunningL>(state.softmax.l, at.lane == 0, at.batch, at.head,
                                          at.query, n_block, 0);
    ATTN_DIAG_UNROLL_WITHOUT_TAPS
    for (int chunk = 0; chunk < Traits::kColumnChunks; ++chunk) {
      const int column = Traits::column_of(chunk, at.lane);
      if (column >= head_dim_v) break;
      float rPV[Traits::kColumns];
      row_times_tile(sP_row, sKV + column, kBlockN, v_stride, rPV);
      ATTN_DIAG_UNROLL
      for (int j = 0; j < Traits::kColumns; ++j) {
        tap.template visit<Tensor::kPartialO>(rPV[j], at.batch, at.head, at.query, n_block,
                                              column + j);
        if (tap.ends_after(Stage::kPv)) continue;
        state.rO[chunk][j] = alpha * state.rO[chunk][j] + rPV[j];
        tap.template visit<Tensor::kRunningO>(state.rO[chunk][j], at.batch, at.head, at.query,
                                              n_block, column + j);
      }
    }
  }
}

}  // namespace attn_diag
