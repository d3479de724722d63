// Views of plain memory as Eigen matrices and arrays.
#pragma once

#include <Eigen/Core>

namespace attn_diag::reference {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
using MatrixIn = Eigen::Map<const Matrix, 0, Stride>;
using MatrixOut = Eigen::Map<Matrix, 0, Stride>;
using RowIn = Eigen::Map<const Eigen::ArrayXd>;
using RowOut = Eigen::Map<Eigen::ArrayXd>;

}  // namespace attn_diag::reference
