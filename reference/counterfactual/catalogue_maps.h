// Names of the fragment maps, for the entries that enumerate them.
#pragma once

#include "attn_diag/reference/deviation.h"

namespace attn_diag::reference {

struct NamedMap {
  FragmentMap map;
  const char* name;
  bool rows;  // rows of the fragment change places
};

inline constexpr NamedMap kFragmentMaps[] = {
    {FragmentMap::kHalvesSwapped, "[r + 8][c] and [r][c + 8] swapped", true},
    {FragmentMap::kTransposed8, "8x8 parts transposed", true},
    {FragmentMap::kTransposed16, "transposed", true},
    {FragmentMap::kRowsSwapped, "r and r ^ 8 swapped", true},
    {FragmentMap::kColumnsSwapped, "c and c ^ 8 swapped", false},
    {FragmentMap::kPairsSwapped, "c and c ^ 1 swapped", false},
};

}  // namespace attn_diag::reference
