// How a kernel cuts the problem into tiles and splits, as the kernel declares it for one run.
//
//   query tile m_block: queries [m_block * block_m, ...)
//   KV tile n_block:    keys [n_block * block_n, ...)
//   split s:            KV tiles [s * tiles_per_split, (s+1) * tiles_per_split), cut at the last
//                       tile; may be empty
#pragma once

#include <cstdint>

#include "attn_diag/kernels/problem.h"

namespace attn_diag {

struct TileShape {
  std::int32_t block_m = 64;  // kBlockM: queries per query tile
  std::int32_t block_n = 64;  // kBlockN: keys per KV tile
};

// What m (and so P, l and partial_o) of tile t is relative to.
enum class Frame : std::uint8_t {
  kTile,     // the row max over the keys of tile t alone
  kRunning,  // the row max over all tiles of t's split up to and including t (online softmax)
};

struct Geometry {
  TileShape tile;
  std::int32_t num_splits = 1;
  std::int32_t tiles_per_split = 1;
  Frame frame = Frame::kRunning;
  bool has_split_merge = false;     // merged_l, merged_o exist: a reduce over splits follows
  bool skips_masked_tiles = false;  // (query tile, KV tile) pairs in which every cell is masked may
                                    // be left unvisited: nothing is recorded for them
};

constexpr ATTN_DIAG_HD std::int32_t num_kv_tiles(const Problem& p, const Geometry& g) {
  return ceil_div(p.seqlen_k, g.tile.block_n);
}
constexpr ATTN_DIAG_HD std::int32_t num_query_tiles(const Problem& p, const Geometry& g) {
  return ceil_div(p.seqlen_q, g.tile.block_m);
}
constexpr ATTN_DIAG_HD std::int32_t split_of_kv_tile(const Geometry& g, std::int32_t kv_tile) {
  return kv_tile / g.tiles_per_split;
}

}  // namespace attn_diag
