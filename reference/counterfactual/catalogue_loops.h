// Under a mask, kernels visit every KV tile, or those in which a row of the query tile sees a key: some bugs
// show in tiles that a row sees nothing of.
#pragma once

#include <utility>
#include <vector>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

inline bool masked(const Case& c) { return c.problem().mask.kind != MaskKind::kNone; }

inline ParameterValue loop_value(TileLoop loop) {
  switch (loop) {
    case TileLoop::kBounded:
      return named("loop", 1, "tiles with a visible key");
    case TileLoop::kFirstRow:
      return named("loop", 2, "up to the first row's last key");
    case TileLoop::kSquare:
      return named("loop", 3, "up to the query tile's number");
    default:
      return named("loop", 0, "all tiles");
  }
}

// A variant for each loop; without a mask they are the same, and nothing is said of it.
template <class Set>
void under_both_loops(const Case& c, Variants& out, Set set,
                      std::vector<ParameterValue> parameters = {}) {
  if (!masked(c)) return out.with(set, std::move(parameters));
  for (const TileLoop loop : {TileLoop::kAll, TileLoop::kBounded}) {
    std::vector<ParameterValue> values = parameters;
    values.push_back(loop_value(loop));
    out.with(
        [&](Deviation& d) {
          set(d);
          d.mask.loop = loop;
        },
        std::move(values));
  }
}

}  // namespace attn_diag::reference
