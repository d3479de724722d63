// Butterflies that lack a step or more.
#pragma once

#include <string>
#include <vector>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

// The bits of the lane number that are reduced over: all sets of them but the whole one. Those of fewer lanes
// are among those of more.
inline std::vector<std::int32_t> incomplete_butterflies(std::int32_t lanes) {
  std::vector<std::int32_t> found;
  for (std::int32_t steps = 0; steps + 1 < lanes; ++steps) found.push_back(steps);
  return found;
}

// The most lanes that can share the keys of a tile.
inline std::int32_t most_lanes(const PredictionInputs& c) {
  std::int32_t lanes = 32;
  while (lanes > 2 && (lanes > c.geometry().tile.block_n || lanes > c.problem().seqlen_k))
    lanes /= 2;
  return lanes;
}

inline ParameterValue steps_value(std::int32_t steps) {
  if (steps < 0) return named("steps", -1, "down: right in lane 0 only");
  if (steps == 0) return named("steps", 0, "none");
  std::string text;
  for (std::int32_t bit = 1; bit <= steps; bit *= 2)
    if ((steps & bit) != 0) text += (text.empty() ? "" : ", ") + std::to_string(bit);
  return named("steps", steps, "only " + text);
}

// Incomplete lane sums of every tile (catalogue_finish.cc).
void incomplete_tile_sums(const PredictionInputs& c, Variants& out);

}  // namespace attn_diag::reference
