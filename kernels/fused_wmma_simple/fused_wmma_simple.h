// What fused_wmma_simple's adapter and its translation units, one per element type, share: what is compiled, and its
// shape. To be included before anything of common/.
//
// Shape: how a query tile is dealt out to warps, and its shared
// tiles.
//
//   row group   16 rows of the query tile, computed by kWarpsPerGroup warps that take turns at the
//               16-column tiles of S (neighbouring warp, neighbouring keys) and of P V
//   row         in the softmax, shared by kLanesPerRow neighbouring lanes: lane i owns the keys
//               i, i + kLanesPerRow, ... and the same columns of O
#pragma once

// Unless the build says otherwise:
#ifndef ATTN_DIAG_COMPILED_DTYPES
#define ATTN_DIAG_COMPILED_DTYPES 0x3  // fp16, bf16: what tensor cores multiply with an fp32 sum
#endif
#ifndef ATTN_DIAG_COMPILED_TILES
#define ATTN_DIAG_COMPILED_TILES \
  {64, 64}, {16, 16}, { 32, 16 }
#endif

#include <cstddef>

#include "attn_diag/kernels/adapter.h"
#include "common/compiled.h"
#include "common/wmma_tiles.h"

namespace attn_diag {

template <class Element>
Status run_fused_wmma_simple(const RunRequest& request);

template <int kBlockM_, int kBlockN_>
struct FusedWmmaSimpleTraits {
  static constexpr int kBlockM = kBlockM_;
  static constexpr int kBlockN = kBlockN_;
  static constexpr int kWarpSize = 32;
  static constexpr int kWarpsPerGroup = 2;
  static constexpr int kWarps = kBlockM / kFragment * kWarpsPerGroup;
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr int kLanesPerRow = kThreads / kBlockM;
  static constexpr int kKeysPerLane = kBlockN / kLanesPerRow;

  static_assert(kBlockM % kFragment == 0 && kBlockN % kFragment == 0, "whole fragments only");
  static_assert(kWarpSize % kLanesPerRow == 0, "the lanes of a row must be in one warp");
  static_assert(kThreads <= 1024, "CUDA allows no larger block");

  static constexpr int kSStride = stride_of_32_bit(kBlockN);
  static constexpr int kPStride = stride_of_16_bit(kBlockN);
  static constexpr int kPVStride = stride_of_32_bit(kFragment);
};

// Where the shared tiles begin, in bytes, each at a multiple of 32. Rows are padded as wmma_tiles.h
// says; head_dim and head_dim_v are padded with zeros to whole fragments, the padding of rows is
// never read.
template <class Traits>
struct FusedWmmaSimpleTiles {
  int head_dim, head_dim_v;      // padded
  int q_stride, v_stride;        // of 16-bit elements: sQ and sK; sV
  int o_stride;                  // of floats
  std::size_t q, k, v, s, p, o;  // sQ (kBlockM, head_dim), sK (kBlockN, head_dim), ...
  std::size_t pv;                // a (16, 16) tile of P V for every warp
  std::size_t bytes;             // of all

  constexpr ATTN_DIAG_HD FusedWmmaSimpleTiles(int dim, int dim_v)
      : head_dim(padded_dim(dim)),
        head_dim_v(padded_dim(dim_v)),
        q_stride(stride_of_16_bit(head_dim)),
        v_stride(stride_of_16_bit(head_dim_v)),
        o_stride(stride_of_32_bit(head_dim_v)),
        q(0),
        k(q + 2u * Traits::kBlockM * q_stride),
        v(k + 2u * Traits::kBlockN * q_stride),
        s(v + 2u * Traits::kBlockN * v_stride),
        p(s + 4u * Traits::kBlockM * Traits::kSStride),
        o(p + 2u * Traits::kBlockM * Traits::kPStride),
        pv(o + 4u * Traits::kBlockM * o_stride),
        bytes(pv + 4u * Traits::kWarps * kFragment * Traits::kPVStride) {}
};

}  // namespace attn_diag
