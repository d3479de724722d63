// Which element of a 16x16 fragment stands for which, under the layout bugs.
#pragma once

#include <cstdint>

#include "attn_diag/reference/deviation.h"

namespace attn_diag::reference {

inline constexpr std::int32_t kFragmentSize = 16;

struct FragmentPlace {
  std::int32_t row, column;
};

// Of element (row, column), both below 16.
constexpr FragmentPlace fragment_source(FragmentMap map, std::int32_t row, std::int32_t column) {
  switch (map) {
    case FragmentMap::kRight:
      break;
    case FragmentMap::kHalvesSwapped:
      if ((row < 8) != (column < 8)) return {row ^ 8, column ^ 8};
      break;
    case FragmentMap::kTransposed8:
      return {(row & 8) | (column & 7), (column & 8) | (row & 7)};
    case FragmentMap::kTransposed16:
      return {column, row};
    case FragmentMap::kRowsSwapped:
      return {row ^ 8, column};
    case FragmentMap::kColumnsSwapped:
      return {row, column ^ 8};
    case FragmentMap::kPairsSwapped:
      return {row, column ^ 1};
  }
  return {row, column};
}

}  // namespace attn_diag::reference
