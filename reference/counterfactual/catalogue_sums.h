// Bugs of the recurrence that l may have alone, o alone, or both.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

inline constexpr std::pair<bool, bool> kSums[] = {
    {false, true}, {true, false}, {true, true}};  // l, o

inline ParameterValue of(bool l, bool o) {
  return named("of", l * 2 + o, l && o ? "l and o" : l ? "l" : "o");
}

// Every other run of columns or of rows of the query tile, down to a register of an MMA fragment.
struct HalfIn {
  Half half;
  bool columns;
};
inline std::vector<HalfIn> halves_of(const Case& c) {
  std::vector<HalfIn> all;
  const std::int32_t dim = c.problem().head_dim_v, rows = c.geometry().tile.block_m;
  for (const bool odd : {false, true}) {
    std::set<std::int32_t> sizes = {1, 8, 16, 32, dim / 2};
    for (const std::int32_t n : sizes)
      if (n > 0 && n < dim) all.push_back({{n, odd}, true});
    sizes = {1, 8, 16, 32, rows / 2};
    for (const std::int32_t n : sizes)
      if (n > 0 && n < std::min(rows, c.problem().seqlen_q)) all.push_back({{n, odd}, false});
  }
  return all;
}

}  // namespace attn_diag::reference
