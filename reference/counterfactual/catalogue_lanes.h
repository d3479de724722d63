// Butterflies that lack a step or more.
#pragma once

#include <string>
#include <vector>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

// The bits of the lane number that are reduced over: a run of them, none, or all but one.
inline std::vector<std::int32_t> incomplete_butterflies(std::int32_t lanes) {
  const std::int32_t all = lanes - 1;
  std::vector<std::int32_t> found = {0};
  for (std::int32_t low = 1; low < lanes; low *= 2)
    for (std::int32_t end = 2 * low; end <= lanes; end *= 2)
      if (end - low != all) found.push_back(end - low);
  for (std::int32_t bit = 2; bit < lanes / 2; bit *= 2) found.push_back(all - bit);
  return found;
}

inline ParameterValue steps_value(std::int32_t steps) {
  if (steps < 0) return named("steps", -1, "down: right in lane 0 only");
  if (steps == 0) return named("steps", 0, "none");
  std::string text;
  for (std::int32_t bit = 1; bit <= steps; bit *= 2)
    if ((steps & bit) != 0) text += (text.empty() ? "" : ", ") + std::to_string(bit);
  return named("steps", steps, "only " + text);
}

// Of the sum of every tile (catalogue_finish.cc).
void incomplete_tile_sums(const Case& c, Variants& out);

}  // namespace attn_diag::reference
