// F13, F14, F32: from tile to tile.
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {
namespace {

Deviation with_alpha(Rescale l, Rescale o) {
  Deviation d;
  d.recurrence.alpha_l = l;
  d.recurrence.alpha_o = o;
  return d;
}

bool one_tile_per_split(const Case& c) {
  return c.geometry().tiles_per_split == 1 || num_kv_tiles(c.problem(), c.geometry()) == 1;
}

const Entry kEntries[] = {
    {{.id = "alpha-missing-l",
      .statement = "the row sum is not rescaled when the row max grows",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "flash-attention#991",
      .remedy = "l = alpha * l + sum(P): the alpha",
      .needs_tiles = true},
     [](const Case& c, Variants& out) {
       if (!one_tile_per_split(c)) out.add(with_alpha(Rescale::kMissing, Rescale::kRight));
     }},
    {{.id = "alpha-missing-o",
      .statement = "the accumulator is not rescaled when the row max grows",
      .formula = "F13",
      .family = Family::kRecurrence,
      .stage = Stage::kReduce,
      .parameters = {},
      .citation = "flash-attention#991, TileFusion#31",
      .remedy = "o = alpha * o + P V: the alpha, on every fragment of o",
      .needs_tiles = true},
     [](const Case& c, Variants& out) {
       if (!one_tile_per_split(c)) out.add(with_alpha(Rescale::kRight, Rescale::kMissing));
     }},
};

}  // namespace

std::span<const Entry> recurrence_entries() { return kEntries; }

}  // namespace attn_diag::reference
