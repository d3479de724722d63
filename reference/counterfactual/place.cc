#include "attn_diag/reference/place.h"

#include <algorithm>
#include <utility>

#include "reference/counterfactual/tile_view.h"

namespace attn_diag::reference {
namespace {

// Whether the mask hides a key of the tile from a query of the query tile.
bool is_cut(const Problem& p, const Geometry& g, std::int32_t query, std::int32_t tile) {
  const std::int32_t first_query = query / g.tile.block_m * g.tile.block_m;
  const std::int32_t last_query = std::min(first_query + g.tile.block_m, p.seqlen_q) - 1;
  const std::int32_t first_key = tile * g.tile.block_n;
  const std::int32_t end_key = std::min(first_key + g.tile.block_n, p.seqlen_k);
  return visible_keys(p, first_query).end < end_key ||
         visible_keys(p, last_query).begin > first_key;
}

std::int32_t index_of(RowAxis axis, const Geometry& g, std::int32_t batch, std::int32_t head,
                      std::int32_t query) {
  switch (axis) {
    case RowAxis::kNone:
      break;
    case RowAxis::kBatch:
      return batch;
    case RowAxis::kHead:
      return head;
    case RowAxis::kQueryTile:
      return query / g.tile.block_m;
    case RowAxis::kRowOfTile:
      return query % g.tile.block_m;
  }
  return 0;
}

class RowPlaces {
 public:
  // The places along an axis with n indices.
  void of_axis(RowAxis axis, std::int32_t n, const std::string& one, const std::string& many) {
    if (n < 2) return;
    constexpr std::int32_t kMostSingly = 16;
    for (std::int32_t i = 0; i < std::min(n, kMostSingly); ++i)
      add(axis, 0, i, i + 1, one + " " + std::to_string(i) + (i == n - 1 ? ", the last" : ""));
    if (n > kMostSingly) add(axis, 0, n - 1, n, "the last " + one);
    if (n < 3) return;
    add(axis, 0, 1, n, "all " + many + " but the first");
    add(axis, 0, 0, n - 1, "all " + many + " but the last");
    if (n < 4) return;
    add(axis, 2, 0, 1, "even " + many);
    add(axis, 2, 1, 2, "odd " + many);
  }

  void of_rows(std::int32_t block_m) {
    for (const std::int32_t of : {2, 4, 8, 16, 32, 64, 128}) {
      if (of > block_m) break;
      const std::string every =
          of == block_m ? "of the query tile" : "of every " + std::to_string(of);
      if (of > 2) {
        add(RowAxis::kRowOfTile, of, 0, 1, "the first row " + every);
        add(RowAxis::kRowOfTile, of, of - 1, of, "the last row " + every);
      }
      add(RowAxis::kRowOfTile, of, 0, of / 2, "the first half of the rows " + every);
      add(RowAxis::kRowOfTile, of, of / 2, of, "the second half of the rows " + every);
    }
  }

  std::vector<NamedPlace> take() { return std::move(x_all); }

 private:
  void add(RowAxis axis, std::int32_t of, std::int32_t begin, std::int32_t end, std::string name) {
    NamedPlace place;
    place.place.rows = {axis, of, begin, end};
    place.name = std::move(name);
    x_all.push_back(std::move(place));
  }

  std::vector<NamedPlace> x_all;
};

}  // namespace

bool holds(TilePlace place, const Problem& p, const Geometry& g, std::int32_t query,
           std::int32_t tile) {
  const bool whole = place == TilePlace::kLastOfAll || place == TilePlace::kNotLastOfAll;
  MaskChange bounded;
  bounded.loop = whole ? TileLoop::kAll : TileLoop::kBounded;
  const KeyRange visited = visited_tiles(p, g, bounded, query);
  const KeyRange loop = intersect(tiles_of_split(p, g, tile / g.tiles_per_split), visited);
  if (place != TilePlace::kAll && (tile < loop.begin || tile >= loop.end)) return false;
  const std::int32_t number = tile - loop.begin;
  switch (place) {
    case TilePlace::kAll:
      break;
    case TilePlace::kFirst:
      return number == 0;
    case TilePlace::kNotFirst:
      return number != 0;
    case TilePlace::kTail:
      return (tile + 1) * g.tile.block_n > p.seqlen_k;
    case TilePlace::kLast:
    case TilePlace::kLastOfAll:
      return tile == loop.end - 1;
    case TilePlace::kNotLast:
    case TilePlace::kNotLastOfAll:
      return tile != loop.end - 1;
    case TilePlace::kOdd:
      return number % 2 != 0;
    case TilePlace::kEven:
      return number % 2 == 0;
    case TilePlace::kCut:
      return is_cut(p, g, query, tile);
    case TilePlace::kWhole:
      return !is_cut(p, g, query, tile);
  }
  return true;
}

bool holds(const RowPlace& place, const Geometry& g, std::int32_t batch, std::int32_t head,
           std::int32_t query) {
  if (place.axis == RowAxis::kNone) return true;
  std::int32_t index = index_of(place.axis, g, batch, head, query);
  if (place.of > 0) index %= place.of;
  return index >= place.begin && index < place.end;
}

std::vector<NamedPlace> tile_places(const Problem& p, const Geometry& g) {
  std::vector<NamedPlace> all;
  const auto add = [&](TilePlace tiles, const char* name) {
    NamedPlace place;
    place.place.tiles = tiles;
    place.name = name;
    all.push_back(std::move(place));
  };
  if (p.mask.kind != MaskKind::kNone) {
    add(TilePlace::kCut, "tiles in which the mask hides a key");
    add(TilePlace::kWhole, "tiles in which the mask hides no key");
  }
  if (p.seqlen_k % g.tile.block_n != 0) add(TilePlace::kTail, "a last tile that is not full");
  if (kv_tile_count(p, g) < 2) return all;
  add(TilePlace::kLast, "the last tile of the loop");
  add(TilePlace::kNotLast, "all tiles of the loop but the last");
  if (p.mask.kind != MaskKind::kNone) {
    add(TilePlace::kLastOfAll, "the last of all tiles");
    add(TilePlace::kNotLastOfAll, "all tiles but the last of all");
  }
  add(TilePlace::kFirst, "the first tile of the loop");
  add(TilePlace::kNotFirst, "all tiles of the loop but the first");
  add(TilePlace::kOdd, "odd tiles of the loop, the first being 0");
  add(TilePlace::kEven, "even tiles of the loop, the first being 0");
  return all;
}

std::vector<NamedPlace> row_places(const Problem& p, const Geometry& g) {
  RowPlaces places;
  places.of_axis(RowAxis::kBatch, p.batch, "batch", "batches");
  places.of_axis(RowAxis::kHead, p.heads, "head", "heads");
  places.of_axis(RowAxis::kQueryTile, (p.seqlen_q + g.tile.block_m - 1) / g.tile.block_m,
                 "query tile", "query tiles");
  places.of_rows(g.tile.block_m);
  return places.take();
}

}  // namespace attn_diag::reference
