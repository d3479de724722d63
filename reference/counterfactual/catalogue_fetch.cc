// F6, F18, F19, F26 to F28: which elements of q, k and v are read.
#include <string>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

struct Operands {
  bool q, k, v;
  const char* name;
};

constexpr Operands kQ{true, false, false, "q"}, kK{false, true, false, "k"},
    kV{false, false, true, "v"}, kKv{false, true, true, "k and v"},
    kQkv{true, true, true, "q, k and v"};

// The same change of each of them, where the loop over KV tiles visits those.
void change(const Operands& which, const FetchChange& fetch, TileLoop loop, Variants& out,
            std::vector<ParameterValue> parameters) {
  parameters.insert(parameters.begin(),
                    named("operand", which.q * 4 + which.k * 2 + which.v, which.name));
  out.with(
      [&](Deviation& d) {
        if (which.q) d.q = fetch;
        if (which.k) d.k = fetch;
        if (which.v) d.v = fetch;
        d.mask.loop = loop;
      },
      std::move(parameters));
}
void change(const Operands& which, const FetchChange& fetch, Variants& out,
            std::vector<ParameterValue> parameters = {}) {
  change(which, fetch, TileLoop::kAll, out, std::move(parameters));
}

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
    const std::int32_t read = map == HeadMap::kZero            ? 0
                              : map == HeadMap::kNext          ? (right + 1) % p.kv_heads
                              : map == HeadMap::kModulo        ? head % p.kv_heads
                              : map == HeadMap::kQueryHead     ? head
                              : map == HeadMap::kGroupTooSmall ? head / std::max(group - 1, 1)
                                                               : head / p.kv_heads;
    if (read != right) return true;
  }
  return false;
}

void gqa_maps(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  for (const HeadMap map : {HeadMap::kModulo, HeadMap::kZero, HeadMap::kDivideByKvHeads,
                            HeadMap::kNext, HeadMap::kQueryHead, HeadMap::kGroupTooSmall}) {
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

void stale_tiles(const Case& c, Variants& out) {
  const std::int32_t tiles = num_kv_tiles(c.problem(), c.geometry());
  const bool begins_late = c.problem().mask.kind == MaskKind::kWindow;
  for (const std::int32_t late : {1, 2, 3, -1}) {
    if (tiles <= std::abs(late)) continue;
    // Where one loop begins with the first tile, or ends with the last, it is the same.
    const bool loops_differ = merges(c) || (late > 0 ? begins_late : masked(c));
    for (const bool in_loop : {false, true}) {
      if (in_loop && (!loops_differ || longest_split(c) <= std::abs(late))) continue;
      for (const Before outside : {Before::kRight, Before::kZero}) {
        FetchChange fetch;
        fetch.tiles_late = late;
        fetch.late_in_loop = in_loop;
        fetch.outside = outside;
        const std::vector<ParameterValue> parameters = {
            number("tiles", late), named("of", in_loop, in_loop ? "its split's loop" : "all keys"),
            named("outside", static_cast<double>(outside),
                  outside == Before::kRight ? "right" : "zeros")};
        for (const Operands& which : {kK, kV, kKv})
          change(which, fetch, in_loop ? TileLoop::kBounded : TileLoop::kAll, out, parameters);
      }
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

void page_maps(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  FetchChange fetch;
  if (p.batch > 1) {
    fetch.pages = PageMap::kNextSequence;
    fetch.page_rows = p.seqlen_k;
    for (const Operands& which : {kKv, kK, kV})
      change(which, fetch, out, {named("pages", 0, "of the next sequence")});
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

void transposed_tiles(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  const std::int32_t block_n = c.geometry().tile.block_n;
  for (const Operands& which : {kK, kV}) {
    const std::int32_t dim = which.k ? p.head_dim : p.head_dim_v;
    if (dim == 1 || block_n == 1) continue;
    for (const std::int32_t padding : {0, 1, 4, 8}) {
      FetchChange fetch;
      fetch.tile.read_transposed = true;
      fetch.tile.read_stride = block_n + padding;
      change(which, fetch, out, {number("stride", block_n + padding)});
      fetch.tile = {};
      fetch.tile.stored_transposed = true;
      fetch.tile.stored_stride = block_n + padding;
      // With the natural strides of a square tile the two are the same.
      if (padding != 0 || dim != block_n)
        change(which, fetch, out, {number("stored stride", block_n + padding)});
    }
  }
}

void mixed_fragments(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  const TileShape tile = c.geometry().tile;
  for (const Operands& which : {kQ, kK, kV}) {
    const std::int32_t dim = which.v ? p.head_dim_v : p.head_dim;
    const std::int32_t rows = which.q ? tile.block_m : tile.block_n;
    const auto add = [&](std::int32_t blocks, std::int32_t row, std::int32_t column,
                         const char* what) {
      FetchChange fetch;
      fetch.tile.transposed_blocks = blocks;
      fetch.tile.row_xor = row;
      fetch.tile.column_xor = column;
      change(which, fetch, out, {named("elements", blocks * 256 + row * 16 + column, what)});
    };
    if (dim % 16 == 0 && rows % 16 == 0) {
      add(16, 0, 0, "16x16 parts transposed");
      add(8, 0, 0, "8x8 parts transposed");
      add(0, 0, 8, "columns d and d ^ 8 swapped");
      add(0, 8, 0, "rows r and r ^ 8 swapped");
    }
    if (dim % 2 == 0) add(0, 0, 1, "columns d and d ^ 1 swapped");
  }
}

void leading_dimensions(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  for (const Operands& which : {kK, kV, kQ}) {
    const std::int32_t dim = which.v ? p.head_dim_v : p.head_dim;
    for (const std::int32_t padding : {1, 4, 8, 16})
      for (const bool fragments : {false, true}) {
        if (fragments && dim % 16 != 0) continue;
        FetchChange fetch;
        fetch.tile.stride_within_fragments = fragments;
        fetch.tile.stored_stride = dim + padding;
        fetch.tile.read_stride = dim;
        const ParameterValue by =
            named("within", fragments ? 16 : 0, fragments ? "fragments" : "the tile");
        change(which, fetch, out, {number("stored", dim + padding), number("read", dim), by});
        fetch.tile.stored_stride = dim;
        fetch.tile.read_stride = dim + padding;
        change(which, fetch, out, {number("stored", dim), number("read", dim + padding), by});
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
      .statement = "the distance between heads is taken from the other sequence length",
      .formula = "F27",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand"},
      .citation = "cudnn-frontend#577",
      .remedy = "seqlen_q and seqlen_k in the strides of q, k and v"},
     [](const Case& c, Variants& out) {
       const Problem& p = c.problem();
       if (p.seqlen_q == p.seqlen_k || p.layout != Layout::kBHSD) return;
       FetchChange fetch;
       fetch.strides = StrideSet::kHeadOfOtherSeqlen;
       if (p.heads > 1) change(kQ, fetch, out);
       if (p.kv_heads > 1)
         for (const Operands& which : {kK, kV, kKv}) change(which, fetch, out);
     }},
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
       for (const HeadMap map : {HeadMap::kZero, HeadMap::kNext}) {
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
    {{.id = "stale-tile",
      .statement =
          "a tile of k or v is multiplied before it has arrived, or after it was overwritten",
      .formula = "F18",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "tiles", "of", "outside"},
      .citation = "cutlass#2502",
      .remedy = "the stage index of the pipeline, and the wait before the product",
      .needs_tiles = true},
     stale_tiles},
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
    {{.id = "tile-transposed",
      .statement = "a tile of k or v is read transposed, with its leading dimension",
      .formula = "F19",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "stride", "stored stride"},
      .citation = "mlir-air#1430",
      .remedy =
          "which index of the shared tile is the key: where it is stored and where it is read",
      .needs_tiles = true},
     transposed_tiles},
    {{.id = "fragment-elements",
      .statement = "elements of q, k or v change places within their fragment",
      .formula = "F19",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "elements"},
      .citation = "mlir-air#1430",
      .remedy = "row_major or col_major of the fragment, and its table of lanes",
      .needs_tiles = true},
     mixed_fragments},
    {{.id = "leading-dimension",
      .statement = "a tile is read with another distance between rows than it was stored with",
      .formula = "F19",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "stored", "read", "within"},
      .citation = "",
      .remedy = "the padding of shared tiles: one constant for the store and the load",
      .needs_tiles = true},
     leading_dimensions},
    {{.id = "page-map",
      .statement = "pages of k or v are read in another order, or from another sequence",
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
