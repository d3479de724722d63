// Where within blocks, and at whose threads, the marked cells of a matrix lie: "where dim mod 16 is 8-15".
// Facts with their counts; what they come from is for the reader to say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag {

// The rows of o of all heads.
struct MarkedCells {
  std::int64_t columns = 0, block_m = 0;
  std::vector<std::int64_t> query;   // of each row
  std::vector<std::uint8_t> marked;  // [row][column]
};

// What the marked cells are called, and the others: {"wrong", "right"}.
struct CellWords {
  std::string_view marked, others;
};

// "where dim mod 16 is 8-15, right elsewhere: 100% of 4,096 wrong cells, 0 of 4,096 right ones". The simplest of
// the rules that describe the cells in fewest bits, its own length counted: by columns, by places in blocks of 8 to
// 32 rows and columns, by 16 rows of a query tile and column, by the threads that take elements in turn. If
// none tells them apart in all rows, those rows are looked at that have any. None: no rule holds 98 % of the
// marked cells, and these more than the others.
std::optional<std::string> place_rule(const MarkedCells& cells, const CellWords& words);

}  // namespace attn_diag
