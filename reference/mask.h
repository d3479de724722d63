// The oracle's own spelling of the mask, the tile and split ranges and the head map. Kernels have
// theirs; sharing one would let a mask bug cancel itself out.
#pragma once

#include <cstdint>

#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag::reference {

// Half open. Every mask there is shows each query one run of neighbouring keys.
struct KeyRange {
  std::int32_t begin = 0, end = 0;

  bool empty() const { return begin >= end; }
  bool operator==(const KeyRange&) const = default;
  std::int32_t size() const { return empty() ? 0 : end - begin; }
};
KeyRange intersect(KeyRange a, KeyRange b);

// The keys that query `query` may see.
KeyRange visible_keys(const Problem& problem, std::int32_t query);

// KV tiles of the whole key sequence, and the keys of one.
std::int32_t kv_tile_count(const Problem& problem, const Geometry& geometry);
KeyRange keys_of_tile(const Problem& problem, const Geometry& geometry, std::int32_t kv_tile);

// The KV tiles of one split; may be empty.
KeyRange tiles_of_split(const Problem& problem, const Geometry& geometry, std::int32_t split);
// More splits than tiles: which keys a split has is not known, only that a tile may be divided.
inline bool cuts_within_tiles(const Problem& problem, const Geometry& geometry) {
  return geometry.has_split_merge && geometry.tiles_per_split == 1 &&
         geometry.num_splits > num_kv_tiles(problem, geometry);
}

std::int32_t kv_head_of(const Problem& problem, std::int32_t head);

}  // namespace attn_diag::reference
