// Which keys a row counts, under the mask bugs.
#include "reference/counterfactual/tile_view.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/fragment.h"

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

// The number of the run of `run` keys that a key is in; keys may be negative.
std::int64_t run_of(std::int64_t key, std::int64_t run) {
  return key >= 0 ? key / run : -((-key + run - 1) / run);
}

std::int64_t tiles_up_to(std::int64_t last, std::int64_t block_n, std::int64_t tiles) {
  return std::clamp<std::int64_t>(last < 0 ? 0 : last / block_n + 1, 0, tiles);
}

}  // namespace

KeyRange visited_tiles(const Problem& p, const Geometry& g, const MaskChange& change,
                       std::int32_t query) {
  const TileLoop loop = change.loop;
  const std::int32_t tiles = kv_tile_count(p, g);
  if (loop == TileLoop::kAll) return {0, tiles};
  const std::int64_t block_m = g.tile.block_m, block_n = g.tile.block_n;
  const std::int64_t first_row = query / block_m * block_m;
  const std::int64_t last_row = std::min<std::int64_t>(first_row + block_m, p.seqlen_q) - 1;
  // The loop's bounds have a bug of their own or none: they do not follow a shifted mask.
  const Ends of_first = ends_of(p, {}, first_row), of_last = ends_of(p, {}, last_row);
  const std::int64_t least =
      (loop == TileLoop::kLastRow ? of_last.first : of_first.first) + change.begin_shift;
  std::int64_t most = loop == TileLoop::kFirstRow ? of_first.last : of_last.last;
  most = std::min<std::int64_t>(most, p.seqlen_k - 1) + change.end_shift;
  const std::int64_t begin = std::clamp<std::int64_t>(least, 0, p.seqlen_k) / block_n;
  std::int64_t end = tiles_up_to(most, block_n, tiles);
  if (loop == TileLoop::kRoundedDown) end = (most + 1) / block_n;
  if (loop == TileLoop::kOneLess) end -= 1;
  if (loop == TileLoop::kSquare) end = std::min<std::int64_t>(query / block_m + 1, tiles);
  return {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(std::max(begin, end))};
}

bool masks_tile(const Problem& p, const Geometry& g, const MaskChange& change, std::int32_t query,
                std::int32_t tile, KeyRange visited) {
  if (change.masked_tiles == MaskedTiles::kAll) return true;
  const std::int32_t run = change.masked_run;
  const KeyRange loop = intersect(tiles_of_split(p, g, tile / g.tiles_per_split), visited);
  switch (change.masked_tiles) {
    case MaskedTiles::kAll:
      break;
    case MaskedTiles::kLastVisited:
      return tile >= loop.end - run;
    case MaskedTiles::kNotLastVisited:
      return tile < loop.end - run;
    case MaskedTiles::kFirstVisited:
      return tile < loop.begin + run;
    case MaskedTiles::kNotFirstVisited:
      return tile >= loop.begin + run;
    case MaskedTiles::kLastOfRow:
      return tile >= visited.end - run;
    case MaskedTiles::kLastOfSequence:
      return tile >= kv_tile_count(p, g) - run;
    case MaskedTiles::kFirstOfSequence:
      return tile < run;
    case MaskedTiles::kSameNumber:
      return tile == query / g.tile.block_m;
    case MaskedTiles::kAboveDiagonal: {
      const std::int64_t block_m = g.tile.block_m, block_n = g.tile.block_n;
      const std::int64_t last_row =
          std::min<std::int64_t>(query / block_m * block_m + block_m, p.seqlen_q) - 1;
      return (tile + 1) * block_n > ends_of(p, change, last_row).last + 1;
    }
  }
  return true;
}

// Where the mask compares the query and the key of another element of the fragment.
bool Evaluator::sees_by_fragment(std::int32_t query, std::int32_t key) const {
  const std::int32_t row = query % g_.tile.block_m % kFragmentSize;
  const std::int32_t column = key % g_.tile.block_n % kFragmentSize;
  const FragmentPlace from = fragment_source(d_.mask.fragment, row, column);
  const Ends ends = ends_of(p_, d_.mask, query - row + from.row);
  const std::int64_t compared = key - column + from.column;
  return compared >= ends.first && compared <= ends.last;
}

TileView Evaluator::view_of(std::int32_t query, std::int32_t tile) const {
  TileView view;
  view.all = slots_.of_tile(tile);
  const KeyRange visited = visited_tiles(p_, g_, d_.mask, query);
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
  view.counted.begin = std::min(view.counted.end, view.all.begin + change.tile_first);
  const std::int64_t block_n = g_.tile.block_n, first_key = tile * block_n;
  const auto slot = [&](std::int64_t key) {
    return view.all.begin +
           static_cast<std::int32_t>(std::clamp<std::int64_t>(key - first_key, 0, view.all.size()));
  };
  if (change.keys_before > 0)
    view.counted.begin = std::max(view.counted.begin, slot(change.keys_before));
  if (change.keys_behind > 0)
    view.counted.end = std::min(view.counted.end, slot(p_.seqlen_k - change.keys_behind));
  if (p_.mask.kind == MaskKind::kNone || change.rule == MaskRule::kMissing) {
    if (change.reach >= 0)
      view.counted.end = std::min(view.counted.end, slot(std::int64_t{query} + change.reach + 1));
    return view;
  }
  if (!masks_tile(p_, g_, change, query, tile, visited)) return view;
  view.by_fragment = change.fragment != FragmentMap::kRight;
  if (view.by_fragment) return view;
  const bool query_in_tile =
      change.rule == MaskRule::kQueryInTile || change.rule == MaskRule::kBothInTile;
  const bool key_in_tile =
      change.rule == MaskRule::kKeyInTile || change.rule == MaskRule::kBothInTile;
  // Rows past the end of the tile have numbers too.
  const auto row_of = [&](const RowChoice& choice, std::int32_t own) {
    const std::int32_t in_tile = own % g_.tile.block_m;
    return own - in_tile + choice.of(in_tile);
  };
  const std::int32_t group = p_.heads / p_.kv_heads;
  std::int32_t index = query_in_tile                           ? query % g_.tile.block_m
                       : change.rule == MaskRule::kPackedQuery ? query * group + head_ % group
                                                               : row_of(change.row, query);
  if (change.query_of != 0) {
    const std::int32_t run = std::abs(change.query_of);
    index = index / run * run + (change.query_of < 0 ? run - 1 : 0);
  }
  Ends ends = ends_of(p_, change, index);
  if (change.last_of != 0) {
    const std::int64_t run = std::abs(change.last_of), begin = run_of(ends.last, run) * run;
    ends.last = begin + (change.last_of > 0 ? run : 0) - 1;
  }
  if (change.first_of != 0) {
    const std::int64_t run = std::abs(change.first_of), begin = run_of(ends.first, run) * run;
    ends.first = begin + (change.first_of > 0 || begin == ends.first ? 0 : run);
  }
  if (key_in_tile) ends = {ends.first + first_key, ends.last + first_key};
  const std::int32_t end = slot(ends.last + 1);
  view.inverted = change.rule == MaskRule::kInverted;
  view.counted = {std::max(slot(ends.first), view.counted.begin),
                  view.inverted ? end : std::min(end, view.counted.end)};
  return view;
}

}  // namespace attn_diag::reference
