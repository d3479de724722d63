// F7 to F10, F12: which keys count.
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_rows.h"
#include "reference/counterfactual/entry.h"
#include "reference/mask.h"

namespace attn_diag::reference {
namespace {

template <class Test>
bool any_row(const PredictionInputs& c, Test test) {
  for (std::int32_t query = 0; query < c.problem().seqlen_q; ++query)
    if (test(visible_keys(c.problem(), query))) return true;
  return false;
}

void loops(const PredictionInputs& c, Variants& out, std::initializer_list<TileLoop> kinds) {
  for (const TileLoop loop : kinds)
    out.with([&](Deviation& d) { d.mask.loop = loop; },
             kinds.size() > 1 ? std::vector{loop_value(loop)} : std::vector<ParameterValue>{});
  (void)c;
}

void padding(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const std::int32_t block_n = c.geometry().tile.block_n;
  const std::int32_t end = num_kv_tiles(p, c.geometry()) * block_n;
  if (p.seqlen_k == end) return;
  constexpr std::pair<Padding, const char*> kKinds[] = {
      {Padding::kZeros, "zeros"},
      {Padding::kStale, "keys of the tile before"},
      {Padding::kLast, "the last key"},
      {Padding::kFirst, "the first keys"},
      {Padding::kNext, "what is there"}};
  const auto add = [&](std::int32_t reach, std::int32_t keys,
                       const std::vector<ParameterValue>& up_to) {
    for (const auto& [kind, what] : kKinds) {
      if (kind == Padding::kStale && p.seqlen_k <= block_n) continue;
      std::vector<ParameterValue> values = {named("padding", static_cast<double>(kind), what)};
      values.insert(values.end(), up_to.begin(), up_to.end());
      out.with(
          [&, padding_kind = kind](Deviation& d) {
            d.mask.padding = padding_kind;
            d.mask.reach = reach;
            d.mask.padded_keys = keys;
          },
          std::move(values));
    }
  };
  add(-1, 0, {});
  std::set<std::int32_t> some{1, 2};
  for (const std::int32_t multiple : {2, 4, 8, 16, 32})
    some.insert(ceil_div(p.seqlen_k, multiple) * multiple - p.seqlen_k);
  for (const std::int32_t keys : some)
    if (keys > 0 && p.seqlen_k + keys < end) add(-1, keys, {number("keys", keys)});
  if (masked(c)) return;
  // No mask as a band so wide that it reaches every key there is, and not all that is padded.
  const std::pair<std::int32_t, const char*> reaches[] = {{p.seqlen_k - 1, "query + seqlen_k - 1"},
                                                          {p.seqlen_k, "query + seqlen_k"}};
  for (const auto& [reach, what] : reaches)
    if (reach + 1 < end) add(reach, 0, {named("up to key", reach, what)});
}

const Entry kMask[] = {
    {{.id = "mask-missing",
      .statement = "every key counts: the mask is not applied",
      .formula = "F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"loop"},
      .citation = "transformers#39408",
      .remedy = "whether this code path is given the mask",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (masked(c))
         under_both_loops(c, out, [](Deviation& d) { d.mask.rule = MaskRule::kMissing; });
     }},
    {{.id = "mask-index-in-tile",
      .statement =
          "the mask compares indices within the tile, or of packed rows, for those within the "
          "sequence",
      .formula = "F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"index", "loop"},
      .citation = "",
      .remedy = "the tile's first row and first key in the comparison; the query of a packed row",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (!masked(c)) return;
       const bool queries = c.problem().seqlen_q > c.geometry().tile.block_m;
       const bool keys = c.problem().seqlen_k > c.geometry().tile.block_n;
       const auto add = [&](MaskRule rule, const char* what) {
         under_both_loops(c, out, [&](Deviation& d) { d.mask.rule = rule; },
                          {named("index", static_cast<double>(rule), what)});
       };
       if (queries) add(MaskRule::kQueryInTile, "of the query");
       if (keys) add(MaskRule::kKeyInTile, "of the key");
       if (queries && keys) add(MaskRule::kBothInTile, "of both");
       if (c.problem().heads > c.problem().kv_heads)
         add(MaskRule::kPackedQuery, "of the packed query: query * group_size + head in the group");
     }},
    {{.id = "mask-alignment",
      .statement = "the mask is lined up with the other end of the sequences",
      .formula = "F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"loop"},
      .citation = "flash-attention#282",
      .remedy = "the offset seqlen_k - seqlen_q: bottom_right has it, top_left has not",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (!masked(c) || c.problem().seqlen_q == c.problem().seqlen_k) return;
       under_both_loops(c, out, [](Deviation& d) { d.mask.rule = MaskRule::kOtherAlignment; });
     }},
    {{.id = "mask-of-row",
      .statement = "the mask of a row is that of another row of the query tile",
      .formula = "F34",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"row", "loop"},
      .citation = "",
      .remedy = "which row a fragment's element i belongs to: it depends on the lane",
      .needs_tiles = true},
     masks_of_rows},
    {{.id = "mask-inverted",
      .statement = "the keys to be masked count, and the others do not",
      .formula = "F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"last", "loop"},
      .citation = "",
      .remedy = "whether true means keep or hide",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (!masked(c)) return;
       under_both_loops(c, out, [](Deviation& d) { d.mask.rule = MaskRule::kInverted; },
                        {named("last", 0, "hidden")});
       under_both_loops(c, out,
                        [](Deviation& d) {
                          d.mask.rule = MaskRule::kInverted;
                          d.mask.last_shift = -1;
                        },
                        {named("last", 1, "seen too")});
     }},
    {{.id = "masked-score-zero",
      .statement = "masked scores become 0 instead of -inf",
      .formula = "F7",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"loop"},
      .citation = "",
      .remedy =
          "the mask multiplies scores, or numeric_limits<float>::min() is meant for lowest()"},
     [](const PredictionInputs& c, Variants& out) {
       if (masked(c)) under_both_loops(c, out, [](Deviation& d) { d.mask.masked_score = 0; });
     }},
    {{.id = "mask-on-last-tile-only",
      .statement = "the mask is applied on the last tile of the loop only",
      .formula = "F9",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"loop"},
      .citation = "rocMLIR#2165",
      .remedy = "which tiles are taken for wholly visible",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (masked(c) && longest_split(c) > 1)
         under_both_loops(c, out,
                          [](Deviation& d) { d.mask.masked_tiles = MaskedTiles::kLastVisited; });
     }},
    {{.id = "mask-missing-on-diagonal-tile",
      .statement = "tiles that only the last row of the query tile sees whole are not masked",
      .formula = "F9",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"loop"},
      .citation = "rocMLIR#2165",
      .remedy = "the test for a wholly visible tile: of the first row, not the last",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (masked(c))
         under_both_loops(c, out,
                          [](Deviation& d) { d.mask.masked_tiles = MaskedTiles::kAboveDiagonal; });
     }},
    {{.id = "causal-bound-too-small",
      .statement =
          "the loop over KV tiles ends some keys early, where the query tile's first row ends, or "
          "at its number",
      .formula = "F8",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"loop", "keys less"},
      .citation = "jax#17314, rocMLIR#2165",
      .remedy = "the loop's end: ceil((last query + 1) / kBlockN)",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (!masked(c)) return;
       const Problem& p = c.problem();
       const TileShape tile = c.geometry().tile;
       loops(c, out, {TileLoop::kFirstRow, TileLoop::kSquare});
       const std::int32_t offset = p.seqlen_k - p.seqlen_q;
       // Larger bounds than the right one show nothing that the mask does not hide.
       for (const std::int32_t by : std::set{1, offset, offset + 1, tile.block_m, tile.block_n,
                                             2 * tile.block_n, tile.block_n / 2})
         for (const TileLoop loop : {TileLoop::kBounded, TileLoop::kFirstRow})
           if (by > 0)
             out.with(
                 [&](Deviation& d) {
                   d.mask.loop = loop;
                   d.mask.end_shift = -by;
                 },
                 {loop_value(loop), number("keys less", by)});
     }},
    {{.id = "last-tile-left-out",
      .statement = "the last KV tile of the loop is left out",
      .formula = "F8",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"of", "loop"},
      .citation = "jax#17314",
      .remedy = "the loop's end: < or <=, and the prologue or epilogue of a pipelined loop",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (num_kv_tiles(c.problem(), c.geometry()) == 1) return;
       if (!merges(c)) return loops(c, out, {TileLoop::kOneLess});
       out.with([](Deviation& d) { d.mask.loop = TileLoop::kOneLess; },
                {named("of", 0, "the row")});
       under_both_loops(c, out, [](Deviation& d) { d.mask.tile_left_out = -1; },
                        {named("of", 1, "every split")});
     }},
    {{.id = "first-tile-left-out",
      .statement = "the first KV tile of the loop is left out",
      .formula = "F8",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"loop"},
      .citation = "",
      .remedy = "the loop's beginning, and the prologue of a pipelined loop",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (num_kv_tiles(c.problem(), c.geometry()) == 1) return;
       const auto set = [](Deviation& d) { d.mask.tile_left_out = 1; };
       // Other loops begin with the first key.
       if (c.problem().mask.kind == MaskKind::kWindow)
         under_both_loops(c, out, set);
       else
         out.with(set);
     }},
    {{.id = "keys-unowned",
      .statement =
          "the last or first keys of every KV tile are not counted: no warp or lane has them",
      .formula = "F33",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"counted", "from"},
      .citation = "",
      .remedy = "keys per lane times lanes against kBlockN, and the loop within a tile",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       const std::int32_t block_n = c.geometry().tile.block_n;
       for (const std::int32_t keys : rows_by_warps(block_n))
         if (keys > 0 && keys < std::min(block_n, c.problem().seqlen_k))
           out.with([&](Deviation& d) { d.mask.tile_keys = keys; }, {number("counted", keys)});
       for (const std::int32_t first : std::set{1, 2, 4, 8, 16, block_n / 2})
         if (first > 0 && first < std::min(block_n, c.problem().seqlen_k))
           out.with([&](Deviation& d) { d.mask.tile_first = first; }, {number("from", first)});
     }},
    {{.id = "window-begins-late",
      .statement =
          "the loop over KV tiles begins some keys late, or with the query tile's last row",
      .formula = "F8",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {"keys"},
      .citation = "",
      .remedy = "the loop's beginning: floor(first key of the first row / kBlockN)",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (c.problem().mask.kind != MaskKind::kWindow) return;
       out.with([](Deviation& d) { d.mask.loop = TileLoop::kLastRow; },
                {named("keys", 0, "those between the first and the last row's")});
       const TileShape tile = c.geometry().tile;
       const std::int32_t offset = c.problem().seqlen_k - c.problem().seqlen_q;
       for (const std::int32_t by :
            std::set{1, offset, tile.block_m, tile.block_n, tile.block_n - 1})
         if (by > 0)
           out.with(
               [&](Deviation& d) {
                 d.mask.loop = TileLoop::kBounded;
                 d.mask.begin_shift = by;
               },
               {number("keys", by)});
     }},
    {{.id = "tail-tile-dropped",
      .statement =
          "the number of KV tiles is rounded down: the last one that is not full is dropped",
      .formula = "F12b",
      .family = Family::kMask,
      .stage = Stage::kQk,
      .parameters = {},
      .citation = "",
      .remedy = "ceil_div for the number of tiles",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (masked(c) || c.problem().seqlen_k % c.geometry().tile.block_n != 0)
         loops(c, out, {TileLoop::kRoundedDown});
     }},
    {{.id = "padding-counted",
      .statement = "keys past the end of the sequence are counted",
      .formula = "F12",
      .family = Family::kMask,
      .stage = Stage::kSoftmax,
      .parameters = {"padding", "keys", "up to key"},
      .citation = "flashinfer#5090, jax#27224",
      .remedy = "the mask of the last tile: key < seqlen_k, before the max and the sum",
      .needs_tiles = true},
     padding},
    {{.id = "boundary-key-twice",
      .statement = "the first key of every tile, or of every split, but the first counts in the "
                   "one before it too",
      .formula = "F12b",
      .family = Family::kMask,
      .stage = Stage::kSoftmax,
      .parameters = {"of"},
      .citation = "",
      .remedy = "the loop within a tile: j < kBlockN, not <=; the end of a split",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (num_kv_tiles(c.problem(), c.geometry()) > 1)
         out.with([](Deviation& d) { d.mask.boundary_key_twice = true; },
                  {named("of", 0, "every tile")});
       // Where splits have one tile each, it is the same.
       if (used_splits(c) > 1 && longest_split(c) > 1)
         out.with([](Deviation& d) { d.mask.boundary_key_twice = d.mask.boundary_of_split = true; },
                  {named("of", 1, "every split")});
     }},
    {{.id = "empty-row-mean",
      .statement = "a row that sees no key yields the mean of v: its masked scores are all alike",
      .formula = "F10",
      .family = Family::kMask,
      .stage = Stage::kReduce,
      .parameters = {"over", "loop"},
      .citation = "iree#24175",
      .remedy = "-inf for masked scores, and a guard for m = -inf",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (!any_row(c, [](KeyRange keys) { return keys.empty(); })) return;
       under_both_loops(c, out, [](Deviation& d) { d.softmax.empty = EmptyRow::kMean; },
                        {named("over", 0, "keys")});
       if (c.problem().seqlen_k % c.geometry().tile.block_n != 0)
         under_both_loops(c, out, [](Deviation& d) { d.softmax.empty = EmptyRow::kMeanPadded; },
                          {named("over", 1, "keys and padding")});
     }},
    {{.id = "empty-row-nan",
      .statement = "where a row sees no key of the tiles so far, exp(-inf - -inf) is NaN",
      .formula = "F10",
      .family = Family::kMask,
      .stage = Stage::kSoftmax,
      .parameters = {"loop"},
      .citation = "burn#4697",
      .remedy = "the origin of exponents: 0 where m is -inf",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (!any_row(c, [&](KeyRange keys) {
             return keys.empty() || keys.begin >= c.geometry().tile.block_n ||
                    c.geometry().frame == Frame::kTile || c.geometry().num_splits > 1;
           }))
         return;
       if (masked(c))
         under_both_loops(c, out, [](Deviation& d) { d.softmax.empty = EmptyRow::kNan; });
     }},
    {{.id = "empty-row-divided",
      .statement = "a row that sees no key is 0 / 0; m and lse are -inf",
      .formula = "F10",
      .family = Family::kMask,
      .stage = Stage::kReduce,
      .parameters = {"keys of"},
      .citation = "burn#4697",
      .remedy = "the division by l: 0 where l is 0",
      .needs_splits = true},
     [](const PredictionInputs& c, Variants& out) {
       if (any_row(c, [](KeyRange keys) { return keys.empty(); }))
         out.with([](Deviation& d) { d.softmax.empty = EmptyRow::kNanOfRow; },
                  {named("keys of", 0, "the row")});
       if (any_row(c, [](KeyRange keys) { return keys.empty(); }))
         for (const auto& [lse, what] : {std::pair{LseForm::kEmptyNan, "the row, lse is NaN too"},
                                         {LseForm::kEmptyInfinite, "the row, lse is +inf"},
                                         {LseForm::kEmptyZero, "the row, lse is 0"}})
           out.with(
               [&, form = lse](Deviation& d) {
                 d.softmax.empty = EmptyRow::kNanOfRow;
                 d.finish.lse = form;
               },
               {named("keys of", 2 + static_cast<double>(lse), what)});
       if (masked(c) && c.geometry().num_splits > 1)
         out.with([](Deviation& d) { d.softmax.empty = EmptyRow::kNanOfSplit; },
                  {named("keys of", 1, "a split")});
     }},
};

}  // namespace

std::span<const Entry> mask_entries() { return kMask; }

}  // namespace attn_diag::reference
