// F6, F27, F28: from which addresses q, k and v are read.
#include <string>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_operands.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

const char* text(HeadMap map) {
  switch (map) {
    case HeadMap::kZero:
      return "head 0";
    case HeadMap::kNext:
      return "the next head";
    case HeadMap::kModulo:
      return "head % kv_heads";
    case HeadMap::kDivideByKvHeads:
      return "head / kv_heads";
    case HeadMap::kQueryHead:
      return "head";
    case HeadMap::kGroupTooSmall:
      return "head / (group_size - 1)";
    case HeadMap::kPrevious:
      return "the head before";
    case HeadMap::kReversed:
      return "heads in reverse";
    case HeadMap::kRight:
      break;
  }
  return "head / group_size";
}

// Whether the map reads another head for some query head.
bool differs(const Problem& p, HeadMap map) {
  const std::int32_t group = group_size(p);
  for (std::int32_t head = 0; head < p.heads; ++head) {
    const std::int32_t right = head / group;
    const std::int32_t read = map == HeadMap::kZero        ? 0
                              : map == HeadMap::kNext      ? (right + 1) % p.kv_heads
                              : map == HeadMap::kPrevious  ? (right + p.kv_heads - 1) % p.kv_heads
                              : map == HeadMap::kReversed  ? p.kv_heads - 1 - right
                              : map == HeadMap::kModulo    ? head % p.kv_heads
                              : map == HeadMap::kQueryHead ? head
                              : map == HeadMap::kGroupTooSmall ? head / std::max(group - 1, 1)
                                                               : head / p.kv_heads;
    if (read != right) return true;
  }
  return false;
}

void other_shapes(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  const auto add = [&](StrideSet strides, const char* shape, bool q, bool k, bool v) {
    FetchChange fetch;
    fetch.strides = strides;
    const std::vector<ParameterValue> parameters = {
        named("shape", static_cast<double>(strides), shape)};
    if (q) change(kQ, fetch, out, parameters);
    if (k) change(kK, fetch, out, parameters);
    if (v) change(kV, fetch, out, parameters);
    if (k && v) change(kKv, fetch, out, parameters);
  };
  const bool q_heads = p.heads > 1, kv_heads = p.kv_heads > 1;
  const bool heads_first = p.layout == Layout::kBHSD;
  if (heads_first && p.seqlen_q != p.seqlen_k)
    add(StrideSet::kHeadOfOtherSeqlen, "the other seqlen", q_heads, kv_heads, kv_heads);
  const TileShape tile = c.geometry().tile;
  const bool whole_k = p.seqlen_k % tile.block_n == 0;
  if (heads_first)
    add(StrideSet::kHeadOfWholeTiles, "seqlen in whole tiles",
        q_heads && p.seqlen_q % tile.block_m != 0, kv_heads && !whole_k, kv_heads && !whole_k);
  if (p.head_dim != p.head_dim_v)
    add(StrideSet::kRowOfOtherDim, "the other head_dim", true, true, true);
}

void gqa_maps(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  for (const HeadMap map :
       {HeadMap::kModulo, HeadMap::kZero, HeadMap::kDivideByKvHeads, HeadMap::kNext,
        HeadMap::kQueryHead, HeadMap::kGroupTooSmall, HeadMap::kPrevious, HeadMap::kReversed}) {
    // Of two heads, these are the next one.
    if (p.kv_heads < 3 && (map == HeadMap::kPrevious || map == HeadMap::kReversed)) continue;
    // head / (group_size - 1) is head for groups of two, and no other map for groups of one.
    if (map == HeadMap::kGroupTooSmall && group_size(p) < 3) continue;
    // Without groups, these are the right one or the same as others.
    if (map == HeadMap::kDivideByKvHeads && group_size(p) == 1) continue;
    if (!differs(p, map)) continue;
    FetchChange fetch;
    fetch.head = map;
    for (const Operands& which : {kKv, kK, kV})
      change(which, fetch, out, {named("map", static_cast<double>(map), text(map))});
  }
}

struct NamedPages {
  PageMap map;
  const char* name;
  bool permutes;  // every page of a sequence is read once
};
constexpr NamedPages kPageMaps[] = {
    {PageMap::kNext, "the next, cyclic", true},
    {PageMap::kPrevious, "the one before, cyclic", true},
    {PageMap::kReversed, "in reverse", true},
    {PageMap::kPairsSwapped, "page ^ 1", true},
    {PageMap::kFirst, "the first", false},
    {PageMap::kNextOfAll, "the next, of all sequences", false},
    {PageMap::kAtMostLast, "the next, but for the last", false},
    {PageMap::kAtLeastFirst, "the one before, but for the first", false},
    {PageMap::kShortTable, "as if sequences had a page less", false},
    {PageMap::kLongTable, "as if sequences had a page more", false},
};

void page_maps(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  FetchChange fetch;
  if (p.batch > 1) {
    fetch.pages = PageMap::kNextSequence;
    fetch.page_rows = p.seqlen_k;
    for (const Operands& which : {kKv, kK, kV})
      change(which, fetch, out, {named("pages", 0, "of the next sequence")});
    fetch.page_rows = p.seqlen_q;
    change(kQ, fetch, out, {named("pages", 0, "of the next sequence")});
  }
  for (const std::int32_t rows : {16, 32, 64, 128}) {
    if (rows >= p.seqlen_k) break;
    fetch.page_rows = rows;
    const bool two = ceil_div(p.seqlen_k, rows) == 2;
    for (const auto& [map, name, permutes] : kPageMaps) {
      fetch.pages = map;
      const bool by_table = map == PageMap::kShortTable || map == PageMap::kLongTable;
      if (by_table && p.batch == 1) continue;
      // With pages of a tile, it is the tile before, or after.
      if (rows == c.geometry().tile.block_n &&
          (map == PageMap::kAtLeastFirst || map == PageMap::kAtMostLast))
        continue;
      // Of two pages, these are all the next.
      if (two && permutes && map != PageMap::kNext) continue;
      const std::vector<ParameterValue> parameters = {
          named("pages", static_cast<double>(map), name), number("rows", rows)};
      // Without a mask the order of keys is nothing to the output.
      if (!permutes || masked(c) || p.seqlen_k % rows != 0) change(kKv, fetch, out, parameters);
      if (map != PageMap::kNext && map != PageMap::kReversed) continue;
      for (const Operands& which : {kK, kV}) change(which, fetch, out, parameters);
    }
  }
}

const Entry kEntries[] = {
    {{.id = "other-layout",
      .statement = "an operand is read with the strides of the other memory order",
      .formula = "F6",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand"},
      .citation = "flash-attention#2666",
      .remedy = "strides from the tensor, not from an assumed layout; a missing contiguous()"},
     [](const Case& c, Variants& out) {
       const Problem& p = c.problem();
       FetchChange fetch;
       fetch.strides = StrideSet::kOtherLayout;
       if (p.heads > 1 && p.seqlen_q > 1) change(kQ, fetch, out);
       if (p.kv_heads > 1 && p.seqlen_k > 1)
         for (const Operands& which : {kK, kV, kKv}) change(which, fetch, out);
       if (p.heads > 1 && p.kv_heads > 1) change(kQkv, fetch, out);
     }},
    {{.id = "head-stride",
      .statement = "the distance between heads or rows is that of another shape",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "shape"},
      .citation = "cudnn-frontend#577",
      .remedy = "seqlen_q and seqlen_k, head_dim and head_dim_v in the strides of q, k and v",
      .needs_tiles = true},
     other_shapes},
    {{.id = "batch-stride",
      .statement = "the distance between batches is taken from the other number of heads",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand"},
      .citation = "cudnn-frontend#577",
      .remedy = "heads and kv_heads in the strides of q, k and v"},
     [](const Case& c, Variants& out) {
       const Problem& p = c.problem();
       if (p.batch == 1 || p.heads == p.kv_heads) return;
       FetchChange fetch;
       fetch.strides = StrideSet::kBatchOfOtherHeads;
       for (const Operands& which : {kQ, kK, kV, kKv}) change(which, fetch, out);
     }},
    {{.id = "batch-zero",
      .statement = "an operand is read from batch 0 for every batch",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand"},
      .citation = "triton#6242",
      .remedy = "the batch in the address of q, k and v, and which grid axis it is"},
     [](const Case& c, Variants& out) {
       if (c.problem().batch == 1) return;
       FetchChange fetch;
       fetch.batch_zero = true;
       for (const Operands& which : {kQ, kK, kV, kKv, kQkv}) change(which, fetch, out);
     }},
    {{.id = "batch-and-head",
      .statement = "batch and head are taken out of the number of a block in the wrong order",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand"},
      .citation = "triton#6242",
      .remedy = "which of block / heads and block % heads is the batch: the same for all operands"},
     [](const Case& c, Variants& out) {
       if (c.problem().batch == 1 || c.problem().heads == 1) return;
       FetchChange fetch;
       fetch.batch_in_heads = true;
       for (const Operands& which : {kQ, kK, kV, kKv, kQkv}) change(which, fetch, out);
     }},
    {{.id = "query-head",
      .statement = "q is read from another head",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "map"},
      .citation = "triton#6242",
      .remedy = "the head in the address of q, and which grid axis it is"},
     [](const Case& c, Variants& out) {
       if (c.problem().heads == 1) return;
       FetchChange fetch;
       for (const HeadMap map :
            {HeadMap::kZero, HeadMap::kNext, HeadMap::kPrevious, HeadMap::kReversed}) {
         if (c.problem().heads < 3 && map != HeadMap::kZero && map != HeadMap::kNext) continue;
         fetch.head = map;
         change(kQ, fetch, out, {named("map", static_cast<double>(map), text(map))});
       }
     }},
    {{.id = "gqa-map",
      .statement = "k or v is read from another head than head / group_size",
      .formula = "F28",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "map"},
      .citation = "jax-js#180, HipKittens#22",
      .remedy = "the kv head of a query head: head / (heads / kv_heads)"},
     gqa_maps},
    {{.id = "rows-shifted",
      .statement = "an operand's rows are read some rows early or late",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "rows"},
      .citation = "",
      .remedy = "the first row in the address, and counts from 1 where they begin at 0"},
     [](const Case& c, Variants& out) {
       for (const Operands& which : {kQ, kK, kV, kKv}) {
         const std::int32_t seqlen = which.q ? c.problem().seqlen_q : c.problem().seqlen_k;
         for (const std::int32_t rows : {1, -1, 8, -8}) {
           if (std::abs(rows) >= seqlen) continue;
           FetchChange fetch;
           fetch.row_shift = rows;
           change(which, fetch, out, {number("rows", rows)});
         }
       }
     }},
    {{.id = "columns-shifted",
      .statement = "an operand's columns are read some elements early or late",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "columns"},
      .citation = "",
      .remedy = "the offset of the base address, and vector loads that begin within a vector"},
     [](const Case&, Variants& out) {
       for (const Operands& which : {kQ, kK, kV})
         for (const std::int32_t columns : {1, -1, 2, -2, 4, -4, 8, -8}) {
           FetchChange fetch;
           fetch.column_shift = columns;
           change(which, fetch, out, {number("columns", columns)});
         }
     }},
    {{.id = "page-map",
      .statement = "pages of k or v are read in another order, or of another sequence, or q is",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "pages", "rows"},
      .citation = "",
      .remedy = "the index into the page table: page size, row of the sequence, off by one"},
     page_maps},
    {{.id = "inputs-narrow",
      .statement = "inputs are rounded to a narrower type than they have",
      .formula = "F16",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "type"},
      .citation = "triton#1671",
      .remedy = "the types of the products' operands: tf32 must be asked for, or refused"},
     [](const Case& c, Variants& out) {
       const auto add = [&](Narrow type, const char* name) {
         FetchChange fetch;
         fetch.type = type;
         for (const Operands& which : {kQkv, kQ, kK, kV, kKv})
           change(which, fetch, out, {named("type", static_cast<double>(type), name)});
       };
       const DType dtype = c.problem().dtype;
       if (dtype == DType::kFp32) add(Narrow::kTf32, "tf32"), add(Narrow::kFp16, "fp16");
       if (dtype == DType::kFp32 || dtype == DType::kFp16) add(Narrow::kBf16, "bf16");
       add(Narrow::kFp8E4m3, "fp8 e4m3");
     }},
};

}  // namespace

std::span<const Entry> fetch_entries() { return kEntries; }

}  // namespace attn_diag::reference
