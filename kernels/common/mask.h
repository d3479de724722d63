// The mask, as a policy: which keys a query sees, what becomes of the scores it does not see, and
// which KV tiles a query tile has to visit. One object answers all three, so that they agree.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <concepts>

#include "attn_diag/kernels/problem.h"
#include "common/tile_range.h"

namespace attn_diag {

// Keys [begin, end); begin >= end: none.
struct KeyRange {
  int begin = 0;
  int end = 0;

  // The score of `key`, or -inf where it lies outside.
  ATTN_DIAG_HD float apply(float score, int key) const {
    return key >= begin && key < end ? score : -INFINITY;
  }
};

// Query q sees the keys q + offset - left .. q + offset + right that exist. None, causal and window
// are all of this form.
class BandMask {
 public:
  constexpr explicit BandMask(const Problem& problem) : x_seqlen_k(problem.seqlen_k) {
    // Far enough to reach any key from any query, and too small to overflow an int.
    const int unbounded = problem.seqlen_q > problem.seqlen_k ? problem.seqlen_q : problem.seqlen_k;
    const Mask& mask = problem.mask;
    switch (mask.kind) {
      case MaskKind::kNone:
        x_left = x_right = unbounded;
        break;
      case MaskKind::kCausal:
        x_offset = mask.alignment == CausalAlignment::kBottomRight
                       ? problem.seqlen_k - problem.seqlen_q
                       : 0;
        x_left = unbounded;
        x_right = 0;
        break;
      case MaskKind::kWindow:
        x_offset = problem.seqlen_k - problem.seqlen_q;
        x_left = mask.window_left < unbounded ? mask.window_left : unbounded;
        x_right = mask.window_right < unbounded ? mask.window_right : unbounded;
        break;
    }
  }

  constexpr ATTN_DIAG_HD KeyRange visible(int query) const {
    const int begin = query + x_offset - x_left;
    const int end = query + x_offset + x_right + 1;
    return {begin > 0 ? begin : 0, end < x_seqlen_k ? end : x_seqlen_k};
  }

  // KV tiles in which a query of [query_begin, query_end) may see a key: those outside are masked
  // in every cell. Both ends of a band move with the query, so the first and last query bound it.
  constexpr ATTN_DIAG_HD TileRange tiles(int query_begin, int query_end, int block_n) const {
    const int begin = visible(query_begin).begin;
    const int end = visible(query_end - 1).end;
    if (begin >= end) return {0, 0};
    const int num_tiles = ceil_div(x_seqlen_k, block_n);
    const int end_tile = ceil_div(end, block_n);
    return {begin / block_n, end_tile < num_tiles ? end_tile : num_tiles};
  }

 private:
  int x_seqlen_k = 0;
  int x_offset = 0;
  int x_left = 0;
  int x_right = 0;
};

// What a kernel asks of its Mask parameter.
template <class T>
concept MaskPolicy = requires(const T mask, int query) {
  { mask.visible(query) } -> std::same_as<KeyRange>;
  { mask.tiles(query, query, query) } -> std::same_as<TileRange>;
};

}  // namespace attn_diag
