// Which index stands for which, under the bugs that mix up rows or columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/reference/deviation_inputs.h"

namespace attn_diag::reference {

// The index that is read for index i of n.
constexpr std::int32_t mapped(const IndexMap& map, std::int32_t i, std::int32_t n) {
  if (map.rule == IndexRule::kRight) return i;
  const std::int32_t group = map.group > 0 ? map.group : n;
  const std::int32_t first = i / group * group, at = i - first;
  switch (map.rule) {
    case IndexRule::kRight:
      break;
    case IndexRule::kRotated:
      return first + (at + map.by + group) % group;
    case IndexRule::kReversed:
      return first + group - 1 - at;
    case IndexRule::kDealt:
      return first + at % map.by * (group / map.by) + at / map.by;
    case IndexRule::kRepeated:
      return at;
    case IndexRule::kFirst:
      return first;
  }
  return i;
}

struct NamedIndexMap {
  IndexMap map;
  std::string name;
  bool permutes = true;  // every index once
};

// i ^ by
constexpr bool swaps(const IndexMap& map) {
  return map.rule == IndexRule::kRotated && map.group == 2 * map.by;
}

// The maps of n indices worth trying: no two agree on the first `seen` indices, and none is the identity there.
std::vector<NamedIndexMap> index_maps(std::int32_t n, std::int32_t seen, char index);

}  // namespace attn_diag::reference
