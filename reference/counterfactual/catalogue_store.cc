// F5, F6, F26, F27, F33: where and whether o is written.
#include <algorithm>
#include <set>

#include "reference/counterfactual/catalogue_maps.h"
#include "reference/counterfactual/entry.h"
#include "reference/counterfactual/index_map.h"

namespace attn_diag::reference {
namespace {

ParameterValue left_as(Unwritten unwritten) {
  switch (unwritten) {
    case Unwritten::kZero:
      return named("others", 1, "zero");
    case Unwritten::kOfRowBefore:
      return named("others", 2, "those of the row before");
    case Unwritten::kUnknown:
      break;
  }
  return named("others", 0, "unknown");
}

constexpr Unwritten kBoth[] = {Unwritten::kZero, Unwritten::kUnknown};
constexpr Unwritten kAnyOfRows[] = {Unwritten::kZero, Unwritten::kUnknown, Unwritten::kOfRowBefore};

void columns(const PredictionInputs& c, Variants& out) {
  const std::int32_t dim = c.problem().head_dim_v;
  // A vector of up to 8 columns, or part of it, and whole ones.
  std::set<std::int32_t> tried{dim / 2};
  for (std::int32_t d = 8; d < dim; d += 8) tried.insert(d);
  for (std::int32_t missing = 1; missing <= 8; ++missing) tried.insert(dim - missing);
  for (const std::int32_t written : tried) {
    if (written <= 0 || written >= dim) continue;
    out.in_pairs(written % 16 == 0 || written == dim / 2 || written == dim - 8);
    for (const Unwritten unwritten : kBoth) {
      out.with(
          [&](Deviation& d) {
            d.store.columns = written;
            d.store.unwritten = unwritten;
          },
          {number("columns", written), named("from", 0, "the first"), left_as(unwritten)});
      out.with(
          [&](Deviation& d) {
            d.store.first_column = dim - written;
            d.store.unwritten = unwritten;
          },
          {number("columns", written), named("from", 1, "the last"), left_as(unwritten)});
    }
  }
}

void groups_of_rows(const PredictionInputs& c, Variants& out) {
  const std::int32_t block_m = c.geometry().tile.block_m, seqlen = c.problem().seqlen_q;
  out.in_pairs(false);
  const auto add = [&](std::int32_t owned, std::int32_t of) {
    for (const Unwritten unwritten : kAnyOfRows)
      out.with(
          [&](Deviation& d) {
            d.store.rows_owned = owned;
            d.store.owned_of = of;
            d.store.unwritten = unwritten;
          },
          {number("owned", owned), number("of", of), left_as(unwritten)});
  };
  for (const std::int32_t of : {2, 4, 8, 16, 32})
    for (const std::int32_t owned : std::set{of / 2, of - 1})
      if (of < block_m && owned < seqlen) add(owned, of);
  // Those of one warp; without the last ones it is above.
  for (const std::int32_t rows : std::set{1, 2, 4, 8, 16, block_m / 2, block_m / 4, block_m / 8})
    for (std::int32_t first = 0; rows > 0 && first < block_m - rows && first < seqlen;
         first += std::max(rows, block_m / 8))
      for (const Unwritten unwritten : kBoth)
        out.with(
            [&](Deviation& d) {
              d.store.unowned_first = first;
              d.store.unowned_rows = rows;
              d.store.unwritten = unwritten;
            },
            {number("not from", first), number("rows", rows), left_as(unwritten)});
  // The first of every few.
  for (const std::int32_t of : {4, 8, 16, 32})
    for (const Unwritten unwritten : kBoth)
      if (of < block_m && of <= seqlen)
        out.with(
            [&](Deviation& d) {
              d.store.unowned_rows = block_m;
              d.store.unwritten = unwritten;
              d.place.rows = {RowAxis::kRowOfTile, of, 0, 1};
            },
            {number("owned", of - 1), number("of", of), named("not from", 0, "0"),
             left_as(unwritten)});
}

void rows(const PredictionInputs& c, Variants& out) {
  const std::int32_t block_m = c.geometry().tile.block_m;
  for (const std::int32_t owned : rows_by_warps(block_m)) {
    if (owned <= 0 || owned >= std::min(block_m, c.problem().seqlen_q)) continue;
    for (const Unwritten unwritten : kAnyOfRows) {
      out.in_pairs(unwritten != Unwritten::kOfRowBefore);
      out.with(
          [&](Deviation& d) {
            d.store.rows_owned = owned;
            d.store.unwritten = unwritten;
          },
          {number("owned", owned), left_as(unwritten)});
    }
  }
  groups_of_rows(c, out);
}

void stored_rows(const PredictionInputs& c, Variants& out) {
  const std::int32_t block_m = c.geometry().tile.block_m;
  for (const auto& [map, name, permutes] :
       index_maps(block_m, std::min(block_m, c.problem().seqlen_q), 'r')) {
    out.in_pairs(swaps(map));
    out.with([&, to = map](Deviation& d) { d.store.row_map = to; },
             {index_value("row", map, name)});
  }
}

void stored_columns(const PredictionInputs& c, Variants& out) {
  const std::int32_t dim = c.problem().head_dim_v;
  for (const auto& [map, name, permutes] : index_maps(dim, dim, 'd')) {
    out.in_pairs(swaps(map));
    out.with([&, to = map](Deviation& d) { d.store.column_map = to; },
             {index_value("column", map, name)});
  }
}

void heads(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const auto add = [&](HeadMap map, bool batch, const char* what) {
    for (const Unwritten unwritten : kBoth) {
      out.with(
          [&](Deviation& d) {
            d.store.head = map;
            d.store.batch_zero = batch;
            d.store.unwritten = unwritten;
          },
          {named("to", static_cast<double>(map) * 2 + batch, what), left_as(unwritten)});
      // Every head is written.
      if (map == HeadMap::kNext || map == HeadMap::kPrevious || map == HeadMap::kReversed ||
          map == HeadMap::kNeighbour || map == HeadMap::kDealt)
        break;
    }
  };
  if (p.heads > 1) add(HeadMap::kZero, false, "head 0");
  if (p.heads > 1) add(HeadMap::kNext, false, "the next head");
  if (p.heads > 2) add(HeadMap::kPrevious, false, "the head before");
  if (p.heads > 2) add(HeadMap::kReversed, false, "heads in reverse");
  if (p.heads > 2 && p.heads % 2 == 0) add(HeadMap::kNeighbour, false, "head ^ 1");
  if (p.heads > p.kv_heads && p.kv_heads > 1) {
    add(HeadMap::kFirstOfGroup, false, "the first of its group");
    add(HeadMap::kDealt, false, "head % kv_heads * group_size + head / kv_heads");
  }
  if (p.heads > p.kv_heads) add(HeadMap::kModulo, false, "head % kv_heads");
  if (p.heads > p.kv_heads && p.kv_heads > 1)
    add(HeadMap::kDivideByKvHeads, false, "head / group_size");
  if (p.batch > 1) add(HeadMap::kRight, true, "batch 0");
  if (p.batch > 1 && p.heads > 1)
    out.with([](Deviation& d) { d.store.batch_in_heads = true; },
             {named("to", -1, "batch and head exchanged in the block's number")});
}

const Entry kStore[] = {
    {{.id = "output-fragment",
      .statement = "elements of o change places within the 16x16 fragments that are stored",
      .formula = "F26",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {"elements"},
      .citation = "flash-attention#2553",
      .remedy = "the table of lanes of the accumulator, and the layout of the store",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (c.geometry().tile.block_m < 16 || c.problem().seqlen_q < 9) return;
       if (c.problem().head_dim_v < 9) return;
       for (const NamedMap& map : kFragmentMaps) {
         if (!map.elements) continue;  // other entries cover whole rows and columns
         out.with([&](Deviation& d) { d.store.fragment = map.map; },
                  {named("elements", static_cast<double>(map.map), map.name)});
       }
     }},
    {{.id = "output-other-layout",
      .statement = "o is written with the strides of the other memory order",
      .formula = "F6",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "flash-attention#2666",
      .remedy = "the strides of o"},
     [](const PredictionInputs& c, Variants& out) {
       if (c.problem().heads > 1 && c.problem().seqlen_q > 1)
         out.with([](Deviation& d) { d.store.other_layout = true; });
     }},
    {{.id = "output-of-another",
      .statement = "o is written to another head or batch",
      .formula = "F27",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {"to", "others"},
      .citation = "triton#6242, cudnn-frontend#577",
      .remedy = "head and batch in the address of o"},
     heads},
    {{.id = "output-rows-shifted",
      .statement = "o is written some rows early or late",
      .formula = "F27",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {"rows"},
      .citation = "",
      .remedy = "the first row in the address of o"},
     [](const PredictionInputs& c, Variants& out) {
       for (const std::int32_t rows : {1, -1, 2, -2, 4, -4, 8, -8, 16, -16})
         if (std::abs(rows) < c.problem().seqlen_q)
           out.with([&](Deviation& d) { d.store.row_shift = rows; }, {number("rows", rows)});
     }},
    {{.id = "lse-of-another",
      .statement = "lse is written to the place of another row",
      .formula = "F27",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {"of"},
      .citation = "",
      .remedy = "the strides of lse: (batch, head, query)"},
     [](const PredictionInputs& c, Variants& out) {
       const auto add = [&](LsePlace place, const char* what) {
         out.with([&](Deviation& d) { d.store.lse = place; },
                  {named("of", static_cast<double>(place), what)});
       };
       if (c.problem().heads > 1 && c.problem().seqlen_q > 1)
         add(LsePlace::kOtherOrder, "the order batch, query, head");
       add(LsePlace::kNextRow, "the row after it");
       add(LsePlace::kRowBefore, "the row before it");
     }},
    {{.id = "output-columns",
      .statement = "only some columns of o are written, the first or the last ones",
      .formula = "F5",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {"columns", "from", "others"},
      .citation = "",
      .remedy = "the loop over head_dim_v: its begin, its bound and its step"},
     columns},
    {{.id = "output-rows-mixed",
      .statement = "rows of o change places within their query tile, or are stored for others",
      .formula = "F26",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {"row"},
      .citation = "",
      .remedy = "which row of the tile a lane holds, and where it stores it",
      .needs_tiles = true},
     stored_rows},
    {{.id = "output-columns-mixed",
      .statement = "columns of o change places, or are stored for others",
      .formula = "F26",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {"column"},
      .citation = "",
      .remedy = "which columns a lane holds, and the order in which it stores them"},
     stored_columns},
    {{.id = "last-query-tile-left-out",
      .statement =
          "the number of query tiles is rounded down: the last one that is not full is left out",
      .formula = "F33",
      .family = Family::kStore,
      .stage = Stage::kQk,
      .parameters = {"others"},
      .citation = "",
      .remedy = "ceil_div for the number of query tiles, and blocks that do several of them",
      .needs_tiles = true},
     [](const PredictionInputs& c, Variants& out) {
       if (c.problem().seqlen_q % c.geometry().tile.block_m == 0) return;
       for (const Unwritten unwritten : kBoth)
         out.with(
             [&](Deviation& d) {
               d.store.whole_tiles = true;
               d.store.unwritten = unwritten;
             },
             {left_as(unwritten)});
     }},
    {{.id = "rows-unowned",
      .statement = "some rows of every query tile, or the last of every few, belong to no warp",
      .formula = "F33",
      .family = Family::kStore,
      .stage = Stage::kQk,
      .parameters = {"owned", "of", "not from", "rows", "others"},
      .citation = "",
      .remedy = "rows per warp times warps against kBlockM",
      .needs_tiles = true},
     rows},
};

}  // namespace

std::span<const Entry> store_entries() { return kStore; }

}  // namespace attn_diag::reference
