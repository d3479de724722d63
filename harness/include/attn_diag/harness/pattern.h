// The pattern of wrong cells of one tensor: which batches, heads, queries, tiles, keys and dims,
// what is exact, and what such a pattern usually comes from. Records and their sentences; printing
// is the reports' business.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/kernels/stage.h"

namespace attn_diag {

enum CellState : std::uint8_t {
  kCellWrong = 1,
  kCellNaN = 2,        // and no NaN was expected
  kCellUnwritten = 4,  // of o of a kernel that attn-diag ran: as it was before the run
};

// Which cells of a tensor are wrong, summed up along its axes.
struct WrongCells {
  Tensor tensor = Tensor::kO;
  Region region;
  std::int64_t compared = 0, mismatched = 0;
  // Mismatches by index on each axis of info(tensor), from the region's origin.
  std::array<std::vector<std::int64_t>, 5> by_axis;
  // [query tile][KV tile], over the whole problem, all batches and heads; empty for o and lse.
  std::vector<std::int64_t> by_tile;
  // Tensors over keys: mismatches by key - query + seqlen_q - 1.
  std::vector<std::int64_t> by_diagonal;
  // Among the mismatches: NaN, infinite and zero actual values where the expected one is not.
  std::int64_t nan = 0, infinite = 0, zero = 0;
  // For o of up to 16 Mi cells: bits of CellState for each, dense over the region. Else empty.
  std::vector<std::uint8_t> cells;
  // A factor g per row (batch, head, query) with a mismatch and at least two finite cells (of lse, which
  // has one a row: one): actual = g * expected. How many such rows there are, how many a factor explains (largest
  // residual within 2 % of the largest value), and the smallest and largest g of these.
  std::int64_t rows = 0, rows_explained = 0;
  double min_factor = 0, max_factor = 0;
};
WrongCells collect_wrong_cells(const Capture& capture, Tensor tensor, const Tolerance& tolerance,
                               int threads = 0);

enum class StatementKind : std::uint8_t {
  kWrong,  // where the mismatches are
  kExact,  // what has none although its neighbours do
  kHint,   // what usually leaves such a pattern
};
struct PatternStatement {
  StatementKind kind;
  std::string text;  // without a full stop: "query 0 is exact"
};
// Empty where nothing is wrong.
std::vector<PatternStatement> describe_pattern(const WrongCells& cells, const Problem& problem,
                                               const Geometry& geometry);

}  // namespace attn_diag
