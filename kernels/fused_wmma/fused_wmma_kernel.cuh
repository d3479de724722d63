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
#include "common/async_rows.h"
#include "common/attention_tensors.h"
#include "common/element.h"
#include "common/fast_exp.h"
#include "common/mask.h"
#include "common/row_times_tile.h"
#include "common/softmax_state.h"
#include "common/wmma_tiles.h"
#include "fused_wmma/fused_wmma.h"

namespace attn_diag {

inline constexpr unsigned kWholeWarp = 0xffffffffu;

// What a warp holds in registers, as fragments.
template <class Traits, class Element>
using QueryFragments = RowMajorA<Element>[Traits::kRowFragments][Traits::kDimFragments];
template <class Traits>
using ScoreFragments = Accumulator[Traits::kRowFragments][Traits::kKeyFragments];
template <class Traits, class Element>
using ProbabilityFragments = RowMajorA<Element>[Traits::kRowFragments][Traits::kKeyFragments];
template <class Traits>
using SumFragments = Accumulator[Traits::kRowFragments];  // the same in every column
template <class Traits>
using OutputFragments = Accumulator[Traits::kRowFragments][Traits::kDimFragments];

// A warp's rows of the query tile, and its own part of shared memory. Each row belongs to kLanesPerRow
// lanes, which keep its maximum.
template <class Traits, class Element>
struct WarpRows {
  int batch, head;
  int query;          // of the first row
  int row, row_lane;  // the row of this lane, and which of the row's lanes it is
  Element* sRows;     // Q, then o: (kRows, kDim)
  Element* sP;        // in the same place: (kRows, kBlockN)
  float* sMax;        // (kRows, 16)
  float* sOrigin;     // (kRows)
  float* sAlpha;      // (kRows)

  ATTN_DIAG_DEVICE WarpRows(unsigned char* smem, int first_query)
      : batch(static_cast<int>(blockIdx.z)), head(static_cast<int>(blockIdx.x)) {
    const int warp = static_cast<int>(threadIdx.x) / Traits::kWarpSize;
    const int lane = static_cast<int>(threadIdx.x) % Traits::kWarpSize;
    unsigned char* const own = smem + Traits::kWarpOffset + warp * Traits::kWarpBytes;
    query = first_query + warp * Traits::kRows;
    row = lane % Traits::kRows;
    row_lane = lane / Traits::kRows;
    sRows = reinterpret_cast<Element*>(own);
    sP = sRows;
    sMax = reinterpret_cast<float*>(own + Traits::kMaxOffset);
    sOrigin = reinterpret_cast<float*>(own + Traits::kOriginOffset);
    sAlpha = reinterpret_cast<float*>(own + Traits::kAlphaOffset);
  }
};

template <class Traits, class Element>
ATTN_DIAG_DEVICE void load_queries(const WarpRows<Traits, Element>& at,
                                   QueryFragments<Traits, Element>& rQ) {
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    ATTN_DIAG_UNROLL
    for (int d = 0; d < Traits::kDimFragments; ++d)
      nvcuda::wmma::load_matrix_sync(rQ[r][d],
                                     at.sRows + r * kFragment * Traits::kKVStride + d * kFragment,
                                     Traits::kKVStride);
  }
}

// S = scale Q K^T of one tile, not masked. sK: (kBlockN, kDim); its rows are the columns of K^T.
template <class Traits, class Element>
ATTN_DIAG_DEVICE void scores(const QueryFragments<Traits, Element>& rQ, const Element* sK,
                             float scale, ScoreFragments<Traits>& rS) {
  constexpr int kRowFragments = Traits::kRowFragments;
  ATTN_DIAG_UNROLL
  for (int j = 0; j < Traits::kKeyFragments; ++j) {
    ATTN_DIAG_UNROLL
    for (int r = 0; r < kRowFragments; ++r) nvcuda::wmma::fill_fragment(rS[r][j], 0.0f);
    ATTN_DIAG_UNROLL
    for (int d = 0; d < Traits::kDimFragments; ++d) {
      ColumnMajorB<Element> rK;
      nvcuda::wmma::load_matrix_sync(rK, sK + j * kFragment * Traits::kKVStride + d * kFragment,
                                     Traits::kKVStride);
      ATTN_DIAG_UNROLL
      for (int r = 0; r < kRowFragments; ++r)
        nvcuda::wmma::mma_sync(rS[r][j], rQ[r][d], rK, rS[r][j]);
    }
  }
  ATTN_DIAG_UNROLL
  for (int r = 0; r < kRowFragments; ++r) {
    ATTN_DIAG_UNROLL
    for (int j = 0; j < Traits::kKeyFragments; ++j) {
      ATTN_DIAG_UNROLL
      for (int i = 0; i < kFragmentElements; ++i) rS[r][j].x[i] *= scale;
    }
  }
}

// Masks S. A warp whose first and last query see the whole tile has nothing to mask.
template <class Traits, class Element, MaskPolicy Mask>
ATTN_DIAG_DEVICE void mask_scores(const WarpRows<Traits, Element>& at, const Mask& mask,
                                  const AccumulatorPlaces& places, int first_key,
                                  ScoreFragments<Traits>& rS) {
  if (mask.visible(at.query).end >= first_key + Traits::kBlockN &&
      mask.visible(at.query + Traits::kRows - 1).begin <= first_key)
    return;
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    ATTN_DIAG_UNROLL
    for (int i = 0; i < kFragmentElements; ++i) {
      const KeyRange visible = mask.visible(at.query + r * kFragment + places.row(i));
      const int key = first_key + places.column(i);
      ATTN_DIAG_UNROLL
      for (int j = 0; j < Traits::kKeyFragments; ++j)
        rS[r][j].x[i] = visible.apply(rS[r][j].x[i], key + j * kFragment);
    }
  }
}

template <class Traits, class Element, TapPolicy Tap>
ATTN_DIAG_DEVICE void tap_scores(const WarpRows<Traits, Element>& at,
                                 const AccumulatorPlaces& places, int first_key,
                                 ScoreFragments<Traits>& rS, const Tap& tap) {
  if constexpr (Tap::kEnabled) {
    for (int r = 0; r < Traits::kRowFragments; ++r)
      for (int j = 0; j < Traits::kKeyFragments; ++j)
        for (int i = 0; i < kFragmentElements; ++i)
          tap.template visit<Tensor::kS>(rS[r][j].x[i], at.batch, at.head,
                                         at.query + r * kFragment + places.row(i),
                                         first_key + j * kFragment + places.column(i));
  }
}

// The largest score so far, m, of the lane's row: S element by element down to 16 columns, which the
// lanes of the row share out between them.
template <class Traits, class Element>
ATTN_DIAG_DEVICE float row_max(const WarpRows<Traits, Element>& at,
                               const ScoreFragments<Traits>& rS, float m) {
  constexpr int kColumns = kFragment / Traits::kLanesPerRow;  // of the 16, that a lane looks at
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    Accumulator rMax = rS[r][0];  // (16, 16): element by element, of all key fragments
    ATTN_DIAG_UNROLL
    for (int j = 1; j < Traits::kKeyFragments; ++j) {
      ATTN_DIAG_UNROLL
      for (int i = 0; i < kFragmentElements; ++i) rMax.x[i] = fmaxf(rMax.x[i], rS[r][j].x[i]);
    }
    nvcuda::wmma::store_matrix_sync(at.sMax + r * kFragment * Traits::kMaxStride, rMax,
                                    Traits::kMaxStride, nvcuda::wmma::mem_row_major);
  }
  __syncwarp();  // sMax has been written; P of the tile before has been read
  ATTN_DIAG_UNROLL
  for (int column = 0; column < kColumns; column += 4) {
    const float4 x = *reinterpret_cast<const float4*>(at.sMax + at.row * Traits::kMaxStride +
                                                      at.row_lane * kColumns + column);
    m = fmaxf(m, fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w)));
  }
  if (Traits::kLanesPerRow == 2) m = fmaxf(m, __shfl_xor_sync(kWholeWarp, m, Traits::kRows));
  return m;
}

// P = exp(S - m) in 16 bits, to sP. sOrigin holds what m is to exp.
template <class Traits, class Element, TapPolicy Tap>
ATTN_DIAG_DEVICE void probabilities(const WarpRows<Traits, Element>& at,
                                    const AccumulatorPlaces& places, int first_key,
                                    const ScoreFragments<Traits>& rS, const Tap& tap) {
  using Pair = PairOf<Element>;
  constexpr int kElements = kFragmentElements;
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    float rOrigin[kElements];
    ATTN_DIAG_UNROLL
    for (int i = 0; i < kElements; ++i) rOrigin[i] = at.sOrigin[r * kFragment + places.row(i)];
    typename Pair::Type rPairs[Traits::kKeyFragments][kElements / 2];
    ATTN_DIAG_UNROLL
    for (int j = 0; j < Traits::kKeyFragments; ++j) {
      ATTN_DIAG_UNROLL
      for (int i = 0; i < kElements; i += 2) {
        typename Pair::Type p = Pair::from_floats(fast_exp(rS[r][j].x[i] - rOrigin[i]),
                                                  fast_exp(rS[r][j].x[i + 1] - rOrigin[i + 1]));
        if constexpr (Tap::kEnabled) {
          const int query = at.query + r * kFragment, key = first_key + j * kFragment;
          float x = to_float(p.x);
          float y = to_float(p.y);
          tap.template visit<Tensor::kP>(x, at.batch, at.head, query + places.row(i),
                                         key + places.column(i));
          tap.template visit<Tensor::kP>(y, at.batch, at.head, query + places.row(i + 1),
                                         key + places.column(i + 1));
          p = Pair::from_floats(x, y);
        }
        rPairs[j][i / 2] = p;
      }
    }
    places.store_pairs(at.sP + r * kFragment * Traits::kPStride, Traits::kPStride, rPairs);
  }
}

// P from sP, and l = P 1 of this tile.
template <class Traits, class Element, TapPolicy Tap>
ATTN_DIAG_DEVICE void sum_probabilities(const WarpRows<Traits, Element>& at,
                                        const AccumulatorPlaces& places, int n_block,
                                        const RowMajorB<Element>& rOnes,
                                        ProbabilityFragments<Traits, Element>& rP,
                                        SumFragments<Traits>& rTileL, const Tap& tap) {
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    nvcuda::wmma::fill_fragment(rTileL[r], 0.0f);
    ATTN_DIAG_UNROLL
    for (int j = 0; j < Traits::kKeyFragments; ++j) {
      nvcuda::wmma::load_matrix_sync(
          rP[r][j], at.sP + r * kFragment * Traits::kPStride + j * kFragment, Traits::kPStride);
      nvcuda::wmma::mma_sync(rTileL[r], rP[r][j], rOnes, rTileL[r]);
    }
  }
  if constexpr (Tap::kEnabled) {
    for (int r = 0; r < Traits::kRowFragments; ++r)
      for (int i = 0; i < kFragmentElements; ++i)
        tap.template visit<Tensor::kL>(rTileL[r].x[i], places.column(i) == 0, at.batch, at.head,
                                       at.query + r * kFragment + places.row(i), n_block, 0);
  }
}

// O and l follow m, by what is in sAlpha.
template <class Traits, class Element>
ATTN_DIAG_DEVICE void rescale(const WarpRows<Traits, Element>& at, const AccumulatorPlaces& places,
                              SumFragments<Traits>& rL, OutputFragments<Traits>& rO) {
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    ATTN_DIAG_UNROLL
    for (int i = 0; i < kFragmentElements; ++i) {
      const float row_alpha = at.sAlpha[r * kFragment + places.row(i)];
      rL[r].x[i] *= row_alpha;
      ATTN_DIAG_UNROLL
      for (int d = 0; d < Traits::kDimFragments; ++d) rO[r][d].x[i] *= row_alpha;
    }
  }
}

template <class Traits, class Element, TapPolicy Tap>
ATTN_DIAG_DEVICE void accumulate_sums(const WarpRows<Traits, Element>& at,
                                      const AccumulatorPlaces& places, int n_block,
                                      const SumFragments<Traits>& rTileL, SumFragments<Traits>& rL,
                                      const Tap& tap) {
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    ATTN_DIAG_UNROLL
    for (int i = 0; i < kFragmentElements; ++i) {
      rL[r].x[i] += rTileL[r].x[i];
      tap.template visit<Tensor::kRunningL>(rL[r].x[i], places.column(i) == 0, at.batch, at.head,
                                            at.query + r * kFragment + places.row(i), n_block, 0);
    }
  }
}

// O += P V, where P V of this tile is finished before it is added. sV: (kBlockN, kDim).
template <class Traits, class Element, TapPolicy Tap>
ATTN_DIAG_DEVICE void accumulate(const WarpRows<Traits, Element>& at,
                                 const AccumulatorPlaces& places, int n_block,
                                 const ProbabilityFragments<Traits, Element>& rP, const Element* sV,
                                 OutputFragments<Traits>& rO, const Tap& tap) {
  constexpr int kRowFragments = Traits::kRowFragments;
  ATTN_DIAG_UNROLL_WITHOUT_TAPS
  for (int d = 0; d < Traits::kDimFragments; ++d) {
    Accumulator rPV[kRowFragments];  // (kRows, 16)
    ATTN_DIAG_UNROLL
    for (int r = 0; r < kRowFragments; ++r) nvcuda::wmma::fill_fragment(rPV[r], 0.0f);
    ATTN_DIAG_UNROLL
    for (int j = 0; j < Traits::kKeyFragments; ++j) {
      RowMajorB<Element> rV;
      nvcuda::wmma::load_matrix_sync(rV, sV + j * kFragment * Traits::kKVStride + d * kFragment,
                                     Traits::kKVStride);
      ATTN_DIAG_UNROLL
      for (int r = 0; r < kRowFragments; ++r) nvcuda::wmma::mma_sync(rPV[r], rP[r][j], rV, rPV[r]);
    }
    ATTN_DIAG_UNROLL
    for (int r = 0; r < kRowFragments; ++r) {
      ATTN_DIAG_UNROLL
      for (int i = 0; i < kFragmentElements; ++i) {
        tap.template visit<Tensor::kPartialO>(rPV[r].x[i], at.batch, at.head,
                                              at.query + r * kFragment + places.row(i), n_block,
                                              d * kFragment + places.column(i));
        if (tap.ends_after(Stage::kPv)) continue;
        rO[r][d].x[i] += rPV[r].x[i];
        tap.template visit<Tensor::kRunningO>(rO[r][d].x[i], at.batch, at.head,
                                              at.query + r * kFragment + places.row(i), n_block,
                                              d * kFragment + places.column(i));
      }
    }
  }
}

// o = O / l in 16 bits, to sRows; l to sMax, where the row's lane finds it.
template <class Traits, class Element, TapPolicy Tap>
ATTN_DIAG_DEVICE void normalise(const WarpRows<Traits, Element>& at,
                                const AccumulatorPlaces& places, const SumFragments<Traits>& rL,
                                const OutputFragments<Traits>& rO, const Tap& tap) {
  using Pair = PairOf<Element>;
  constexpr int kElements = kFragmentElements;
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    nvcuda::wmma::store_matrix_sync(at.sMax + r * kFragment * Traits::kMaxStride, rL[r],
                                    Traits::kMaxStride, nvcuda::wmma::mem_row_major);
    // An empty row is 0 and not 0 / 0 = NaN.
    float rFactor[kElements];
    ATTN_DIAG_UNROLL
    for (int i = 0; i < kElements; ++i) rFactor[i] = rL[r].x[i] == 0.0f ? 0.0f : 1.0f / rL[r].x[i];
    typename Pair::Type rPairs[Traits::kDimFragments][kElements / 2];
    ATTN_DIAG_UNROLL_WITHOUT_TAPS
    for (int d = 0; d < Traits::kDimFragments; ++d) {
      ATTN_DIAG_UNROLL
      for (int i = 0; i < kElements; i += 2) {
        float x = rO[r][d].x[i] * rFactor[i];
        float y = rO[r][d].x[i + 1] * rFactor[i + 1];
        tap.template visit<Tensor::kO>(x, at.batch, at.head,
                                       at.query + r * kFragment + places.row(i),
                                       d * kFragment + places.column(i));
        tap.template visit<Tensor::kO>(y, at.batch, at.head,
                                       at.query + r * kFragment + places.row(i + 1),
                                       d * kFragment + places.column(i + 1));
        rPairs[d][i / 2] = Pair::from_floats(x, y);
      }
    }
    places.store_pairs(at.sRows + r * kFragment * Traits::kKVStride, Traits::kKVStride, rPairs);
  }
}

// o and lse to global memory.
template <class Traits, class Element, TapPolicy Tap>
ATTN_DIAG_DEVICE void store(const WarpRows<Traits, Element>& at, const Problem& problem,
                            const AttentionTensors<Element>& tensors, bool aligned, float m,
                            const Tap& tap) {
  const int query = at.query + at.row;
  if (at.row_lane == 0 && query < problem.seqlen_q) {
    float lse = SoftmaxState{m, at.sMax[at.row * Traits::kMaxStride]}.lse();
    tap.template visit<Tensor::kLse>(lse, at.batch, at.head, query);
    tensors.gLse[(std::int64_t{at.batch} * problem.heads + at.head) * problem.seqlen_q + query] =
        lse;
  }
  const Strides o_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, problem.head_dim_v);
  const RowMatrix<Element> o{tensors.gO + at.batch * o_strides.batch + at.head * o_strides.head,
                             o_strides.seq, problem.seqlen_q, problem.head_dim_v, aligned};
  store_rows<Traits::kWarpSize, Traits::kRows, Traits::kDim>(
      o, at.query, at.sRows, static_cast<int>(threadIdx.x) % Traits::kWarpSize);
}

template <class Traits, class Element, MaskPolicy Mask, TapPolicy Tap>
__global__ void __launch_bounds__(Traits::kThreads)
    fused_wmma_kernel(const Problem problem, const AttentionTensors<Element> tensors,
                      const Mask mask, const bool aligned, const Tap tap) {
  constexpr int kBlockM = Traits::kBlockM;
  constexpr int kBlockN = Traits::kBlockN;
  constexpr int kDim = Traits::kDim;
  unsigned char* const smem = dynamic_shared<unsigned char>();
  Element* const sKV = reinterpret_cast<Element*>(smem);  // 2 x K, V: (kBlockN, kDim)
  const int first_query = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kBlockM;
  const int end_query =
      first_query + kBlockM < problem.seqlen_q ? first_query + kBlockM : problem.seqlen_q;
  const WarpRows<Traits, Element> at(smem, first_query);

  const int kv_head = at.head / group_size(problem);
  const Strides q_strides =
      dense_strides(problem.layout, problem.heads, problem.seqlen_q, problem.head_dim);
  const Strides k_strides =
      dense_strides(problem.layout, problem.kv_heads, problem.seqlen_k, problem.head_dim);
  const Strides v_strides =
      dense_strides(problem.layout, problem.kv_heads, problem.seqlen_k, problem.head_dim_v);
  const RowMatrix<const Element> q{
      tensors.gQ + at.batch * q_strides.batch + at.head * q_strides.head, q_strides.seq,
      problem.seqlen_q, problem.head_dim, aligned};
  const RowMatrix<const Element> k{
      tensors.gK + at.batch * k_strides.batch + kv_head * k_strides.head, k_strides.seq,
      problem.seqlen_k, problem.head_dim, aligned};
  const RowMatrix<const Element> v{
      tensors.gV + at.batch * v_strides.batch + kv_head * v_strides.head, v_strides.seq,
      problem.seqlen_k, problem.head_dim_v, aligned};
  const TileRange kv_tiles = mask.tiles(first_query, end_query, kBlockN);
  const RowLoader<Traits::kThreads, kBlockN, kDim, Element> k_loader(k, threadIdx.x);
  const RowLoader<Traits::kThreads, kBlockN, kDim, Element> v_loader(v, threadIdx.x);
  const auto load_kv = [&](int stage, int n_block) {
    Element* const sK = sKV + stage * (2 * Traits::kKVElements);
    k_loader.load(sK, n_block * kBlockN);
    v_loader.load(sK + Traits::kKVElements, n_block * kBlockN);
  };

  RowLoader<Traits::kWarpSize, Traits::kRows, kDim, Element>(
      q, static_cast<int>(threadIdx.x) % Traits::kWarpSize)
      .load(at.sRows, at.query);
  __pipeline_commit();
  if (kv_tiles.begin < kv_tiles.end) load_kv(0, kv_tiles.begin);
  __pipeline_commit();
  const AccumulatorPlaces places(at.sMax);

  // The state of the rows: m in their lanes, l and O as fragments.
  SoftmaxState state;
  SumFragments<Traits> rL;
  OutputFragments<Traits> rO;  // (kRows, kDim)
  ATTN_DIAG_UNROLL
  for (int r = 0; r < Traits::kRowFragments; ++r) {
    nvcuda::wmma::fill_fragment(rL[r], 0.0f);
    ATTN_DIAG_UNROLL
    for (int d = 0; d < Traits::kDimFragments; ++d) nvcuda::wmma::fill_fragment(rO[r][d], 0.0f);
  }
  RowMajorB<Element> rOnes;
  nvcuda::wmma::fill_fragment(rOnes, from_float<Element>(1.0f));

  __pipeline_wait_prior(1);
  __syncwarp();                        // Q has arrived, for every lane
  QueryFragments<Traits, Element> rQ;  // (kRows, kDim)
  load_queries(at, rQ);

  int stage = 0;  // which of the two K, V holds the tile
  for (int n_block = kv_tiles.begin; n_block < kv_tiles.end; ++n_block, stage ^= 1) {
    const int first_key = n_block * kBlockN;
    const Element* const sK = sKV + stage * (2 * Traits::kKVElements);  // (kBlockN, kDim)
    const Element* const sV = sK + Traits::kKVElements;                 // (kBlockN, kDim)
    __pipeline_wait_prior(0);
    __syncthreads();  // this tile has arrived, the one before has been read, by every warp
    if (n_block + 1 < kv_tiles.end) load_kv(stage ^ 1, n_block + 1);
    __pipeline_commit();

    // Stage qk.
    ScoreFragments<Traits> rS;  // (kRows, kBlockN)
    scores<Traits>(rQ, sK, problem.softmax_scale, rS);
    mask_scores(at, mask, places, first_key, rS);
    tap_scores(at, places, first_key, rS, tap);
    if (tap.ends_after(Stage::kQk)) continue;

    // Stage softmax.
    float m = row_max(at, rS, state.m);
    tap.template visit<Tensor::kM>(m, at.row_lane == 0, at.batch, at.head, at.query + at.row,
                                   n_block, 0);
    if (at.row_lane == 0) at.sOrigin[at.row] = exponent_origin(m);
    // The state moves on under every gate: the next tile's m is relative to it.
    tap.template visit<Tensor::kRunningM>(m, at.row_lane == 0, at.batch, at.head, at.query + at.row,
                                          n_block, 0);
    const bool moved = __any_sync(kWholeWarp, m != state.m);
    const float alpha = state.merge({m, 0.0f});  // l is in rTileL
    if (at.row_lane == 0) at.sAlpha[at.row] = alpha;
    __syncwarp();  // sOrigin and sAlpha have been written
    probabilities(at, places, first_key, rS, tap);
    __syncwarp();                              // a lane reads what others have stored
    ProbabilityFragments<Traits, Element> rP;  // (kRows, kBlockN)
    SumFragments<Traits> rTileL;
    sum_probabilities(at, places, n_block, rOnes, rP, rTileL, tap);
    if (tap.ends_after(Stage::kSoftmax)) continue;

    // Stage pv, and the in-loop part of stage reduce around it. alpha is 1 where m is as before.
    if (moved) rescale(at, places, rL, rO);
    accumulate_sums(at, places, n_block, rTileL, rL, tap);
    accumulate(at, places, n_block, rP, sV, rO, tap);
  }
  if (tap.ends_before(Stage::kReduce)) return;

  // Stage reduce, last part.
  __syncwarp();  // P of the last tile has been read: o goes there
  normalise(at, places, rL, rO, tap);
  __syncwarp();  // a lane reads what others have stored
  store(at, problem, tensors, aligned, state.m, tap);
}

}  // namespace attn_diag
