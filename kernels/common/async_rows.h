// Rows of a matrix on their way between global and shared memory, by cp.async where they are aligned.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "attn_diag/kernels/tap.h"
#include "common/element.h"
#include "common/wmma_tiles.h"

namespace attn_diag {

// A (num_rows, dim) matrix in global memory.
template <class Element>
struct RowMatrix {
  Element* g;           // its first element
  std::int64_t stride;  // between rows
  int num_rows, dim;
  bool aligned;  // every row begins at a multiple of 16 bytes, and dim is one of 8
};

inline constexpr int kPiece = 8;  // 16-bit elements in 16 bytes

// Copies rows of a matrix into shared tiles (kRows, kDim) of stride stride_of_16_bit(kDim); what lies
// outside the matrix is 0. kThreads threads do it, of which this is number `thread`. If the matrix is
// aligned, the copy is asynchronous: commit it, and wait for it.
template <int kThreads, int kRows, int kDim, class Element>
class RowLoader {
 public:
  ATTN_DIAG_DEVICE RowLoader(const RowMatrix<const Element>& matrix, int thread)
      : x_matrix(matrix),
        x_thread(thread),
        x_row(thread / kPieces),
        x_column(thread % kPieces * kPiece),
        x_g(matrix.g + x_row * matrix.stride + x_column) {}

  // The tile of rows [first_row, first_row + kRows).
  ATTN_DIAG_DEVICE void load(Element* sTile, int first_row) const {
    if (x_matrix.aligned)
      load_pieces(sTile, first_row);
    else
      load_elements(sTile, first_row);
  }

 private:
  static constexpr int kStride = stride_of_16_bit(kDim);
  // If the matrix is aligned, a thread copies one piece of every kRowsAtOnce-th row.
  static constexpr int kPieces = kDim / kPiece;
  static constexpr int kRowsAtOnce = kThreads / kPieces;
  static_assert(kRowsAtOnce >= 1, "a row must not have more pieces than there are threads");

  ATTN_DIAG_DEVICE void load_pieces(Element* sTile, int first_row) const {
    if (kThreads % kPieces != 0 && x_row >= kRowsAtOnce) return;
    const int rows = x_column < x_matrix.dim ? x_matrix.num_rows - first_row : 0;  // that are not 0
    Element* const s = sTile + x_row * kStride + x_column;
    const Element* g = x_g + first_row * x_matrix.stride;
    for (int i = 0; i < ceil_div(kRows, kRowsAtOnce); ++i) {
      const int row = i * kRowsAtOnce + x_row;
      if (kRows % kRowsAtOnce != 0 && row >= kRows) break;
      if (row < rows)
        __pipeline_memcpy_async(s + i * kRowsAtOnce * kStride, g, 16);
      else
        *reinterpret_cast<uint4*>(s + i * kRowsAtOnce * kStride) = uint4{0, 0, 0, 0};
      g += kRowsAtOnce * x_matrix.stride;
    }
  }

  ATTN_DIAG_DEVICE void load_elements(Element* sTile, int first_row) const {
    for (int i = x_thread; i < kRows * kDim; i += kThreads) {
      const int row = i / kDim;
      const int column = i % kDim;
      const bool exists = first_row + row < x_matrix.num_rows && column < x_matrix.dim;
      sTile[row * kStride + column] = exists
                                          ? x_matrix.g[(first_row + row) * x_matrix.stride + column]
                                          : from_float<Element>(0.0f);
    }
  }

  RowMatrix<const Element> x_matrix;
  int x_thread, x_row, x_column;
  const Element* x_g;  // the first element of this thread's piece of row x_row
};

// Copies a shared tile of the same kind to rows [first_row, first_row + kRows), as far as they exist.
template <int kThreads, int kRows, int kDim, class Element>
ATTN_DIAG_DEVICE void store_rows(const RowMatrix<Element>& matrix, int first_row,
                                 const Element* sTile, int thread) {
  constexpr int kStride = stride_of_16_bit(kDim);
  const int rows =
      matrix.num_rows - first_row < kRows ? matrix.num_rows - first_row : kRows;  // may be negative
  if (matrix.aligned) {
    constexpr int kPieces = kDim / kPiece;
    for (int i = thread; i < rows * kPieces; i += kThreads) {
      const int row = i / kPieces;
      const int column = i % kPieces * kPiece;
      if (column < matrix.dim)
        *reinterpret_cast<uint4*>(matrix.g + (first_row + row) * matrix.stride + column) =
            *reinterpret_cast<const uint4*>(sTile + row * kStride + column);
    }
  } else {
    for (int i = thread; i < rows * kDim; i += kThreads) {
      const int row = i / kDim;
      const int column = i % kDim;
      if (column < matrix.dim)
        matrix.g[(first_row + row) * matrix.stride + column] = sTile[row * kStride + column];
    }
  }
}

}  // namespace attn_diag
