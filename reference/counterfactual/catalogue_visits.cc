// F7 to F9, F12b: ends of the mask, finite masked scores, masks by runs of keys, tiles that are not masked or visited twice,
// keys cut off.
#include <set>
#include <utility>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_maps.h"
#include "reference/counterfactual/entry.h"
#include "reference/counterfactual/fragment.h"
#include "reference/counterfactual/tile_view.h"
#include "reference/counterfactual/unite.h"
#include "reference/mask.h"

namespace attn_diag::reference {
namespace {

// Ends of what a row sees, some keys off or another end.
void shifts(const PredictionInputs& c, Variants& out) {
  if (!masked(c)) return;
  const Problem& p = c.problem();
  const std::int32_t offset = std::abs(p.seqlen_k - p.seqlen_q);
  std::set<std::int32_t> distances;
  for (const std::int32_t by : {1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, c.geometry().tile.block_m,
                                c.geometry().tile.block_n, offset - 1, offset + 1, 2 * offset})
    if (by > 0 && by < p.seqlen_k) distances.insert({-by, by});
  std::set<std::pair<std::int32_t, std::int32_t>> tried{{0, 0}};
  const auto add = [&](std::int32_t first, std::int32_t last, ParameterValue value) {
    if (!tried.insert({first, last}).second) return;
    under_both_loops(c, out,
                     [&](Deviation& d) {
                       d.mask.first_shift = first;
                       d.mask.last_shift = last;
                     },
                     {std::move(value)});
  };
  if (p.mask.kind == MaskKind::kWindow) {
    const auto ends = [&](MaskRule rule, const char* end, const char* what) {
      under_both_loops(c, out, [&](Deviation& d) { d.mask.rule = rule; },
                       {named(end, static_cast<double>(rule), what)});
    };
    ends(MaskRule::kNoFirst, "first", "none");
    ends(MaskRule::kNoLast, "last", "none");
    const std::int32_t left = p.mask.window_left, right = p.mask.window_right;
    if (left != right)
      ends(MaskRule::kEndsExchanged, "last", "that of window_left, and the reverse");
    // One of them is taken for the other, or for 0.
    add(0, left - right, named("last", left - right, "that of window_left"));
    add(0, -right, named("last", -right, "the query's own key"));
    add(left - right, 0, named("first", left - right, "that of window_right"));
    if (right != 0) add(left, 0, named("first", left, "the query's own key"));
    for (const std::int32_t by : distances) {
      add(by, 0, number("first", by));
      add(by, by, number("both", by));
    }
  }
  for (const std::int32_t by : distances) add(0, by, number("last", by));
}

// The free parameter is how far below 0, or below themselves, masked scores are.
void finite_masks(const PredictionInputs& c, Variants& out) {
  if (!masked(c)) return;
  FreeParameter below{"below", 0x1p-6, 0x1p7, {}, {}};
  for (const double value : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0})
    below.named.push_back({"below", value, number_text(value)});
  bool has_empty = false;
  for (std::int32_t query = 0; query < c.problem().seqlen_q; ++query)
    has_empty = has_empty || visible_keys(c.problem(), query).empty();
  for (const TileLoop loop : {TileLoop::kAll, TileLoop::kBounded})
    for (const bool added : {false, true}) {
      Deviation d;
      d.mask.loop = loop;
      double& score = added ? d.mask.masked_added : d.mask.masked_score;
      score = -1;
      const ParameterValue of = named("of", added, added ? "the score" : "0");
      out.add_free(d, below, {of, loop_value(loop)});
      // Lower values show in rows that see no other key.
      for (const double value : {1e3, 1e4, 65504.0, 1e5, 1e6}) {
        if (!has_empty) break;
        score = -value;
        out.add(d, {of, loop_value(loop), number("below", value)});
      }
    }
}

void runs(const PredictionInputs& c, Variants& out) {
  if (!masked(c)) return;
  const Problem& p = c.problem();
  const TileShape tile = c.geometry().tile;
  const auto add = [&](std::int32_t MaskChange::*field, const char* what, std::int32_t run,
                       const char* end) {
    under_both_loops(c, out, [&](Deviation& d) { d.mask.*field = run; },
                     {named("of", static_cast<double>(run > 0), end), number(what, std::abs(run))});
  };
  for (const std::int32_t run : std::set{2, 4, 8, 16, 32, 64, tile.block_n}) {
    if (run >= p.seqlen_k) continue;
    out.in_pairs(run == tile.block_n);
    add(&MaskChange::last_of, "keys", run, "all seen with the last key's");
    add(&MaskChange::last_of, "keys", -run, "not seen with the last key's");
    if (p.mask.kind != MaskKind::kWindow) continue;
    add(&MaskChange::first_of, "keys", run, "all seen with the first key's");
    add(&MaskChange::first_of, "keys", -run, "not seen with the first key's");
  }
  for (const std::int32_t run : std::set{2, 4, 8, 16, 32, 64, tile.block_m}) {
    if (run >= p.seqlen_q) continue;
    out.in_pairs(run == tile.block_m);
    add(&MaskChange::query_of, "queries", run, "that of the first");
    add(&MaskChange::query_of, "queries", -run, "that of the last");
  }
}

// Per query tile and KV tile: whether the mask hides some key of it from some row.
std::vector<bool> hiding_tiles(const Problem& p, const Geometry& g) {
  const std::int32_t tiles = num_kv_tiles(p, g);
  std::vector<bool> hides;
  for (std::int32_t first = 0; first < p.seqlen_q; first += g.tile.block_m) {
    KeyRange seen = visible_keys(p, first);
    for (std::int32_t i = first; i < std::min(first + g.tile.block_m, p.seqlen_q); ++i)
      seen = intersect(seen, visible_keys(p, i));
    for (std::int32_t t = 0; t < tiles; ++t) {
      const KeyRange keys = keys_of_tile(p, g, t);
      hides.push_back(intersect(keys, seen).size() < keys.size());
    }
  }
  return hides;
}

// Those of the `hiding` tiles that are visited and not masked.
std::vector<bool> bared_tiles(const Problem& p, const Geometry& g, const MaskChange& change,
                              const std::vector<bool>& hiding) {
  const std::int32_t tiles = num_kv_tiles(p, g);
  std::vector<bool> bared(hiding.size());
  for (std::size_t i = 0; i < hiding.size(); ++i) {
    const auto tile = static_cast<std::int32_t>(i) % tiles;
    const std::int32_t query = static_cast<std::int32_t>(i) / tiles * g.tile.block_m;
    const KeyRange visited = visited_tiles(p, g, change, query);
    const bool visits = tile >= visited.begin && tile < visited.end;
    bared[i] = hiding[i] && visits && !masks_tile(p, g, change, query, tile, visited);
  }
  return bared;
}

void some_tiles(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const Geometry& g = c.geometry();
  if (!masked(c) || num_kv_tiles(p, g) < 2) return;
  struct Choice {
    MaskedTiles tiles;
    std::int32_t run;
    const char* what;
  };
  // The first is mask-on-last-tile-only.
  constexpr Choice kChoices[] = {{MaskedTiles::kLastVisited, 1, ""},
                                 {MaskedTiles::kNotLastVisited, 1, "all but the last"},
                                 {MaskedTiles::kFirstVisited, 1, "the first"},
                                 {MaskedTiles::kNotFirstVisited, 1, "all but the first"},
                                 {MaskedTiles::kSameNumber, 1, "that with the query tile's number"},
                                 {MaskedTiles::kLastOfRow, 1, "the last of all splits"},
                                 {MaskedTiles::kLastVisited, 2, "the last 2"},
                                 {MaskedTiles::kLastVisited, 3, "the last 3"},
                                 {MaskedTiles::kLastVisited, 4, "the last 4"},
                                 {MaskedTiles::kLastOfRow, 2, "the last 2 of all splits"},
                                 {MaskedTiles::kLastOfRow, 3, "the last 3 of all splits"},
                                 {MaskedTiles::kLastOfSequence, 1, "the last of the sequence"},
                                 {MaskedTiles::kFirstOfSequence, 1, "the first of the sequence"},
                                 {MaskedTiles::kFirstVisited, 2, "the first 2"},
                                 {MaskedTiles::kNotLastVisited, 2, "all but the last 2"}};
  const std::vector<bool> hiding = hiding_tiles(p, g);
  // Under one loop, tiles that are bared alike are one function.
  for (const TileLoop loop : {TileLoop::kAll, TileLoop::kBounded}) {
    std::set<std::vector<bool>> tried{std::vector<bool>(hiding.size(), false)};
    for (const auto& [tiles, run, what] : kChoices) {
      Deviation d;
      d.mask.masked_tiles = tiles;
      d.mask.masked_run = run;
      d.mask.loop = loop;
      const bool is_new = tried.insert(bared_tiles(p, g, d.mask, hiding)).second;
      if (!is_new || (tiles == MaskedTiles::kLastVisited && run == 1)) continue;
      const double number = static_cast<double>(tiles) + 256 * (run - 1);
      out.in_pairs(run == 1);
      out.add(d, {named("tiles", number, what), loop_value(loop)});
    }
  }
}

// The mask of an accumulator's elements, whose places in the fragment depend on the lane.
void masks_of_elements(const PredictionInputs& c, Variants& out) {
  const TileShape tile = c.geometry().tile;
  if (!masked(c) || tile.block_m < kFragmentSize || tile.block_n < kFragmentSize) return;
  const auto add = [&](FragmentMap map, const char* what) {
    under_both_loops(c, out, [&](Deviation& d) { d.mask.fragment = map; },
                     {named("elements", static_cast<double>(map), what)});
  };
  add(FragmentMap::kElementNumber, "row 0, column i for element i of a lane");
  out.in_pairs(false);
  // A diagonal through a fragment's corner shows row 0 column 0 alone, which both maps have in the same places.
  const Problem& p = c.problem();
  const bool through_corners =
      p.mask.kind == MaskKind::kCausal && (p.seqlen_k - p.seqlen_q) % kFragmentSize == 0 &&
      tile.block_m % kFragmentSize == 0 && tile.block_n % kFragmentSize == 0;
  if (!through_corners)
    add(FragmentMap::kElementNumber8, "row 0, column i for element i of a lane, of 16x8");
  add(FragmentMap::kOfLaneZero, "those of lane 0");
  add(FragmentMap::kColumnOfLaneZero, "the columns of lane 0");
  // Columns as they are in other rows: mask-of-row has those.
  for (const NamedMap& map : kFragmentMaps)
    if (map.map != FragmentMap::kRowsSwapped) add(map.map, map.name);
}

void cut_keys(const PredictionInputs& c, Variants& out) {
  const std::int32_t keys = c.problem().seqlen_k;
  const auto add = [&](std::int32_t n, bool first) {
    if (n < 1 || n >= keys) return;
    out.with([&](Deviation& d) { (first ? d.mask.keys_before : d.mask.keys_behind) = n; },
             {number("keys", n), named("at", first, first ? "the beginning" : "the end")});
  };
  for (const std::int32_t n :
       std::set{1, 2, 3, 4, 8, 16, keys % 2, keys % 4, keys % 8, keys % 16, keys % 32, keys % 64})
    add(n, false);
  for (const std::int32_t n : {1, 2, 4, 8, 16}) add(n, true);
}

const Entry kVisit[] = {
    {{.id = "mask-shift",
      .statement = "an end of the visible keys is off by some keys, or another, or missing",
      .formula = "F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"first", "last", "both", "loop"},
      .citation = "flash-attention#282, transformers#39408",
      .remedy = "the comparison of key and query index: < or <=, and which ends are lined up",
      .needs_tiles = true},
     shifts},
    {{.id = "masked-score-finite",
      .statement = "masked scores become a number, or have one added, instead of -inf",
      .formula = "F3, F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"of", "loop", "below"},
      .citation = "",
      .remedy = "-inf for masked scores: what is added to them, or put for them",
      .needs_tiles = true},
     finite_masks,
     [](Deviation& d, double below) {
       (d.mask.masked_added != 0 ? d.mask.masked_added : d.mask.masked_score) = -below;
     }},
    {{.id = "mask-of-runs",
      .statement = "the mask is that of whole runs of keys or of queries, not of each",
      .formula = "F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"of", "keys", "queries", "loop"},
      .citation = "",
      .remedy = "the comparison of single indices on tiles that the diagonal crosses",
      .needs_tiles = true},
     runs},
    {{.id = "mask-on-some-tiles",
      .statement = "the mask is applied on some tiles of the loop only",
      .formula = "F9",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"tiles", "loop"},
      .citation = "rocMLIR#2165",
      .remedy = "which tiles are taken for wholly visible",
      .needs_tiles = true},
     some_tiles},
    {{.id = "mask-of-element",
      .statement = "the mask takes an element of a 16x16 fragment for another one: its lane is "
                   "forgotten, or misread",
      .formula = "F34",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"elements", "loop"},
      .citation = "",
      .remedy = "which row and column a fragment's element i belongs to: both depend on the lane",
      .needs_tiles = true},
     masks_of_elements},
    {{.id = "keys-cut",
      .statement = "the first or the last keys of the sequence are not counted",
      .formula = "F12b",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"keys", "at"},
      .citation = "",
      .remedy = "the number of keys in the bound of the last tile: <, not <= or - 1"},
     cut_keys},
    {{.id = "tile-twice",
      .statement = "the first or the last KV tile of the loop is counted twice",
      .formula = "F12b",
      .family = Family::kMask,
      .stage = Stage::kReduce,
      .parameters = {"tile", "loop"},
      .citation = "",
      .remedy = "the prologue and the epilogue of a pipelined loop, and where the loop goes on",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (num_kv_tiles(c.problem(), c.geometry()) < 2) return;
       under_both_loops(c, out, [](Deviation& d) { d.recurrence.tile_twice = 1; },
                        {named("tile", 1, "the first")});
       under_both_loops(c, out, [](Deviation& d) { d.recurrence.tile_twice = -1; },
                        {named("tile", -1, "the last")});
     }},
};

}  // namespace

std::span<const Entry> visit_entries() { return kVisit; }

}  // namespace attn_diag::reference
