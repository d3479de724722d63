// What fused_wmma's adapter and its translation units, one per element type, share: what is compiled, and its
// shape. To be included before anything of common/.
//
// Shape: how a query tile is dealt out to warps, and its shared memory.
//
//   warp     kRows rows of the query tile, kRowFragments fragments high, with all keys and columns
//   row      its maximum is kept by kLanesPerRow lanes; all else is done on fragments
//   shared   K and V, twice each, for the block; then a part for every warp
#pragma once

// Unless the build says otherwise:
#ifndef ATTN_DIAG_COMPILED_DTYPES
#define ATTN_DIAG_COMPILED_DTYPES 0x3  // fp16, bf16: what tensor cores multiply with an fp32 sum
#endif
#ifndef ATTN_DIAG_COMPILED_TILES
#define ATTN_DIAG_COMPILED_TILES \
  {64, 64}, {128, 64}, { 16, 16 }
#endif

#include <cstddef>

#include "attn_diag/kernels/adapter.h"
#include "common/accumulator_places.h"
#include "common/compiled.h"
#include "common/wmma_tiles.h"

namespace attn_diag {

template <class Element>
Status run_fused_wmma(const RunRequest& request);

// kDim: head_dim and head_dim_v, rounded up to a compiled size.
template <int kBlockM_, int kBlockN_, int kDim_>
struct FusedWmmaTraits {
  static constexpr int kBlockM = kBlockM_;
  static constexpr int kBlockN = kBlockN_;
  static constexpr int kDim = kDim_;
  static constexpr int kWarpSize = 32;
  // Two row fragments share every fragment of K and V that is loaded; registers allow it only for
  // small head dimensions.
  static constexpr int kRowFragments = kBlockM >= 128 && kDim <= 64 ? 2 : 1;
  static constexpr int kRows = kRowFragments * kFragment;
  static constexpr int kWarps = kBlockM / kRows;
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr int kLanesPerRow = kWarpSize / kRows;
  static constexpr int kKeyFragments = kBlockN / kFragment;
  static constexpr int kDimFragments = kDim / kFragment;

  static_assert(kBlockM % kRows == 0 && kBlockN % kFragment == 0 && kDim % kFragment == 0);
  static_assert(kThreads <= 1024, "CUDA allows no larger block");

  // Row strides, in elements; padding as wmma_tiles.h says.
  static constexpr int kKVStride = stride_of_16_bit(kDim);
  static constexpr int kPStride = stride_of_16_bit(kBlockN);
  static constexpr int kMaxStride = kPlacesStride;

  // Offsets of the shared tiles, in bytes, each at a multiple of 32.
  static constexpr int kKVElements = kBlockN * kKVStride;    // of one tile of K or V
  static constexpr int kWarpOffset = 4 * (2 * kKVElements);  // after K, V, K, V
  // A warp's own: its rows of Q, then of P, then of o, one after another in the same place; a tile
  // to find the maxima in; and what it hands to the rows: origin of the exponents, alpha.
  static constexpr int kQBytes = 2 * kRows * kKVStride;
  static constexpr int kPBytes = 2 * kRows * kPStride;
  static constexpr int kMaxOffset = kQBytes > kPBytes ? kQBytes : kPBytes;
  static constexpr int kOriginOffset = kMaxOffset + 4 * kRows * kMaxStride;
  static constexpr int kAlphaOffset = kOriginOffset + 4 * kRows;
  static constexpr int kWarpBytes = kAlphaOffset + 4 * kRows;
  static constexpr std::size_t kSharedBytes = kWarpOffset + kWarps * kWarpBytes;
  static_assert(kMaxOffset % 32 == 0 && kWarpBytes % 32 == 0 && kWarpOffset % 32 == 0);
};

}  // namespace attn_diag
