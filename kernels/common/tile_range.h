// Half-open ranges of KV tiles: the loop bounds of every kernel, as pure functions.
#pragma once

#include "attn_diag/kernels/geometry.h"

namespace attn_diag {

struct TileRange {
  int begin = 0;
  int end = 0;  // <= begin: empty
};

// The tiles that a split owns; empty for splits beyond the last tile.
constexpr ATTN_DIAG_HD TileRange tiles_of_split(const Problem& problem, const Geometry& geometry,
                                                int split) {
  const int num_tiles = num_kv_tiles(problem, geometry);
  const int begin = split * geometry.tiles_per_split;
  const int end = begin + geometry.tiles_per_split;
  return {begin < num_tiles ? begin : num_tiles, end < num_tiles ? end : num_tiles};
}

constexpr ATTN_DIAG_HD TileRange intersect(TileRange a, TileRange b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

}  // namespace attn_diag
