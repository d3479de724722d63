// Which element of a 16x16 fragment stands for which, under the layout bugs.
#pragma once

#include <cstdint>

#include "attn_diag/reference/deviation.h"

namespace attn_diag::reference {

inline constexpr std::int32_t kFragmentSize = 16;

struct FragmentPlace {
  std::int32_t row, column;
};

// What is read for element (row, column), both below 16.
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
    // A lane has rows r and r + 8 of columns c, c + 1, c + 8 and c + 9.
    case FragmentMap::kElementNumber:
      return {0, column / 8 * 4 + row / 8 * 2 + column % 2};
    case FragmentMap::kElementNumber8:
      return {0, column / 8 * 8 + row / 8 * 2 + column % 2};
    case FragmentMap::kOfLaneZero:
      return {row & 8, column & 9};
    case FragmentMap::kColumnOfLaneZero:
      return {row, column & 9};
  }
  return {row, column};
}

}  // namespace attn_diag::reference
