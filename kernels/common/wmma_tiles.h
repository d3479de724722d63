// Tensor-core tiles: the 16x16x16 fragments of the fused kernels, and the rows of the shared tiles
// that they are loaded from and stored to.
#pragma once

#include <mma.h>

#include "attn_diag/kernels/problem.h"

namespace attn_diag {

inline constexpr int kFragment = 16;  // rows and columns of every fragment

// C (16, 16) += A (16, 16) B (16, 16): 16-bit factors, fp32 sum.
template <class Element>
using RowMajorA = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kFragment, kFragment, kFragment,
                                         Element, nvcuda::wmma::row_major>;
template <class Element>
using RowMajorB = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kFragment, kFragment, kFragment,
                                         Element, nvcuda::wmma::row_major>;
// A tile whose rows are the columns of B: K, where B is K^T.
template <class Element>
using ColumnMajorB = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kFragment, kFragment, kFragment,
                                            Element, nvcuda::wmma::col_major>;
using Accumulator =
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kFragment, kFragment, kFragment, float>;

// Head dimensions are padded with zeros to whole fragments.
constexpr ATTN_DIAG_HD int padded_dim(int dim) { return ceil_div(dim, kFragment) * kFragment; }

// Row strides of shared tiles of that many columns, a multiple of 16. Fragments are loaded from 8
// rows at once, 16 bytes of each. Without padding, rows of 128 bytes would all start in the same
// bank; 16 bytes more a row put the 8 pieces into 8 different groups of 4 banks, for every multiple
// of 16 columns. With these strides, every 16th row starts at a multiple of 32 bytes, as load_matrix_sync
// demands.
constexpr ATTN_DIAG_HD int stride_of_16_bit(int columns) { return columns + 8; }
constexpr ATTN_DIAG_HD int stride_of_32_bit(int columns) { return columns + 4; }

}  // namespace attn_diag
