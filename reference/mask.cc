#include "reference/mask.h"

#include <algorithm>
#include <limits>

#include "attn_diag/reference/reference.h"

namespace attn_diag::reference {
namespace {

std::int32_t clamp_to(std::int64_t x, std::int32_t upper) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(x, 0, upper));
}

}  // namespace

KeyRange intersect(KeyRange a, KeyRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

KeyRange visible_keys(const Problem& problem, std::int32_t query) {
  const std::int64_t sk = problem.seqlen_k;
  // The key that stands opposite the query when the last query and the last key are lined up.
  const std::int64_t opposite = query + (sk - problem.seqlen_q);
  const Mask& mask = problem.mask;
  std::int64_t first = 0, last = sk - 1;
  if (mask.kind == MaskKind::kCausal) {
    last = mask.alignment == CausalAlignment::kBottomRight ? opposite : query;
  } else if (mask.kind == MaskKind::kWindow) {
    first = opposite - mask.window_left;
    last = opposite + mask.window_right;
  }
  return {clamp_to(first, problem.seqlen_k), clamp_to(last + 1, problem.seqlen_k)};
}

bool visible(const Problem& problem, std::int32_t query, std::int32_t key) {
  const KeyRange keys = visible_keys(problem, query);
  return key >= keys.begin && key < keys.end;
}

std::int32_t kv_tile_count(const Problem& problem, const Geometry& geometry) {
  return (problem.seqlen_k - 1) / geometry.tile.block_n + 1;
}

KeyRange keys_of_tile(const Problem& problem, const Geometry& geometry, std::int32_t kv_tile) {
  const std::int64_t first = std::int64_t{kv_tile} * geometry.tile.block_n;
  return {clamp_to(first, problem.seqlen_k),
          clamp_to(first + geometry.tile.block_n, problem.seqlen_k)};
}

KeyRange tiles_of_split(const Problem& problem, const Geometry& geometry, std::int32_t split) {
  const std::int32_t tiles = kv_tile_count(problem, geometry);
  const std::int64_t first = std::int64_t{split} * geometry.tiles_per_split;
  return {clamp_to(first, tiles), clamp_to(first + geometry.tiles_per_split, tiles)};
}

std::int32_t kv_head_of(const Problem& problem, std::int32_t head) {
  const std::int32_t query_heads_per_kv_head = problem.heads / problem.kv_heads;
  return head / query_heads_per_kv_head;
}

bool tile_fully_masked(const Problem& problem, const Geometry& geometry, std::int32_t query_tile,
                       std::int32_t kv_tile) {
  const KeyRange keys = keys_of_tile(problem, geometry, kv_tile);
  const std::int64_t first = std::int64_t{query_tile} * geometry.tile.block_m;
  const std::int32_t begin = clamp_to(first, problem.seqlen_q);
  const std::int32_t end = clamp_to(first + geometry.tile.block_m, problem.seqlen_q);
  for (std::int32_t query = begin; query < end; ++query)
    if (!intersect(keys, visible_keys(problem, query)).empty()) return false;
  return true;
}

}  // namespace attn_diag::reference
