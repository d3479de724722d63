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

// Copies rows [first_row, first_row + kRows) into a shared tile (kRows, kDim) of stride
// stride_of_16_bit(kDim); what lies outside the matrix is 0. kThreads threads do it, of which this is
// number `thread`. If the matrix is aligned, the copy is asynchronous: commit it, and wait for it.
template <int kThreads, int kRows, int kDim, class Element>
ATTN_DIAG_DEVICE void load_rows(Element* sTile, const RowMatrix<const Element>& matrix,
                                int first_row, int thread) {
  constexpr int kStride = stride_of_16_bit(kDim);
  if (matrix.aligned) {
    // A thread keeps to its column, and every kRowsAtOnce-th row.
    constexpr int kPieces = kDim / kPiece;
    constexpr int kRowsAtOnce = kThreads / kPieces;
    static_assert(kRowsAtOnce >= 1, "a row must not have more pieces than there are threads");
    const int thread_row = thread / kPieces;
    const int column = thread % kPieces * kPiece;
    if (kThreads % kPieces != 0 && thread_row >= kRowsAtOnce) return;
    Element* const s = sTile + thread_row * kStride + column;
    const Element* const g = matrix.g + (first_row + thread_row) * matrix.stride + column;
    const int rows = column < matrix.dim ? matrix.num_rows - first_row : 0;  // that are not 0
    for (int i = 0; i < ceil_div(kRows, kRowsAtOnce); ++i) {
      const int row = i * kRowsAtOnce + thread_row;
      if (kRows % kRowsAtOnce != 0 && row >= kRows) continue;
      if (row < rows)
        __pipeline_memcpy_async(s + i * kRowsAtOnce * kStride, g + i * kRowsAtOnce * matrix.stride,
                                16);
      else
        *reinterpret_cast<uint4*>(s + i * kRowsAtOnce * kStride) = uint4{0, 0, 0, 0};
    }
  } else {
    for (int i = thread; i < kRows * kDim; i += kThreads) {
      const int row = i / kDim;
      const int column = i % kDim;
      const bool exists = first_row + row < matrix.num_rows && column < matrix.dim;
      sTile[row * kStride + column] =
          exists ? matrix.g[(first_row + row) * matrix.stride + column] : from_float<Element>(0.0f);
    }
  }
}

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
