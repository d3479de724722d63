// Which lane of those that share a row holds a key of a tile or a column of o, and what a reduction over the
// lanes leaves in each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attn_diag/reference/deviation.h"

namespace attn_diag::reference {

// The lane of the key or column at `place` of `places`.
inline std::size_t lane_of(LaneMap map, std::int32_t place, std::int32_t lanes,
                           std::int32_t places) {
  switch (map) {
    case LaneMap::kBlocked:
      return static_cast<std::size_t>(std::min(place / std::max(places / lanes, 1), lanes - 1));
    case LaneMap::kQuad:
      return static_cast<std::size_t>(place % 8 / 2);
    case LaneMap::kPairs:
      return static_cast<std::size_t>(place / 2 % lanes);
    case LaneMap::kGroups:
      return static_cast<std::size_t>(place % kLanesOfWarp / (kLanesOfWarp / lanes));
    case LaneMap::kTiles:  // not of a place
    case LaneMap::kInterleaved:
    case LaneMap::kNone:
      break;
  }
  return static_cast<std::size_t>(place % lanes);
}

// Lane i gets what `add` makes of the lanes whose numbers differ from i in the bits of `steps` alone.
template <class Add>
std::vector<double> over_butterfly(std::vector<double> x, std::int32_t steps, Add add) {
  for (std::size_t step = x.size() / 2; step > 0; step /= 2) {
    if ((static_cast<std::size_t>(steps) & step) == 0) continue;
    const std::vector<double> before = x;
    for (std::size_t i = 0; i < x.size(); ++i) add(x[i], before[i ^ step]);
  }
  return x;
}

}  // namespace attn_diag::reference
