// F5, F18, F19, F26: which elements of a tile of q, k or v are where they should be.
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_maps.h"
#include "reference/counterfactual/catalogue_operands.h"
#include "reference/counterfactual/entry.h"
#include "reference/counterfactual/fragment.h"
#include "reference/counterfactual/index_map.h"

namespace attn_diag::reference {
namespace {

constexpr std::pair<TileOrder, const char*> kTileOrders[] = {
    {TileOrder::kFirst, "the first"},
    {TileOrder::kLast, "the last"},
    {TileOrder::kPairsSwapped, "its number ^ 1"},
    {TileOrder::kSecondStale, "the first again for the second"},
    {TileOrder::kLastStale, "the one before again for the last"}};

// Blocks that do one query tile after another and load q once.
void stale_queries(const PredictionInputs& c, Variants& out) {
  const std::int32_t tiles = ceil_div(c.problem().seqlen_q, c.geometry().tile.block_m);
  for (const std::int32_t late : std::set{1, ceil_div(tiles, 2)}) {
    if (late >= tiles) continue;
    FetchChange fetch;
    fetch.tiles_late = late;
    change(kQ, fetch, out, {number("tiles", late), named("outside", 0, "right")});
  }
  FetchChange fetch;
  for (const auto& [order, name] : kTileOrders) {
    if (tiles < (order == TileOrder::kFirst ? 2 : 3)) continue;
    fetch.order = order;
    change(kQ, fetch, out, {named("tile", static_cast<double>(order), name)});
  }
}

// Another tile of the loop stands for every one.
void tiles_in_other_order(const PredictionInputs& c, Variants& out) {
  const bool loops_differ = merges(c) || masked(c);
  FetchChange fetch;
  for (const auto& [order, name] : kTileOrders)
    for (const bool in_loop : {false, true}) {
      if (in_loop ? !loops_differ || longest_split(c) < 2
                  : num_kv_tiles(c.problem(), c.geometry()) < 2)
        continue;
      fetch.order = order;
      fetch.late_in_loop = in_loop;
      for (const Operands& which : {kK, kV, kKv})
        change(which, fetch, in_loop ? TileLoop::kBounded : TileLoop::kAll, out,
               {named("tile", static_cast<double>(order), name),
                named("of", in_loop, in_loop ? "its split's loop" : "all keys")});
    }
}

void stale_tiles(const PredictionInputs& c, Variants& out) {
  const std::int32_t tiles = num_kv_tiles(c.problem(), c.geometry());
  stale_queries(c, out);
  tiles_in_other_order(c, out);
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

void transposed_tiles(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const TileShape tile = c.geometry().tile;
  for (const Operands& which : {kK, kV, kQ}) {
    const std::int32_t dim = which.v ? p.head_dim_v : p.head_dim;
    const std::int32_t rows = which.q ? tile.block_m : tile.block_n;
    if (dim == 1 || rows == 1) continue;
    for (const std::int32_t padding : {0, 1, 4, 8}) {
      FetchChange fetch;
      fetch.tile.read_transposed = true;
      fetch.tile.read_stride = rows + padding;
      change(which, fetch, out, {number("stride", rows + padding)});
      fetch.tile = {};
      fetch.tile.stored_transposed = true;
      fetch.tile.stored_stride = rows + padding;
      // With the natural strides of a square tile the two are the same.
      if (padding != 0 || dim != rows)
        change(which, fetch, out, {number("stored stride", rows + padding)});
    }
  }
}

void mixed_fragments(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const TileShape tile = c.geometry().tile;
  for (const Operands& which : {kQ, kK, kV, kKv}) {
    const std::int32_t dim = which.k && which.v ? std::gcd(p.head_dim, p.head_dim_v)
                             : which.v          ? p.head_dim_v
                                                : p.head_dim;
    const std::int32_t rows = which.q ? tile.block_m : tile.block_n;
    const auto add = [&](std::int32_t blocks, const char* what) {
      FetchChange fetch;
      fetch.tile.transposed_blocks = blocks;
      change(which, fetch, out, {named("elements", blocks, what)});
    };
    constexpr std::pair<std::int32_t, const char*> kBlocks[] = {{16, "16x16 parts transposed"},
                                                                {8, "8x8 parts transposed"},
                                                                {4, "4x4 parts transposed"},
                                                                {2, "2x2 parts transposed"}};
    for (const auto& [size, name] : kBlocks)
      if (dim % size == 0 && rows % size == 0 && !(which.k && which.v && size < 8)) add(size, name);
    if (dim % kFragmentSize != 0 || rows % kFragmentSize != 0) continue;
    // Other entries cover maps of whole rows and columns.
    FetchChange fetch;
    fetch.tile.fragment = FragmentMap::kHalvesSwapped;
    change(which, fetch, out, {named("elements", 0, "[r + 8][c] and [r][c + 8] swapped")});
  }
  // One loader of the first operand, for both products.
  if (p.head_dim % kFragmentSize != 0 || tile.block_m % kFragmentSize != 0) return;
  if (tile.block_n % kFragmentSize != 0 || p.seqlen_q <= kFragmentSize / 2) return;
  for (const NamedMap& map : kFragmentMaps) {
    out.in_pairs(map.map == FragmentMap::kHalvesSwapped);
    out.with(
        [&](Deviation& d) {
          d.q.tile.fragment = map.map;
          d.pv.probs = map.map;
        },
        {named("operand", 8, "q and p"),
         named("elements", -static_cast<double>(map.map), map.name)});
  }
}

// A permutation of the columns of q is the inverse one of those of k.
void mixed_columns(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  for (const Operands& which : {kK, kV, kQ}) {
    const std::int32_t dim = which.v ? p.head_dim_v : p.head_dim;
    for (const auto& [map, name, permutes] : index_maps(dim, dim, 'd')) {
      if (which.q && permutes) continue;
      FetchChange fetch;
      fetch.tile.columns = map;
      out.in_pairs(swaps(map));
      change(which, fetch, out, {index_value("column", map, name)});
    }
  }
}

void mixed_rows(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const TileShape tile = c.geometry().tile;
  for (const Operands& which : {kK, kV, kKv, kQ}) {
    const std::int32_t rows = which.q ? tile.block_m : tile.block_n;
    const std::int32_t seen = std::min(rows, which.q ? p.seqlen_q : p.seqlen_k);
    for (const auto& [map, name, permutes] : index_maps(rows, seen, 'r')) {
      // Without a mask the output does not depend on the order of keys.
      if (which.k && which.v && permutes && !masked(c) && p.seqlen_k % rows == 0) continue;
      FetchChange fetch;
      fetch.tile.rows = map;
      out.in_pairs(swaps(map));
      change(which, fetch, out, {index_value("row", map, name)});
    }
  }
}

void swizzled(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  for (const Operands& which : {kK, kV, kQ}) {
    const std::int32_t dim = which.v ? p.head_dim_v : p.head_dim;
    for (const std::int32_t by : {4, 8, 16})
      for (const std::int32_t rows : {2, 4, 8})
        for (const std::int32_t every : {1, 2, 4}) {
          if (dim % (by * rows) != 0) continue;
          FetchChange fetch;
          out.in_pairs(by == 8 && every == 1);
          fetch.tile.swizzled_by = by;
          fetch.tile.swizzled_rows = rows;
          fetch.tile.swizzled_every = every;
          change(which, fetch, out,
                 {number("by", by), number("rows", rows), number("every", every)});
        }
  }
}

void leading_dimensions(const PredictionInputs& c, Variants& out) {
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

constexpr const char* kOthers[] = {"zeros", "of the tile before", "of the tile before that"};

void part_of_tiles(const PredictionInputs& c, Variants& out) {
  const Problem& p = c.problem();
  const TileShape tile = c.geometry().tile;
  const auto add = [&](const Operands& which, std::int32_t rows, std::int32_t seqlen) {
    for (const std::int32_t loaded : rows_by_warps(rows)) {
      if (loaded <= 0 || loaded >= std::min(rows, seqlen)) continue;
      for (const std::int32_t late : {0, 1, 2}) {
        if (late > 0 && (which.q || seqlen <= late * rows)) continue;
        FetchChange fetch;
        fetch.loaded_rows = loaded;
        fetch.unloaded_late = late;
        out.in_pairs(late == 0);
        fetch.late_in_loop = late > 0 && merges(c);
        change(which, fetch, out, {number("rows", loaded), named("others", late, kOthers[late])});
      }
    }
    for (const std::int32_t of : {2, 4, 8, 16, 32})
      for (const std::int32_t loaded : std::set{of / 2, of - 1}) {
        if (of >= rows || loaded >= seqlen) continue;
        FetchChange fetch;
        fetch.loaded_rows = loaded;
        fetch.loaded_of = of;
        out.in_pairs(false);
        change(which, fetch, out, {number("rows", loaded), number("of", of)});
      }
  };
  add(kQ, tile.block_m, p.seqlen_q);
  for (const Operands& which : {kK, kV, kKv}) add(which, tile.block_n, p.seqlen_k);
}

void steps_of_columns(const PredictionInputs& c, Variants& out) {
  const std::int32_t dim = c.problem().head_dim;
  for (const std::int32_t of : {16, 8, 32})
    for (std::int32_t step = 0; step < dim / of && dim > of; ++step)
      for (const double times : {0.0, 2.0}) {
        // Without the first or the last one it is columns-missing.
        if (times == 0 && (step == 0 || (step + 1) * of == dim)) continue;
        FetchChange fetch;
        fetch.first_scaled = step * of;
        fetch.scaled_columns = of;
        fetch.column_scale = times;
        change(kK, fetch, out, {number("step", step), number("of", of), number("times", times)});
      }
}

const Entry kTile[] = {
    {{.id = "stale-tile",
      .statement =
          "a tile of k or v is multiplied before it has arrived, or after it was overwritten",
      .formula = "F18",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "tiles", "tile", "of", "outside"},
      .citation = "cutlass#2502",
      .remedy = "the stage index of the pipeline, and the wait before the product",
      .needs_tiles = true},
     stale_tiles},
    {{.id = "tile-transposed",
      .statement = "a tile of q, k or v is read transposed, with its leading dimension",
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
      .statement = "elements of q, k or v, or of q and P, change places within the fragments they "
                   "are loaded as",
      .formula = "F19, F20",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "elements"},
      .citation = "mlir-air#1430",
      .remedy = "row_major or col_major of the fragment, and its table of lanes",
      .needs_tiles = true},
     mixed_fragments},
    {{.id = "tile-columns-mixed",
      .statement = "columns of q, k or v change places, or stand for others",
      .formula = "F5, F26",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "column"},
      .citation = "",
      .remedy =
          "the column in the address of a step over head_dim, and the order in which a vector is "
          "stored"},
     mixed_columns},
    {{.id = "tile-rows-mixed",
      .statement = "rows of a tile of q, k or v change places, or stand for others",
      .formula = "F26",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "row"},
      .citation = "",
      .remedy = "which row of the tile a thread loads, and which one it stores it to",
      .needs_tiles = true},
     mixed_rows},
    {{.id = "tile-swizzled",
      .statement = "a tile is stored swizzled and read as if it were not, or the reverse",
      .formula = "F26",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "by", "rows", "every"},
      .citation = "",
      .remedy = "the same swizzle for the store and the load of a shared tile",
      .needs_tiles = true},
     swizzled},
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
    {{.id = "tile-partly-loaded",
      .statement =
          "only the first rows of a tile of q, k or v, or of every few, are loaded; the others are "
          "zeros or stale",
      .formula = "F33",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "rows", "of", "others"},
      .citation = "",
      .remedy = "rows per warp or copy times their number against the tile",
      .needs_tiles = true},
     part_of_tiles},
    {{.id = "columns-step",
      .statement = "one step of the columns of q.k is left out or taken twice",
      .formula = "F5",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "step", "of", "times"},
      .citation = "",
      .remedy = "the loop over head_dim: its prologue and epilogue"},
     steps_of_columns},
};

}  // namespace

std::span<const Entry> tile_entries() { return kTile; }

}  // namespace attn_diag::reference
