// fused_wmma_simple: attention on tensor cores, one stage of the block after the other, to be read
// before fused_wmma. One block computes one query tile of one head with online softmax.
//
//   grid    (query tiles, heads, batch)
//   block   Traits::kThreads
//   smem    FusedWmmaSimpleTiles<Traits>(head_dim, head_dim_v).bytes, dynamic
//   needs   16-bit elements, head_dim and head_dim_v of 1 to 128 (kMaxWmmaHeadDim)
//
//   for each KV tile:  load K, V             global -> sK, sV
//                      S = Q K^T             sQ, sK -> sS        fragments, fp32
//                      m, P, l; O *= alpha   sS -> sP, sO        a row in 4 lanes; P in 16 bits
//                      O += P V              sP, sV -> sPV, sO   fragments, fp32
//
// A barrier of the block stands between any two of these. Which element of a fragment a lane holds
// is not specified, so that all that is done by row or column is done in shared memory.
#pragma once

#include <cuda_runtime.h>
#include <mma.h>

#include <cmath>

#include "attn_diag/kernels/shared_memory.h"
#include "attn_diag/kernels/tap.h"
#include "common/attention_tensors.h"
#include "common/element.h"
#include "common/mask.h"
#include "common/row_times_tile.h"
#include "common/softmax_state.h"
#include "common/wmma_tiles.h"
#include "fused_wmma_simple/fused_wmma_simple.h"

namespace attn_diag {

// Copies kRows rows of a (num_rows, dim) matrix, from first_row on, into a shared tile
// (kRows, padded_columns): a warp per row. What lies outside the matrix is 0.
template <class Traits, int kRows, class Element>
ATTN_DIAG_DEVICE void load_rows(Element* __restrict__ sTile, int s_stride,
                                const Element* __restrict__ gMatrix, std::int64_t g_stride,
                                int first_row, int num_rows, int dim, int padded_columns) {
  const int warp = static_cast<int>(threadIdx.x) / Traits::kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % Traits::kWarpSize;
  for (int row = warp; row < kRows; row += Traits::kWarps) {
    const bool row_exists = first_row + row < num_rows;
    const Element* const gRow = gMatrix + (first_row + row) * g_stride;  // (dim), if row_exists
    for (int d = lane; d < padded_columns; d += Traits::kWarpSize)
      sTile[row * s_stride + d] = row_exists && d < dim ? gRow[d] : from_float<Element>(0.0f);
  }
}

// C (16, 16) = A B over `depth` columns of A, a multiple of 16. B's fragments are loaded from sB,
// b_step elements apart.
template <class FragmentB, class Element>
ATTN_DIAG_DEVICE void multiply(Accumulator& rC, const Element* sA, int a_stride, const Element* sB,
                               int b_stride, int b_step, int depth) {
  nvcuda::wmma::fill_fragment(rC, 0.0f);
  for (int k = 0; k < depth; k += kFragment) {
    RowMajorA<Element> rA;
    FragmentB rB;
    nvcuda::wmma::load_matrix_sync(rA, sA + k, static_cast<unsigned>(a_stride));
    nvcuda::wmma::load_matrix_sync(rB, sB + k / kFragment * b_step,
                                   static_cast<unsigned>(b_stride));
    nvcuda::wmma::mma_sync(rC, rA, rB, rC);
  }
}

template <class Traits, class Element, MaskPolicy Mask, TapPolicy Tap>
__global__ void __launch_bounds__(Traits::kThreads)
    fused_wmma_simple_kernel(const Problem problem, const AttentionTensors<Element> tensors,
                             const Mask mask, const Tap tap) {
  constexpr int kBlockM = Traits::kBlockM;
  constexpr int kBlockN = Traits::kBlockN;
  constexpr int kLanesPerRow = Traits::kLanesPerRow;
  constexpr int kKeysPerLane = Traits::kKeysPerLane;
  constexpr int kWarpColumns = Traits::kWarpsPerGroup * kFragment;

  const FusedWmmaSimpleTiles<Traits> tiles(problem.head_dim, problem.head_dim_v);
  char* const smem = dynamic_shared<char>();
  Element* const sQ = reinterpret_cast<Element*>(smem + tiles.q);  // (kBlockM, head_dim)
  Element* const sK = reinterpret_cast<Element*>(smem + tiles.k);  // (kBlockN, head_dim)
  Element* const sV = reinterpret_cast<Element*>(smem + tiles.v);  // (kBlockN, head_dim_v)
  float* const sS = reinterpret_cast<float*>(smem + tiles.s);      // (kBlockM, kBlockN)
  Element* const sP = reinterpret_cast<Element*>(smem + tiles.p);  // (kBlockM, kBlockN)
  float* const sO = reinterpret_cast<float*>(smem + tiles.o);      // (kBlockM, head_dim_v)

  // This warp's part of the products: 16 rows, and every kWarpColumns-th 16 columns.
  const int warp = static_cast<int>(threadIdx.x) / Traits::kWarpSize;
  const int warp_lane = static_cast<int>(threadIdx.x) % Traits::kWarpSize;
  const int group_row = warp / Traits::kWarpsPerGroup * kFragment;    // first row of the group
  const int warp_column = warp % Traits::kWarpsPerGroup * kFragment;  // first column of the warp
  float* const sPV = reinterpret_cast<float*>(smem + tiles.pv) +
                     warp * kFragment * Traits::kPVStride;  // (16, 16), this warp's own

  // This thread's part of the softmax: a row, together with the neighbouring lanes.
  const int row = static_cast<int>(threadIdx.x) / kLanesPerRow;
  const int row_lane = static_cast<int>(threadIdx.x) % kLanesPerRow;
  const unsigned row_lanes = ((1u << kLanesPerRow) - 1u) << (warp_lane - row_lane);
  float* const sO_row = sO + row * tiles.o_stride;  // (head_dim_v)

  const int batch = static_cast<int>(blockIdx.z);
  const int head = static_cast<int>(blockIdx.y);
  const int kv_head = head / group_size(problem);
  const int first_query = static_cast<int>(blockIdx.x) * kBlockM;
  const int end_query =
      first_query + kBlockM < problem.seqlen_q ? first_query + kBlockM : problem.seqlen_q;
  const int query = first_query + row;
  const Strides q_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, problem.head_dim);
  const Strides k_strides =
      dense_strides(problem.layout, problem.kv_heads, problem.seqlen_k, problem.head_dim);
  const Strides v_strides =
      dense_strides(problem.layout, problem.kv_heads, problem.seqlen_k, problem.head_dim_v);
  const Element* const gQ =
      tensors.gQ + batch * q_strides.batch + head * q_strides.head;  // (seqlen_q, head_dim)
  const Element* const gK =
      tensors.gK + batch * k_strides.batch + kv_head * k_strides.head;  // (seqlen_k, head_dim)
  const Element* const gV =
      tensors.gV + batch * v_strides.batch + kv_head * v_strides.head;  // (seqlen_k, head_dim_v)

  load_rows<Traits, kBlockM>(sQ, tiles.q_stride, gQ, q_strides.seq, first_query, problem.seqlen_q,
                             problem.head_dim, tiles.head_dim);
  for (int d = row_lane; d < tiles.head_dim_v; d += kLanesPerRow) sO_row[d] = 0.0f;
  SoftmaxState state;
  const KeyRange visible = mask.visible(query);
  const TileRange kv_tiles = mask.tiles(first_query, end_query, kBlockN);

  for (int n_block = kv_tiles.begin; n_block < kv_tiles.end; ++n_block) {
    const int first_key = n_block * kBlockN;

    // Load K and V.
    __syncthreads();  // those of the previous tile have been read
    load_rows<Traits, kBlockN>(sK, tiles.q_stride, gK, k_strides.seq, first_key, problem.seqlen_k,
                               problem.head_dim, tiles.head_dim);
    load_rows<Traits, kBlockN>(sV, tiles.v_stride, gV, v_strides.seq, first_key, problem.seqlen_k,
                               problem.head_dim_v, tiles.head_dim_v);
    __syncthreads();

    // Stage qk: S = Q K^T. The rows of sK are the columns of K^T.
    for (int column = warp_column; column < kBlockN; column += kWarpColumns) {
      Accumulator rS;  // (16, 16)
      multiply<ColumnMajorB<Element>>(rS, sQ + group_row * tiles.q_stride, tiles.q_stride,
                                      sK + column * tiles.q_stride, tiles.q_stride, kFragment,
                                      tiles.head_dim);
      nvcuda::wmma::store_matrix_sync(sS + group_row * Traits::kSStride + column, rS,
                                      Traits::kSStride, nvcuda::wmma::mem_row_major);
    }
    __syncthreads();
    float rS[kKeysPerLane];
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kKeysPerLane; ++j) {
      const int key_in_tile = j * kLanesPerRow + row_lane;
      rS[j] = visible.apply(problem.softmax_scale * sS[row * Traits::kSStride + key_in_tile],
                            first_key + key_in_tile);
      tap.template visit<Tensor::kS>(rS[j], batch, head, query, first_key + key_in_tile);
    }
    if (tap.ends_after(Stage::kQk)) continue;

    // Stage softmax.
    float m = state.m;
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kKeysPerLane; ++j) m = fmaxf(m, rS[j]);
    ATTN_DIAG_UNROLL
    for (int step = 1; step < kLanesPerRow; step *= 2)
      m = fmaxf(m, __shfl_xor_sync(row_lanes, m, step));
    tap.template visit<Tensor::kM>(m, row_lane == 0, batch, head, query, n_block, 0);
    const float origin = exponent_origin(m);
    float l = 0.0f;
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kKeysPerLane; ++j) {
      const int key_in_tile = j * kLanesPerRow + row_lane;
      float p = to_float(from_float<Element>(__expf(rS[j] - origin)));
      tap.template visit<Tensor::kP>(p, batch, head, query, first_key + key_in_tile);
      sP[row * Traits::kPStride + key_in_tile] = from_float<Element>(p);
      l += p;
    }
    ATTN_DIAG_UNROLL
    for (int step = 1; step < kLanesPerRow; step *= 2) l += __shfl_xor_sync(row_lanes, l, step);
    tap.template visit<Tensor::kL>(l, row_lane == 0, batch, head, query, n_block, 0);
    // The state moves on under every gate: the next tile's m is relative to it.
    tap.template visit<Tensor::kRunningM>(m, row_lane == 0, batch, head, query, n_block, 0);
    const float alpha = state.merge({m, l});
    if (tap.ends_after(Stage::kSoftmax)) continue;
    tap.template visit<Tensor::kRunningL>(state.l, row_lane == 0, batch, head, query, n_block, 0);
    // The in-loop part of stage reduce, first half: O follows m.
    for (int d = row_lane; d < tiles.head_dim_v; d += kLanesPerRow) sO_row[d] *= alpha;
    __syncthreads();

    // Stage pv: P V of this tile; and the second half: O += P V.
    for (int column = warp_column; column < tiles.head_dim_v; column += kWarpColumns) {
      Accumulator rPV;  // (16, 16)
      multiply<RowMajorB<Element>>(rPV, sP + group_row * Traits::kPStride, Traits::kPStride,
                                   sV + column, tiles.v_stride, kFragment * tiles.v_stride,
                                   kBlockN);
      nvcuda::wmma::store_matrix_sync(sPV, rPV, Traits::kPVStride, nvcuda::wmma::mem_row_major);
      __syncwarp();  // a lane reads what others have stored
      for (int i = warp_lane; i < kFragment * kFragment; i += Traits::kWarpSize) {
        const int r = i / kFragment;
        const int c = i % kFragment;
        float pv = sPV[r * Traits::kPVStride + c];
        tap.template visit<Tensor::kPartialO>(pv, batch, head, first_query + group_row + r, n_block,
                                              column + c);
        if (tap.ends_after(Stage::kPv)) continue;
        float& o = sO[(group_row + r) * tiles.o_stride + column + c];
        o += pv;
        tap.template visit<Tensor::kRunningO>(o, batch, head, first_query + group_row + r, n_block,
                                              column + c);
      }
      __syncwarp();  // sPV has been read
    }
  }
  if (tap.ends_before(Stage::kReduce)) return;

  // Stage reduce, last part: normalise and store. No barrier follows, so rows past the end leave.
  __syncthreads();
  if (query >= problem.seqlen_q) return;
  if (row_lane == 0) {
    float lse = state.lse();
    tap.template visit<Tensor::kLse>(lse, batch, head, query);
    tensors.gLse[(std::int64_t{batch} * problem.heads + head) * problem.seqlen_q + query] = lse;
  }
  const Strides o_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, problem.head_dim_v);
  Element* const gO_row = tensors.gO + batch * o_strides.batch + head * o_strides.head +
                          query * o_strides.seq;  // (head_dim_v)
  for (int d = row_lane; d < problem.head_dim_v; d += kLanesPerRow) {
    float o = state.normalise(sO_row[d]);
    tap.template visit<Tensor::kO>(o, batch, head, query, d);
    gO_row[d] = from_float<Element>(o);
  }
}

}  // namespace attn_diag
