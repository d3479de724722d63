// fused_wmma: attention on tensor cores with S, P's maxima and O in registers; see fused_wmma_simple
// for the same stages in shared memory. One block computes one query tile of one head with online
// softmax; a warp computes whole rows of it, so that only K and V are shared between warps.
//
//   grid    (heads, query tiles, batch); of all heads the last query tile first: under a causal mask it
//           has the most work
//   block   Traits::kThreads
//   smem    Traits::kSharedBytes, dynamic
//   needs   16-bit elements, head_dim and head_dim_v up to Traits::kDim
//
//   for each KV tile:  cp.async the next K, V        global -> the other sK, sV
//                      S = scale Q K^T, masked       registers, fp32
//                      m                             the largest of 16 columns in registers, the rest by
//                                                    a lane per row, which keeps m
//                      P = exp(S - m)                registers -> sP, in 16 bits
//                      l = P 1                       a product with ones: l is laid out as O
//                      O = alpha O + P V             registers; without the product where no m moved
//
// What is done by row is done on fragments whose elements' places were read off (AccumulatorPlaces).
#pragma once

#include <cuda_runtime.h>
#include <mma.h>

#include <cmath>

#include "attn_diag/kernels/shared_memory.h"
#include "attn_diag/kernels/tap.h"
#include "common/accumulator_places.h"
#include "common/attention_tensors.h"
#include "common/element.h"
#include "common/fast_exp.h"
#include "common/mask.h"
#include "common/row_times_tile.h"
#include "common/softmax_state.h"
#include "common/wmma_tiles.h"
#include "fused_wmma/async_rows.h"
#include "fused_wmma/fused_wmma_traits.h"

namespace attn_diag {

template <class Traits, class Element, MaskPolicy Mask, TapPolicy Tap>
__global__ void __launch_bounds__(Traits::kThreads)
    fused_wmma_kernel(const Problem problem, const AttentionTensors<Element> tensors,
                      const Mask mask, const bool aligned, const Tap tap) {
  namespace wmma = nvcuda::wmma;
  using Pair = PairOf<Element>;
  constexpr int kBlockM = Traits::kBlockM;
  constexpr int kBlockN = Traits::kBlockN;
  constexpr int kDim = Traits::kDim;
  constexpr int kRows = Traits::kRows;
  constexpr int kRowFragments = Traits::kRowFragments;
  constexpr int kKeyFragments = Traits::kKeyFragments;
  constexpr int kDimFragments = Traits::kDimFragments;
  constexpr int kElements = kFragmentElements;
  constexpr unsigned kWholeWarp = 0xffffffffu;

  const int warp = static_cast<int>(threadIdx.x) / Traits::kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % Traits::kWarpSize;
  unsigned char* const smem = dynamic_shared<unsigned char>();
  unsigned char* const smem_of_warp = smem + Traits::kWarpOffset + warp * Traits::kWarpBytes;
  Element* const sKV = reinterpret_cast<Element*>(smem);            // 2 x K, V: (kBlockN, kDim)
  Element* const sRows = reinterpret_cast<Element*>(smem_of_warp);  // Q, o: (kRows, kDim)
  Element* const sP = sRows;                                        // (kRows, kBlockN)
  float* const sMax = reinterpret_cast<float*>(smem_of_warp + Traits::kMaxOffset);  // (kRows, 16)
  float* const sOrigin = reinterpret_cast<float*>(smem_of_warp + Traits::kOriginOffset);  // (kRows)
  float* const sAlpha = reinterpret_cast<float*>(smem_of_warp + Traits::kAlphaOffset);    // (kRows)

  const int batch = static_cast<int>(blockIdx.z);
  const int head = static_cast<int>(blockIdx.x);
  const int kv_head = head / group_size(problem);
  const int first_query = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kBlockM;
  const int end_query =
      first_query + kBlockM < problem.seqlen_q ? first_query + kBlockM : problem.seqlen_q;
  const int warp_query = first_query + warp * kRows;  // first of this warp
  const Strides q_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, problem.head_dim);
  const Strides k_strides =
      dense_strides(problem.layout, problem.kv_heads, problem.seqlen_k, problem.head_dim);
  const Strides v_strides =
      dense_strides(problem.layout, problem.kv_heads, problem.seqlen_k, problem.head_dim_v);
  const RowMatrix<const Element> q{tensors.gQ + batch * q_strides.batch + head * q_strides.head,
                                   q_strides.seq, problem.seqlen_q, problem.head_dim, aligned};
  const RowMatrix<const Element> k{tensors.gK + batch * k_strides.batch + kv_head * k_strides.head,
                                   k_strides.seq, problem.seqlen_k, problem.head_dim, aligned};
  const RowMatrix<const Element> v{tensors.gV + batch * v_strides.batch + kv_head * v_strides.head,
                                   v_strides.seq, problem.seqlen_k, problem.head_dim_v, aligned};
  const TileRange kv_tiles = mask.tiles(first_query, end_query, kBlockN);
  const RowLoader<Traits::kThreads, kBlockN, kDim, Element> k_loader(k, threadIdx.x);
  const RowLoader<Traits::kThreads, kBlockN, kDim, Element> v_loader(v, threadIdx.x);
  const auto load_kv = [&](int stage, int n_block) {
    Element* const sK = sKV + stage * (2 * Traits::kKVElements);
    k_loader.load(sK, n_block * kBlockN);
    v_loader.load(sK + Traits::kKVElements, n_block * kBlockN);
  };

  RowLoader<Traits::kWarpSize, kRows, kDim, Element>(q, lane).load(sRows, warp_query);
  __pipeline_commit();
  if (kv_tiles.begin < kv_tiles.end) load_kv(0, kv_tiles.begin);
  __pipeline_commit();
  const AccumulatorPlaces places(sMax);

  // The state of the rows: O and l as fragments, m in kLanesPerRow lanes, each of which looks at
  // kColumns of the 16 columns that a maximum is left in.
  constexpr int kColumns = kFragment / Traits::kLanesPerRow;
  const int row = lane % kRows;
  const int row_lane = lane / kRows;
  float m = -INFINITY;
  Accumulator rL[kRowFragments];                 // (kRows, 16), the same in every column
  Accumulator rO[kRowFragments][kDimFragments];  // (kRows, kDim)
  ATTN_DIAG_UNROLL
  for (int r = 0; r < kRowFragments; ++r) {
    wmma::fill_fragment(rL[r], 0.0f);
    ATTN_DIAG_UNROLL
    for (int d = 0; d < kDimFragments; ++d) wmma::fill_fragment(rO[r][d], 0.0f);
  }
  RowMajorB<Element> rOnes;
  wmma::fill_fragment(rOnes, from_float<Element>(1.0f));

  __pipeline_wait_prior(1);
  __syncwarp();                                         // Q has arrived, for every lane
  RowMajorA<Element> rQ[kRowFragments][kDimFragments];  // (kRows, kDim)
  ATTN_DIAG_UNROLL
  for (int r = 0; r < kRowFragments; ++r) {
    ATTN_DIAG_UNROLL
    for (int d = 0; d < kDimFragments; ++d)
      wmma::load_matrix_sync(rQ[r][d], sRows + r * kFragment * Traits::kKVStride + d * kFragment,
                             Traits::kKVStride);
  }

  int stage = 0;  // which of the two K, V holds the tile
  for (int n_block = kv_tiles.begin; n_block < kv_tiles.end; ++n_block, stage ^= 1) {
    const int first_key = n_block * kBlockN;
    const Element* const sK = sKV + stage * (2 * Traits::kKVElements);  // (kBlockN, kDim)
    const Element* const sV = sK + Traits::kKVElements;                 // (kBlockN, kDim)
    __pipeline_wait_prior(0);
    __syncthreads();  // this tile has arrived, the one before has been read, by every warp
    if (n_block + 1 < kv_tiles.end) load_kv(stage ^ 1, n_block + 1);
    __pipeline_commit();

    // Stage qk. The rows of sK are the columns of K^T.
    Accumulator rS[kRowFragments][kKeyFragments];  // (kRows, kBlockN)
    ATTN_DIAG_UNROLL
    for (int j = 0; j < kKeyFragments; ++j) {
      ATTN_DIAG_UNROLL
      for (int r = 0; r < kRowFragments; ++r) wmma::fill_fragment(rS[r][j], 0.0f);
      ATTN_DIAG_UNROLL
      for (int d = 0; d < kDimFragments; ++d) {
        ColumnMajorB<Element> rK;
        wmma::load_matrix_sync(rK, sK + j * kFragment * Traits::kKVStride + d * kFragment,
                               Traits::kKVStride);
        ATTN_DIAG_UNROLL
        for (int r = 0; r < kRowFragments; ++r) wmma::mma_sync(rS[r][j], rQ[r][d], rK, rS[r][j]);
      }
    }
    ATTN_DIAG_UNROLL
    for (int r = 0; r < kRowFragments; ++r) {
      ATTN_DIAG_UNROLL
      for (int j = 0; j < kKeyFragments; ++j) {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < kElements; ++i) rS[r][j].x[i] *= problem.softmax_scale;
      }
    }
    // A warp whose first and last query see the whole tile has nothing to mask.
    if (mask.visible(warp_query).end < first_key + kBlockN ||
        mask.visible(warp_query + kRows - 1).begin > first_key) {
      ATTN_DIAG_UNROLL
      for (int r = 0; r < kRowFragments; ++r) {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < kElements; ++i) {
          const KeyRange visible = mask.visible(warp_query + r * kFragment + places.row(i));
          const int key = first_key + places.column(i);
          ATTN_DIAG_UNROLL
          for (int j = 0; j < kKeyFragments; ++j)
            rS[r][j].x[i] = visible.apply(rS[r][j].x[i], key + j * kFragment);
        }
      }
    }
    if constexpr (Tap::kEnabled) {
      for (int r = 0; r < kRowFragments; ++r)
        for (int j = 0; j < kKeyFragments; ++j)
          for (int i = 0; i < kElements; ++i)
            tap.template visit<Tensor::kS>(rS[r][j].x[i], batch, head,
                                           warp_query + r * kFragment + places.row(i),
                                           first_key + j * kFragment + places.column(i));
    }
    if constexpr (Tap::ends_after(Stage::kQk)) continue;

    // Stage softmax: m.
    float new_m = m;
    ATTN_DIAG_UNROLL
    for (int r = 0; r < kRowFragments; ++r) {
      Accumulator rMax = rS[r][0];  // (16, 16): element by element, of all key fragments
      ATTN_DIAG_UNROLL
      for (int j = 1; j < kKeyFragments; ++j) {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < kElements; ++i) rMax.x[i] = fmaxf(rMax.x[i], rS[r][j].x[i]);
      }
      wmma::store_matrix_sync(sMax + r * kFragment * Traits::kMaxStride, rMax, Traits::kMaxStride,
                              wmma::mem_row_major);
    }
    __syncwarp();  // sMax has been written; P of the tile before has been read
    ATTN_DIAG_UNROLL
    for (int column = 0; column < kColumns; column += 4) {
      const float4 x = *reinterpret_cast<const float4*>(sMax + row * Traits::kMaxStride +
                                                        row_lane * kColumns + column);
      new_m = fmaxf(new_m, fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w)));
    }
    if (Traits::kLanesPerRow == 2) new_m = fmaxf(new_m, __shfl_xor_sync(kWholeWarp, new_m, kRows));
    tap.template visit<Tensor::kM>(new_m, row_lane == 0, batch, head, warp_query + row, n_block, 0);
    if (row_lane == 0) sOrigin[row] = exponent_origin(new_m);
    // The state moves on under every gate: the next tile's m is relative to it.
    tap.template visit<Tensor::kRunningM>(new_m, row_lane == 0, batch, head, warp_query + row,
                                          n_block, 0);
    const float alpha = rescale_factor(m, new_m);
    if (row_lane == 0) sAlpha[row] = alpha;
    const bool moved = __any_sync(kWholeWarp, new_m != m);
    m = new_m;
    __syncwarp();  // sOrigin and sAlpha have been written

    // P.
    ATTN_DIAG_UNROLL
    for (int r = 0; r < kRowFragments; ++r) {
      float rOrigin[kElements];
      ATTN_DIAG_UNROLL
      for (int i = 0; i < kElements; ++i) rOrigin[i] = sOrigin[r * kFragment + places.row(i)];
      typename Pair::Type rPairs[kKeyFragments][kElements / 2];
      ATTN_DIAG_UNROLL
      for (int j = 0; j < kKeyFragments; ++j) {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < kElements; i += 2) {
          typename Pair::Type p = Pair::from_floats(fast_exp(rS[r][j].x[i] - rOrigin[i]),
                                                    fast_exp(rS[r][j].x[i + 1] - rOrigin[i + 1]));
          if constexpr (Tap::kEnabled) {
            float x = to_float(p.x);
            float y = to_float(p.y);
            tap.template visit<Tensor::kP>(x, batch, head,
                                           warp_query + r * kFragment + places.row(i),
                                           first_key + j * kFragment + places.column(i));
            tap.template visit<Tensor::kP>(y, batch, head,
                                           warp_query + r * kFragment + places.row(i + 1),
                                           first_key + j * kFragment + places.column(i + 1));
            p = Pair::from_floats(x, y);
          }
          rPairs[j][i / 2] = p;
        }
      }
      places.store_pairs(sP + r * kFragment * Traits::kPStride, Traits::kPStride, rPairs);
    }
    __syncwarp();                                         // a lane reads what others have stored
    RowMajorA<Element> rP[kRowFragments][kKeyFragments];  // (kRows, kBlockN)
    Accumulator rTileL[kRowFragments];                    // (kRows, 16), the same in every column
    ATTN_DIAG_UNROLL
    for (int r = 0; r < kRowFragments; ++r) {
      wmma::fill_fragment(rTileL[r], 0.0f);
      ATTN_DIAG_UNROLL
      for (int j = 0; j < kKeyFragments; ++j) {
        wmma::load_matrix_sync(rP[r][j], sP + r * kFragment * Traits::kPStride + j * kFragment,
                               Traits::kPStride);
        wmma::mma_sync(rTileL[r], rP[r][j], rOnes, rTileL[r]);
      }
    }
    if constexpr (Tap::kEnabled) {
      for (int r = 0; r < kRowFragments; ++r)
        for (int i = 0; i < kElements; ++i)
          tap.template visit<Tensor::kL>(rTileL[r].x[i], places.column(i) == 0, batch, head,
                                         warp_query + r * kFragment + places.row(i), n_block, 0);
    }
    if constexpr (Tap::ends_after(Stage::kSoftmax)) continue;

    // The in-loop part of stage reduce, first half: O and l follow m. alpha is 1 where m is as before.
    if (moved) {
      ATTN_DIAG_UNROLL
      for (int r = 0; r < kRowFragments; ++r) {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < kElements; ++i) {
          const float row_alpha = sAlpha[r * kFragment + places.row(i)];
          rL[r].x[i] *= row_alpha;
          ATTN_DIAG_UNROLL
          for (int d = 0; d < kDimFragments; ++d) rO[r][d].x[i] *= row_alpha;
        }
      }
    }
    ATTN_DIAG_UNROLL
    for (int r = 0; r < kRowFragments; ++r) {
      ATTN_DIAG_UNROLL
      for (int i = 0; i < kElements; ++i) {
        rL[r].x[i] += rTileL[r].x[i];
        tap.template visit<Tensor::kRunningL>(rL[r].x[i], places.column(i) == 0, batch, head,
                                              warp_query + r * kFragment + places.row(i), n_block,
                                              0);
      }
    }

    // Stage pv: P V of this tile; and the second half: O += P V.
    ATTN_DIAG_UNROLL_WITHOUT_TAPS
    for (int d = 0; d < kDimFragments; ++d) {
      Accumulator rPV[kRowFragments];  // (kRows, 16)
      ATTN_DIAG_UNROLL
      for (int r = 0; r < kRowFragments; ++r) wmma::fill_fragment(rPV[r], 0.0f);
      ATTN_DIAG_UNROLL
      for (int j = 0; j < kKeyFragments; ++j) {
        RowMajorB<Element> rV;
        wmma::load_matrix_sync(rV, sV + j * kFragment * Traits::kKVStride + d * kFragment,
                               Traits::kKVStride);
        ATTN_DIAG_UNROLL
        for (int r = 0; r < kRowFragments; ++r) wmma::mma_sync(rPV[r], rP[r][j], rV, rPV[r]);
      }
      ATTN_DIAG_UNROLL
      for (int r = 0; r < kRowFragments; ++r) {
        ATTN_DIAG_UNROLL
        for (int i = 0; i < kElements; ++i) {
          tap.template visit<Tensor::kPartialO>(rPV[r].x[i], batch, head,
                                                warp_query + r * kFragment + places.row(i), n_block,
                                                d * kFragment + places.column(i));
          if constexpr (Tap::ends_after(Stage::kPv)) continue;
          rO[r][d].x[i] += rPV[r].x[i];
          tap.template visit<Tensor::kRunningO>(rO[r][d].x[i], batch, head,
                                                warp_query + r * kFragment + places.row(i), n_block,
                                                d * kFragment + places.column(i));
        }
      }
    }
  }
  if constexpr (Tap::ends_before(Stage::kReduce)) return;

  // Stage reduce, last part: normalise and store. The row's lane gets its l by way of sMax.
  __syncwarp();  // P of the last tile has been read: o goes there
  ATTN_DIAG_UNROLL
  for (int r = 0; r < kRowFragments; ++r) {
    wmma::store_matrix_sync(sMax + r * kFragment * Traits::kMaxStride, rL[r], Traits::kMaxStride,
                            wmma::mem_row_major);
    // An empty row is 0 and not 0 / 0 = NaN.
    float rFactor[kElements];
    ATTN_DIAG_UNROLL
    for (int i = 0; i < kElements; ++i) rFactor[i] = rL[r].x[i] == 0.0f ? 0.0f : 1.0f / rL[r].x[i];
    typename Pair::Type rPairs[kDimFragments][kElements / 2];
    ATTN_DIAG_UNROLL_WITHOUT_TAPS
    for (int d = 0; d < kDimFragments; ++d) {
      ATTN_DIAG_UNROLL
      for (int i = 0; i < kElements; i += 2) {
        float x = rO[r][d].x[i] * rFactor[i];
        float y = rO[r][d].x[i + 1] * rFactor[i + 1];
        tap.template visit<Tensor::kO>(x, batch, head, warp_query + r * kFragment + places.row(i),
                                       d * kFragment + places.column(i));
        tap.template visit<Tensor::kO>(y, batch, head,
                                       warp_query + r * kFragment + places.row(i + 1),
                                       d * kFragment + places.column(i + 1));
        rPairs[d][i / 2] = Pair::from_floats(x, y);
      }
    }
    places.store_pairs(sRows + r * kFragment * Traits::kKVStride, Traits::kKVStride, rPairs);
  }
  __syncwarp();  // a lane reads what others have stored
  const int query = warp_query + row;
  if (row_lane == 0 && query < problem.seqlen_q) {
    float lse = SoftmaxState{m, sMax[row * Traits::kMaxStride]}.lse();
    tap.template visit<Tensor::kLse>(lse, batch, head, query);
    tensors.gLse[(std::int64_t{batch} * problem.heads + head) * problem.seqlen_q + query] = lse;
  }
  const Strides o_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, problem.head_dim_v);
  const RowMatrix<Element> o{tensors.gO + batch * o_strides.batch + head * o_strides.head,
                             o_strides.seq, problem.seqlen_q, problem.head_dim_v, aligned};
  store_rows<Traits::kWarpSize, kRows, kDim>(o, warp_query, sRows, lane);
}

}  // namespace attn_diag
