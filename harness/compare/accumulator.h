// Gathers the judgements of runs of cells into a TensorComparison. Several accumulators of one tensor
// may work at once, on different cells in any order; the merged result does not depend on the order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/kernels/geometry.h"
#include "harness/compare/limits.h"

namespace attn_diag {

struct EachCell;  // compare_cells.h

// The recorded part of a tensor: cells dense row-major over shape, the first at origin (absolute).
struct CellGrid {
  CellGrid(Tensor id, std::vector<std::int64_t> shape, std::vector<std::int64_t> origin,
           const TileShape& tile);

  std::int64_t size() const { return rows * row_cells; }
  std::array<std::int64_t, 5> index_of(std::int64_t at) const;  // absolute

  Tensor id;
  std::vector<std::int64_t> shape, origin;
  std::int64_t rows = 1;       // (batch, head, query)
  std::int64_t row_cells = 1;  // cells of a row, contiguous
  std::int64_t run_cells =
      1;  // cells of a row on one KV tile, contiguous; all of a row without one
  std::int64_t block_m = 1;
  std::array<std::int64_t, 4> picture_shape{};  // as in TensorComparison
};

// The error picture of one tensor, shared by its accumulators.
struct SharedPicture {
  explicit SharedPicture(const CellGrid& grid);
  std::mutex mutex;
  std::vector<TileError> tiles;
};

// Cells in memory.
struct TypedCells {
  const void* data = nullptr;
  DType dtype = DType::kFp32;
};

class CellAccumulator {
 public:
  // `storage`: the type that ULPs are counted in. All of them are kept by reference and outlive this.
  CellAccumulator(const CellGrid& grid, SharedPicture& picture, DType storage);

  // Judges the n cells from the flat index `at` on. Pointers are to the first of them.
  void add(std::int64_t at, std::int64_t n, TypedCells actual, TypedCells expected,
           const AbsoluteRelativeLimit& limit);
  void add(std::int64_t at, std::int64_t n, TypedCells actual, TypedCells expected,
           const ArrayLimit& limit);

  // Cells that were found wrong so far.
  std::int64_t mismatched() const { return x_sums.mismatched; }

  // Hands the last tiles to the picture. Nothing may be added after it.
  void finish();

 private:
  friend TensorComparison merge(const CellGrid&, SharedPicture&&,
                                std::span<const CellAccumulator* const>);

  // The largest value so far, and the flat index of its cell (-1: none yet).
  struct Maximum {
    double value = 0;
    std::int64_t at = -1;
  };
  struct WrongRow {
    std::int64_t row = -1, mismatched = 0;
    double max_ratio = 0;
  };

  template <class Limit>
  void add_pieces(std::int64_t at, std::int64_t n, TypedCells actual, TypedCells expected,
                  const Limit& limit);
  template <class A, class E, class Limit>
  void add_row_part(std::int64_t at, std::int64_t n, const A* actual, const E* expected,
                    const Limit& limit);
  template <class A, class E, class Limit>
  CellFindings add_run(std::int64_t at, std::int64_t n, const A* actual, const E* expected,
                       const Limit& limit, const EachCell* each);
  bool add_identical_run(std::int64_t at, std::int64_t n, const float* actual,
                         const float* expected, const AbsoluteRelativeLimit& limit);
  static bool beaten_by(double value, std::int64_t at, const Maximum& so_far);
  template <class A, class E, class Limit>
  void note_places(std::int64_t at, std::int64_t n, const A* actual, const E* expected,
                   const Limit& limit, const CellFindings& f);
  void start_row(std::int64_t row);
  void flush_row();
  void flush_tiles();

  const CellGrid& x_grid;
  SharedPicture& x_picture;
  UlpScale x_ulp;

  std::int64_t x_compared = 0;
  CellFindings x_sums;              // maxima without places
  float x_identical_magnitude = 0;  // largest among runs that are bit for bit the same
  Maximum x_worst, x_abs, x_rel;
  std::int64_t x_first = -1;
  Mismatch x_first_cell, x_worst_cell;
  WrongRow x_row;
  std::vector<WrongRow> x_wrong_rows;
  std::int64_t x_tile_row = -1;  // (batch, head, query tile) that x_tiles belong to
  std::vector<TileError> x_tiles;
  std::vector<double> x_each_ratio;
  std::vector<std::int64_t> x_each_passes;
};

// The whole tensor's comparison from its finished accumulators.
TensorComparison merge(const CellGrid& grid, SharedPicture&& picture,
                       std::span<const CellAccumulator* const> parts);

}  // namespace attn_diag
