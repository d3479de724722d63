// F7 to F9, F12b: ends of the mask, finite masked scores, masks by runs of keys, tiles that are not masked or visited twice,
// keys cut off.
#include <set>
#include <utility>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/entry.h"
#include "reference/counterfactual/unite.h"
#include "reference/mask.h"

namespace attn_diag::reference {
namespace {

// Ends of what a row sees, some keys off or another end.
void shifts(const Case& c, Variants& out) {
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

// What is free is how far below 0, or below themselves, masked scores are.
void finite_masks(const Case& c, Variants& out) {
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
      // Further below, rows show it that see no other key.
      for (const double value : {1e3, 1e4, 65504.0, 1e5, 1e6}) {
        if (!has_empty) break;
        score = -value;
        out.add(d, {of, loop_value(loop), number("below", value)});
      }
    }
}

void runs(const Case& c, Variants& out) {
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

void some_tiles(const Case& c, Variants& out) {
  if (!masked(c) || num_kv_tiles(c.problem(), c.geometry()) < 2) return;
  const auto add = [&](MaskedTiles tiles, const char* what) {
    under_both_loops(c, out, [&](Deviation& d) { d.mask.masked_tiles = tiles; },
                     {named("tiles", static_cast<double>(tiles), what)});
  };
  add(MaskedTiles::kNotLastVisited, "all but the last");
  add(MaskedTiles::kFirstVisited, "the first");
  add(MaskedTiles::kNotFirstVisited, "all but the first");
  add(MaskedTiles::kSameNumber, "that with the query tile's number");
  if (merges(c)) add(MaskedTiles::kLastOfRow, "the last of all splits");
}

void cut_keys(const Case& c, Variants& out) {
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

const Entry kEntries[] = {
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
     [](const Case& c, Variants& out) {
       if (num_kv_tiles(c.problem(), c.geometry()) < 2) return;
       under_both_loops(c, out, [](Deviation& d) { d.recurrence.tile_twice = 1; },
                        {named("tile", 1, "the first")});
       under_both_loops(c, out, [](Deviation& d) { d.recurrence.tile_twice = -1; },
                        {named("tile", -1, "the last")});
     }},
};

}  // namespace

std::span<const Entry> visit_entries() { return kEntries; }

}  // namespace attn_diag::reference
