// Which elements of a matrix a lane's fragment holds, on compute capability 8.0 to 9.0.
//
// CUDA does not promise this. It was read off the code that ptxas 13.0 makes of wmma loads for sm_80 and
// sm_90, which is the same for both; fixtures/wmma/layout_sm80.csv states it in full, and wmma_layout_probe
// compares it with a device. Loads from row-major and column-major memory give the same fragment.
//
// Elements lie in pairs. With g = lane / 4 and c = 2 (lane mod 4), a pair is (g, c), (g, c + 1) of an 8x8
// block: of A itself; of B transposed, so that its pairs run along k; of the accumulator, transposed too in
// m8n32k16. Fragments differ in which blocks they hold, in which order.
#pragma once

#include "attn_diag_host/matrix_calls.h"

namespace attn_diag::host {

struct MatrixCell {
  unsigned row, column;
};

struct MatrixExtent {
  unsigned m, n;
};
inline constexpr unsigned kMatrixK = 16;

constexpr MatrixExtent extent_of(MatrixShape shape) {
  return shape == MatrixShape::k16x16x16  ? MatrixExtent{16, 16}
         : shape == MatrixShape::k32x8x16 ? MatrixExtent{32, 8}
                                          : MatrixExtent{8, 32};
}

// CUDA's num_elements.
constexpr unsigned elements_of(FragmentKind kind) {
  const MatrixExtent extent = extent_of(kind.shape);
  if (kind.use == MatrixUse::kAccumulator) return 8;
  if (kind.type == MatrixType::kHalf) return 16;
  return (kind.use == MatrixUse::kA ? extent.m : extent.n) / 2;
}

// Those that are not copies of earlier ones; products read only these.
constexpr unsigned distinct_elements_of(MatrixUse use, MatrixShape shape) {
  const MatrixExtent extent = extent_of(shape);
  if (use == MatrixUse::kAccumulator) return 8;
  return (use == MatrixUse::kA ? extent.m : extent.n) / 2;
}

constexpr MatrixCell cell_of(MatrixUse use, MatrixShape shape, unsigned lane, unsigned element) {
  const unsigned g = lane / 4, c = 2 * (lane % 4) + element % 2;
  const unsigned pair = element % distinct_elements_of(use, shape) / 2;
  if (use == MatrixUse::kAccumulator) {
    switch (shape) {
      case MatrixShape::k16x16x16:
        return {g + 8 * (pair % 2), c + 8 * (pair / 2)};
      case MatrixShape::k32x8x16:
        return {g + 8 * pair, c};
      case MatrixShape::k8x32x16:
        return {c, g + 8 * pair};
    }
  }
  const MatrixExtent extent = extent_of(shape);
  const unsigned rows = use == MatrixUse::kA ? extent.m : extent.n;
  unsigned outer = g, k = c;
  if (rows == 8) {
    k += 8 * pair;
  } else if (rows == 16 && use == MatrixUse::kB) {
    k += 8 * (pair % 2);
    outer += 8 * (pair / 2);
  } else {
    outer += 8 * (pair % 2) + 16 * (pair / 4);
    k += 8 * (pair / 2 % 2);
  }
  return use == MatrixUse::kA ? MatrixCell{outer, k} : MatrixCell{k, outer};
}

}  // namespace attn_diag::host
