// Under a mask, kernels visit every KV tile, or those in which a row of the query tile sees a key: some bugs
// show in tiles that a row sees nothing of.
#pragma once

#include <utility>
#include <vector>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

inline bool masked(const PredictionInputs& c) { return c.problem().mask.kind != MaskKind::kNone; }

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
void under_both_loops(const PredictionInputs& c, Variants& out, Set set,
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

// Variants for some tiles of the loop. Loops differ in their begin under a window only, in their end under every mask.
template <class Set>
void under_loops(const PredictionInputs& c, Variants& out, const SomeTiles& tiles, Set set,
                 std::vector<ParameterValue> parameters) {
  const bool by_end = tiles.choice == TileChoice::kLast || tiles.choice == TileChoice::kNotLast;
  const bool by_number = tiles.choice != TileChoice::kAll && !by_end;
  if (by_end || (by_number && c.problem().mask.kind == MaskKind::kWindow))
    return under_both_loops(c, out, set, std::move(parameters));
  out.with(set, std::move(parameters));
}

// Tiles that a loop may treat apart: its last one, or every other one where it is unrolled.
struct NamedTiles {
  SomeTiles tiles;
  const char* name;
};
inline std::vector<NamedTiles> tiles_treated_apart(const PredictionInputs& c) {
  std::vector<NamedTiles> all = {{{TileChoice::kLast, -1}, "the last"},
                                 {{TileChoice::kNotLast, -1}, "all but the last"}};
  if (longest_split(c) < 4) return all;
  all.push_back({{TileChoice::kOdd, -1}, "odd ones"});
  all.push_back({{TileChoice::kEven, -1}, "even ones"});
  return all;
}
inline ParameterValue tiles_value(std::string_view name, const NamedTiles& of) {
  return named(name, -static_cast<double>(of.tiles.choice), of.name);
}

}  // namespace attn_diag::reference
