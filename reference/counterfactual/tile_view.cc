// Which keys a row counts, under the mask bugs.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "reference/counterfactual/evaluator.h"

namespace attn_diag::reference {
namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 40;

struct Ends {
  std::int64_t first = -kFar, last = kFar;  // key indices, inclusive, not cut to the keys there are
};

Ends ends_of(const Problem& p, const MaskChange& change, std::int64_t query) {
  const std::int64_t opposite = query + (p.seqlen_k - p.seqlen_q);
  bool bottom_right =
      p.mask.kind == MaskKind::kWindow || p.mask.alignment == CausalAlignment::kBottomRight;
  if (change.rule == MaskRule::kOtherAlignment) bottom_right = !bottom_right;
  const std::int64_t at = bottom_right ? opposite : query;
  if (p.mask.kind == MaskKind::kCausal) return {-kFar, at + change.last_shift};
  if (p.mask.kind != MaskKind::kWindow) return {};
  std::int64_t left = p.mask.window_left, right = p.mask.window_right;
  if (change.rule == MaskRule::kEndsExchanged) std::swap(left, right);
  return {change.rule == MaskRule::kNoFirst ? -kFar : at - left + change.first_shift,
          change.rule == MaskRule::kNoLast ? kFar : at + right + change.last_shift};
}

std::int64_t tiles_up_to(std::int64_t last, std::int64_t block_n, std::int64_t tiles) {
  return std::clamp<std::int64_t>(last < 0 ? 0 : last / block_n + 1, 0, tiles);
}

}  // namespace

// The tiles that the loop of the row's query tile visits.
KeyRange Evaluator::visited_tiles(std::int32_t query) const {
  const TileLoop loop = d_.mask.loop;
  if (loop == TileLoop::kAll) return {0, tiles_};
  const std::int64_t block_m = g_.tile.block_m, block_n = g_.tile.block_n;
  const std::int64_t first_row = query / block_m * block_m;
  const std::int64_t last_row = std::min<std::int64_t>(first_row + block_m, p_.seqlen_q) - 1;
  // The loop's bounds have a bug of their own or none: they do not follow a shifted mask.
  const Ends of_first = ends_of(p_, {}, first_row), of_last = ends_of(p_, {}, last_row);
  const std::int64_t least = loop == TileLoop::kLastRow ? of_last.first : of_first.first;
  std::int64_t most = loop == TileLoop::kFirstRow ? of_first.last : of_last.last;
  most = std::min<std::int64_t>(most, p_.seqlen_k - 1);
  const std::int64_t begin = std::clamp<std::int64_t>(least, 0, p_.seqlen_k) / block_n;
  std::int64_t end = tiles_up_to(most, block_n, tiles_);
  if (loop == TileLoop::kRoundedDown) end = (most + 1) / block_n;
  if (loop == TileLoop::kOneLess) end -= 1;
  if (loop == TileLoop::kSquare) end = std::min<std::int64_t>(query / block_m + 1, tiles_);
  return {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(std::max(begin, end))};
}

TileView Evaluator::view_of(std::int32_t query, std::int32_t tile) const {
  TileView view;
  view.all = slots_.of_tile(tile);
  const KeyRange visited = visited_tiles(query);
  view.visited = tile >= visited.begin && tile < visited.end;
  view.counted = {view.all.begin, view.all.begin};
  const MaskChange& change = d_.mask;
  if (change.tile_left_out != 0) {
    const KeyRange loop = intersect(tiles_of_split(p_, g_, tile / g_.tiles_per_split), visited);
    if (tile == (change.tile_left_out > 0 ? loop.begin : loop.end - 1)) view.visited = false;
  }
  if (!view.visited) return view;
  view.counted = view.all;
  if (change.tile_keys > 0)
    view.counted.end = std::min(view.all.end, view.all.begin + change.tile_keys);
  const std::int64_t block_n = g_.tile.block_n, first_key = tile * block_n;
  const auto slot = [&](std::int64_t key) {
    return view.all.begin +
           static_cast<std::int32_t>(std::clamp<std::int64_t>(key - first_key, 0, view.all.size()));
  };
  if (p_.mask.kind == MaskKind::kNone || change.rule == MaskRule::kMissing) {
    if (change.reach >= 0)
      view.counted.end = std::min(view.counted.end, slot(std::int64_t{query} + change.reach + 1));
    return view;
  }
  if (change.masked_tiles == MaskedTiles::kLastVisited) {
    const KeyRange split = tiles_of_split(p_, g_, tile / g_.tiles_per_split);
    if (tile != intersect(split, visited).end - 1) return view;
  }
  if (change.masked_tiles == MaskedTiles::kAboveDiagonal) {
    const std::int64_t block_m = g_.tile.block_m;
    const std::int64_t last_row =
        std::min<std::int64_t>(query / block_m * block_m + block_m, p_.seqlen_q) - 1;
    if (first_key + block_n <= ends_of(p_, change, last_row).last + 1) return view;
  }
  const bool query_in_tile =
      change.rule == MaskRule::kQueryInTile || change.rule == MaskRule::kBothInTile;
  const bool key_in_tile =
      change.rule == MaskRule::kKeyInTile || change.rule == MaskRule::kBothInTile;
  const std::int32_t group = p_.heads / p_.kv_heads;
  const std::int32_t index = query_in_tile                           ? query % g_.tile.block_m
                             : change.rule == MaskRule::kPackedQuery ? query * group + head_ % group
                                                                     : query;
  Ends ends = ends_of(p_, change, index);
  if (key_in_tile) ends = {ends.first + first_key, ends.last + first_key};
  const std::int32_t end = slot(ends.last + 1);
  view.inverted = change.rule == MaskRule::kInverted;
  view.counted = {slot(ends.first), view.inverted ? end : std::min(end, view.counted.end)};
  return view;
}

}  // namespace attn_diag::reference
