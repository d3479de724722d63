#include "harness/diagnose/decompositions.h"

#include <Eigen/QR>
#include <Eigen/SVD>

namespace attn_diag::matching {

using Svd = Eigen::JacobiSVD<Eigen::MatrixXd>;

Eigen::VectorXd least_squares(const Eigen::MatrixXd& left, const Eigen::VectorXd& right) {
  return left.colPivHouseholderQr().solve(right);
}

Eigen::VectorXd singular_values(const Eigen::MatrixXd& matrix) {
  return Svd(matrix).singularValues();
}

Eigen::VectorXd nearest_to_kernel(const Eigen::MatrixXd& matrix) {
  const Svd svd(matrix, Eigen::ComputeThinV);
  return svd.matrixV().col(svd.matrixV().cols() - 1);
}

}  // namespace attn_diag::matching
