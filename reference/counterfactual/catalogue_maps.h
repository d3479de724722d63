// Names of the fragment and index maps, for the entries that enumerate them.
#pragma once

#include <string>
#include <string_view>

#include "attn_diag/reference/deviation.h"
#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

struct NamedMap {
  FragmentMap map;
  const char* name;
  bool rows;      // rows of the fragment change places
  bool elements;  // ... and so do columns
};

inline constexpr NamedMap kFragmentMaps[] = {
    {FragmentMap::kHalvesSwapped, "[r + 8][c] and [r][c + 8] swapped", true, true},
    {FragmentMap::kTransposed8, "8x8 parts transposed", true, true},
    {FragmentMap::kTransposed16, "transposed", true, true},
    {FragmentMap::kRowsSwapped, "r and r ^ 8 swapped", true, false},
    {FragmentMap::kColumnsSwapped, "c and c ^ 8 swapped", false, false},
    {FragmentMap::kPairsSwapped, "c and c ^ 1 swapped", false, false},
};

inline ParameterValue index_value(std::string_view parameter, const IndexMap& map,
                                  const std::string& name) {
  const int rule = static_cast<int>(map.rule);
  return named(parameter, rule * 65536 + map.group * 256 + map.by, name);
}

}  // namespace attn_diag::reference
