// F6, F27, F28: from which addresses q, k and v are read.
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_operands.h"
#include "reference/counterfactual/entry.h"
#include "reference/counterfactual/fetch.h"

namespace attn_diag::reference {
namespace {

struct NamedHeads {
  HeadMap map;
  const char* name;
};
constexpr NamedHeads kKvHeads[] = {
    {HeadMap::kModulo, "head % kv_heads"},
    {HeadMap::kZero, "head 0"},
    {HeadMap::kDivideByKvHeads, "head / kv_heads"},
    {HeadMap::kNext, "the next head"},
    {HeadMap::kQueryHead, "head"},
    {HeadMap::kGroupTooSmall, "head / (group_size - 1)"},
    {HeadMap::kGroupTooLarge, "head / (group_size + 1)"},
    {HeadMap::kPrevious, "the head before"},
    {HeadMap::kReversed, "heads in reverse"},
    {HeadMap::kLast, "the last head"},
    {HeadMap::kNeighbour, "its head ^ 1"},
    {HeadMap::kRoundedUp, "ceil(head / group_size)"},
    {HeadMap::kInGroup, "head % group_size"},
};
constexpr NamedHeads kQueryHeads[] = {
    {HeadMap::kZero, "head 0"},
    {HeadMap::kNext, "the next head"},
    {HeadMap::kPrevious, "the head before"},
    {HeadMap::kReversed, "heads in reverse"},
    {HeadMap::kLast, "the last head"},
    {HeadMap::kNeighbour, "head ^ 1"},
    {HeadMap::kFirstOfGroup, "the first of its group"},
    {HeadMap::kLastOfGroup, "the last of its group"},
    {HeadMap::kOfGroup, "head / group_size"},
    {HeadMap::kInGroup, "head % group_size"},
    {HeadMap::kModulo, "head % kv_heads"},
    {HeadMap::kDealt, "head % kv_heads * group_size + head / kv_heads"},
};

// The maps that, on the heads of this problem, differ from the right one and from one another.
std::vector<NamedHeads> distinct(const Problem& p, std::span<const NamedHeads> maps,
                                 bool is_query) {
  std::set<std::vector<std::int32_t>> tables;
  std::vector<NamedHeads> kept;
  const auto is_new = [&](HeadMap map) {
    std::vector<std::int32_t> table;
    for (std::int32_t head = 0; head < p.heads; ++head)
      table.push_back(head_read(p, map, head, is_query));
    return tables.insert(std::move(table)).second;
  };
  is_new(HeadMap::kRight);
  for (const NamedHeads& named_map : maps)
    if (is_new(named_map.map)) kept.push_back(named_map);
  return kept;
}

void other_shapes(const PredictionInputs& c, Variants& out) {
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

void gqa_maps(const PredictionInputs& c, Variants& out) {
  FetchChange fetch;
  for (const auto& [map, name] : distinct(c.problem(), kKvHeads, false)) {
    fetch.head = map;
    for (const Operands& which : {kKv, kK, kV})
      change(which, fetch, out, {named("map", static_cast<double>(map), name)});
  }
}

void query_heads(const PredictionInputs& c, Variants& out) {
  FetchChange fetch;
  for (const auto& [map, name] : distinct(c.problem(), kQueryHeads, true)) {
    fetch.head = map;
    change(kQ, fetch, out, {named("map", static_cast<double>(map), name)});
  }
}

// Rows or columns that are shifted, and what stands where there is nothing.
void shifted(const PredictionInputs& c, Variants& out, bool rows) {
  const Problem& p = c.problem();
  constexpr std::pair<Beyond, const char*> kBeyond[] = {{Beyond::kMemory, "what is there"},
                                                        {Beyond::kKept, "the last one again"},
                                                        {Beyond::kZero, "zeros"}};
  for (const Operands& which : {kQ, kK, kV, kKv}) {
    if (!rows && which.k && which.v) continue;
    const std::int32_t dim = which.v ? p.head_dim_v : p.head_dim;
    const std::int32_t n = !rows ? dim : which.q ? p.seqlen_q : p.seqlen_k;
    for (const std::int32_t by : {1, -1, 2, -2, 4, -4, 8, -8, 16, -16})
      for (const auto& [beyond, what] : kBeyond) {
        if (std::abs(by) >= n) continue;
        FetchChange fetch;
        (rows ? fetch.row_shift : fetch.column_shift) = by;
        fetch.beyond = beyond;
        out.in_pairs(beyond == Beyond::kMemory && (std::abs(by) == 1 || std::abs(by) == 8));
        change(which, fetch, out,
               {number(rows ? "rows" : "columns", by),
                named("beyond", static_cast<double>(beyond), what)});
      }
  }
}

void tile_steps(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const TileShape tile = c.geometry().tile;
  for (const Operands& which : {kQ, kK, kV, kKv}) {
    const std::int32_t own = which.q ? tile.block_m : tile.block_n;
    const std::int32_t other = which.q ? tile.block_n : tile.block_m;
    if (own >= (which.q ? p.seqlen_q : p.seqlen_k)) continue;
    for (const std::int32_t step :
         std::set{other, own - 1, own + 1, own / 2, own - 8, own - 16, 2 * own, 16, 1}) {
      if (step < 1 || step == own) continue;
      FetchChange fetch;
      fetch.tile_step = step;
      out.in_pairs(step == other);
      change(which, fetch, out, {number("rows", step)});
    }
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

void page_maps(const PredictionInputs& c, Variants& out) {
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
  for (const std::int32_t rows : {8, 16, 32, 64, 128}) {
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
      // With two pages, each of these maps is kNext.
      if (two && permutes && map != PageMap::kNext) continue;
      const std::vector<ParameterValue> parameters = {
          named("pages", static_cast<double>(map), name), number("rows", rows)};
      // Without a mask the output does not depend on the order of keys.
      if (!permutes || masked(c) || p.seqlen_k % rows != 0) change(kKv, fetch, out, parameters);
      // Other entries cover pairs within a tile, or of tiles.
      const bool pairs = map == PageMap::kPairsSwapped &&
                         (rows > c.geometry().tile.block_n || p.seqlen_k % (2 * rows) != 0);
      if (map != PageMap::kNext && map != PageMap::kReversed && !pairs) continue;
      for (const Operands& which : {kK, kV}) change(which, fetch, out, parameters);
    }
  }
}

const Entry kFetch[] = {
    {{.id = "other-layout",
      .statement = "an operand is read with the strides of the other memory order",
      .formula = "F6",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand"},
      .citation = "flash-attention#2666",
      .remedy = "strides from the tensor, not from an assumed layout; a missing contiguous()"},
     [](const PredictionInputs& c, Variants& out) {
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
     [](const PredictionInputs& c, Variants& out) {
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
     [](const PredictionInputs& c, Variants& out) {
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
     [](const PredictionInputs& c, Variants& out) {
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
     query_heads},
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
      .parameters = {"operand", "rows", "beyond"},
      .citation = "",
      .remedy = "the first row in the address, and counts from 1 where they begin at 0"},
     [](const PredictionInputs& c, Variants& out) { shifted(c, out, true); }},
    {{.id = "columns-shifted",
      .statement = "an operand's columns are read some elements early or late",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "columns", "beyond"},
      .citation = "",
      .remedy = "the offset of the base address, and vector loads that begin within a vector"},
     [](const PredictionInputs& c, Variants& out) { shifted(c, out, false); }},
    {{.id = "operand-exchanged",
      .statement = "k is read from the buffer of v, or v from that of k",
      .formula = "F18",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand"},
      .citation = "",
      .remedy = "which tensor, and which half of shared memory, the loads of k and v go by"},
     [](const PredictionInputs& c, Variants& out) {
       if (c.problem().head_dim != c.problem().head_dim_v) return;
       FetchChange fetch;
       fetch.of_other = true;
       for (const Operands& which : {kK, kV, kKv}) change(which, fetch, out);
     }},
    {{.id = "tile-step",
      .statement =
          "tiles of an operand begin at multiples of another number of rows than they have",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "rows"},
      .citation = "",
      .remedy = "kBlockM and kBlockN in the first row of a tile",
      .needs_tiles = true},
     tile_steps},
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
     [](const PredictionInputs& c, Variants& out) {
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

std::span<const Entry> fetch_entries() { return kFetch; }

}  // namespace attn_diag::reference
