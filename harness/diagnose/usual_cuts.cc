#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "attn_diag/harness/diagnose.h"

namespace attn_diag {

std::vector<Geometry> usual_cuts(const Problem& problem, std::int32_t num_splits) {
  std::vector<Geometry> cuts;
  const auto add = [&](std::int32_t block_m, std::int32_t block_n, std::int32_t splits) {
    Geometry g;
    g.tile = {block_m, block_n};
    const std::int32_t tiles = num_kv_tiles(problem, g);
    if (splits > std::max(1, tiles)) return;
    g.num_splits = splits;
    g.tiles_per_split = ceil_div(tiles, splits);
    g.has_split_merge = splits > 1;
    cuts.push_back(g);
  };
  const std::vector<std::int32_t> splits =
      num_splits > 1 ? std::vector{num_splits} : std::vector{1, 2, 3, 4, 8};
  for (const std::int32_t n : splits)
    for (const std::int32_t block_n : {64, 128, 32, 16, 256})
      if (n == 1 || block_n == 64 || block_n == 128) add(64, block_n, n);
  if (num_splits <= 1)
    for (const std::int32_t block_m : {128, 16, 32}) add(block_m, 64, 1);
  return cuts;
}

std::vector<Geometry> cuts_to_try(ForeignCase& foreign, std::optional<TileShape> tile,
                                  std::int32_t num_splits) {
  if (foreign.geometry_known) return {};
  const Problem& problem = foreign.capture.problem;
  Geometry& known = foreign.capture.geometry;
  if (num_splits > 0) known.num_splits = num_splits;
  if (!tile) {
    std::vector<Geometry> cuts = usual_cuts(problem, known.num_splits);
    foreign.assumed.push_back(
        fmt::format("tiles and splits not known: {} cuts are tried", cuts.size() + 1));
    return cuts;
  }
  known.tile = *tile;
  known.tiles_per_split = ceil_div(num_kv_tiles(problem, known), known.num_splits);
  known.has_split_merge = known.num_splits > 1;
  return {};
}

}  // namespace attn_diag
