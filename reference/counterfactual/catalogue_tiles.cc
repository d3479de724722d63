// F5, F18, F19, F26: which elements of a tile of q, k or v are where they should be.
#include <set>
#include <string>
#include <vector>

#include "reference/counterfactual/catalogue_loops.h"
#include "reference/counterfactual/catalogue_operands.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

// Blocks that do one query tile after another and load q once.
void stale_queries(const Case& c, Variants& out) {
  const std::int32_t tiles = ceil_div(c.problem().seqlen_q, c.geometry().tile.block_m);
  for (const std::int32_t late : std::set{1, ceil_div(tiles, 2)}) {
    if (late >= tiles) continue;
    FetchChange fetch;
    fetch.tiles_late = late;
    change(kQ, fetch, out, {number("tiles", late), named("outside", 0, "right")});
  }
}

void stale_tiles(const Case& c, Variants& out) {
  const std::int32_t tiles = num_kv_tiles(c.problem(), c.geometry());
  stale_queries(c, out);
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

void part_of_tiles(const Case& c, Variants& out) {
  const Problem& p = c.problem();
  const TileShape tile = c.geometry().tile;
  const auto add = [&](const Operands& which, std::int32_t rows, std::int32_t seqlen) {
    for (const std::int32_t loaded : rows_by_warps(rows)) {
      if (loaded <= 0 || loaded >= std::min(rows, seqlen)) continue;
      FetchChange fetch;
      fetch.loaded_rows = loaded;
      change(which, fetch, out, {number("rows", loaded)});
    }
  };
  add(kQ, tile.block_m, p.seqlen_q);
  for (const Operands& which : {kK, kV, kKv}) add(which, tile.block_n, p.seqlen_k);
}

void steps_of_columns(const Case& c, Variants& out) {
  constexpr std::int32_t kStep = 16;
  const std::int32_t steps = c.problem().head_dim / kStep;
  if (steps < 2) return;
  for (const std::int32_t step : std::set{0, 1, steps - 1})
    for (const double times : {0.0, 2.0}) {
      // Without the last one it is columns-missing.
      if (times == 0 && step == steps - 1 && c.problem().head_dim % kStep == 0) continue;
      FetchChange fetch;
      fetch.first_scaled = step * kStep;
      fetch.scaled_columns = kStep;
      fetch.column_scale = times;
      change(kK, fetch, out, {number("step", step), number("times", times)});
    }
}

const Entry kEntries[] = {
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
    {{.id = "tile-partly-loaded",
      .statement = "only the first rows of a tile of q, k or v are loaded, the others are zeros",
      .formula = "F33",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "rows"},
      .citation = "",
      .remedy = "rows per warp or copy times their number against the tile",
      .needs_tiles = true},
     part_of_tiles},
    {{.id = "columns-step",
      .statement = "one step of 16 columns of q.k is left out or taken twice",
      .formula = "F5",
      .family = Family::kFetch,
      .stage = Stage::kQk,
      .parameters = {"operand", "step", "times"},
      .citation = "",
      .remedy = "the loop over head_dim: its prologue and epilogue"},
     steps_of_columns},
};

}  // namespace

std::span<const Entry> tile_entries() { return kEntries; }

}  // namespace attn_diag::reference
