// F5, F6, F26, F27, F33: where and whether o is written.
#include <algorithm>
#include <set>

#include "reference/counterfactual/catalogue_maps.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

ParameterValue left_as(Unwritten unwritten) {
  return unwritten == Unwritten::kZero ? named("others", 1, "zero") : named("others", 0, "unknown");
}

constexpr Unwritten kBoth[] = {Unwritten::kZero, Unwritten::kUnknown};

void columns(const Case& c, Variants& out) {
  const std::int32_t dim = c.problem().head_dim_v;
  std::set<std::int32_t> tried{dim / 2, dim - 8};
  for (std::int32_t d = 16; d < dim; d += 16) tried.insert(d);
  for (const std::int32_t written : tried) {
    if (written <= 0 || written >= dim) continue;
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

void rows(const Case& c, Variants& out) {
  const std::int32_t block_m = c.geometry().tile.block_m;
  for (const std::int32_t owned : rows_by_warps(block_m)) {
    if (owned <= 0 || owned >= std::min(block_m, c.problem().seqlen_q)) continue;
    for (const Unwritten unwritten : kBoth)
      out.with(
          [&](Deviation& d) {
            d.store.rows_owned = owned;
            d.store.unwritten = unwritten;
          },
          {number("owned", owned), left_as(unwritten)});
  }
}

void heads(const Case& c, Variants& out) {
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
      if (map == HeadMap::kNext) break;  // every head is written
    }
  };
  if (p.heads > 1) add(HeadMap::kZero, false, "head 0");
  if (p.heads > 1) add(HeadMap::kNext, false, "the next head");
  if (p.heads > p.kv_heads) add(HeadMap::kModulo, false, "head % kv_heads");
  if (p.heads > p.kv_heads && p.kv_heads > 1)
    add(HeadMap::kDivideByKvHeads, false, "head / group_size");
  if (p.batch > 1) add(HeadMap::kRight, true, "batch 0");
  if (p.batch > 1 && p.heads > 1)
    out.with([](Deviation& d) { d.store.batch_in_heads = true; },
             {named("to", -1, "batch and head exchanged in the block's number")});
}

const Entry kEntries[] = {
    {{.id = "output-fragment",
      .statement = "elements of o change places within the 16x16 fragments that are stored",
      .formula = "F26",
      .family = Family::kStore,
      .stage = Stage::kReduce,
      .parameters = {"elements"},
      .citation = "flash-attention#2553",
      .remedy = "the table of lanes of the accumulator, and the layout of the store",
      .needs_tiles = true},
     [](const Case& c, Variants& out) {
       for (const NamedMap& map : kFragmentMaps) {
         if (map.rows && (c.geometry().tile.block_m < 16 || c.problem().seqlen_q < 9)) continue;
         if (c.problem().head_dim_v < (map.map == FragmentMap::kPairsSwapped ? 2 : 9)) continue;
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
     [](const Case& c, Variants& out) {
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
     [](const Case& c, Variants& out) {
       for (const std::int32_t rows : {1, -1, 8, -8})
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
     [](const Case& c, Variants& out) {
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
    {{.id = "rows-unowned",
      .statement = "the last rows of every query tile belong to no warp",
      .formula = "F33",
      .family = Family::kStore,
      .stage = Stage::kQk,
      .parameters = {"owned", "others"},
      .citation = "",
      .remedy = "rows per warp times warps against kBlockM",
      .needs_tiles = true},
     rows},
};

}  // namespace

std::span<const Entry> store_entries() { return kEntries; }

}  // namespace attn_diag::reference
