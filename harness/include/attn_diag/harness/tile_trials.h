// Whether the wrong rows of o move when the same problem is cut into other tiles: what a wrong set moves
// with is where the bug sits.
//
// The kernel is run again with the other tiles and splits it has, and, where it has one tile only, on
// the same sequences without their first few positions, so that tile edges fall elsewhere. Every way
// of telling rows apart (place in the query tile, KV tiles seen, head ...) is then judged by how well it,
// learnt on the other trials, foretells which rows are wrong in each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/run.h"

namespace attn_diag {

struct TileTrial {
  Problem problem;
  Geometry geometry;
  // Leading positions left out: row i is row i + query_shift of the problem as it was given.
  std::int32_t query_shift = 0, key_shift = 0;
  // [batch][head][query]: 1 where a cell of o is wrong.
  std::vector<std::uint8_t> wrong;
  std::int64_t wrong_rows = 0;
  // Rows of o that differ from the first trial's by more than rounding can explain in both; -1 for
  // trials on other positions.
  std::int64_t changed_rows = -1;
  std::string label;  // "64x32 tiles, 2 splits", "64x64 tiles, without the first 24 queries"
};

// What the wrong rows move with. In the order in which they are preferred where several fit.
enum class Follows : std::uint8_t {
  kNothing,   // no row is wrong in any trial
  kEveryRow,  // every row is wrong in every trial
  kBatch,
  kHead,
  kWarpRows16,  // the place in groups of 16 rows, as of a tensor core's fragment
  kWarpRows32,
  kQueryTile,      // the place in the query tile
  kLastQueryTile,  // whether the row is in a query tile that is not full
  kKvTile,         // whether the row sees more than one KV tile
  kKvEdge,         // where the last key the row sees lies in its KV tile
  kKvTail,         // whether the row sees a KV tile that is not full
  kSplit,          // whether the row sees more than one split
  kStays,          // the same queries whatever the tiles
  kUnclear,
};
std::string_view name(Follows follows);  // "the query tile's edge"

struct TileFinding {
  std::vector<TileTrial> trials;  // the first is the problem as it was given
  Follows follows = Follows::kUnclear;
  double foretold = 0;                  // share of rows that `follows` foretells, over all trials
  std::vector<std::string> statements;  // sentences without a full stop
};

// Judges trials that were made. Trials without a wrong row count as evidence like the others.
TileFinding judge_tile_trials(std::vector<TileTrial> trials);

// Makes up to `most` trials, the first as the experiment has it, and judges them. Throws what
// run_kernel throws for the first; later ones that the kernel refuses are left out.
TileFinding try_tiles(const Experiment& experiment, int most = 8,
                      const std::function<void(int step, int steps)>& on_step = {});

}  // namespace attn_diag
