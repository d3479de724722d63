// Decompositions of small matrices, of which each takes seconds to compile.
#pragma once

#include <Eigen/Core>

namespace attn_diag::matching {

// The x of the least |left x - right|, by QR with column pivoting.
Eigen::VectorXd least_squares(const Eigen::MatrixXd& left, const Eigen::VectorXd& right);
// From the greatest down, as many as `matrix` has rows or columns, whichever are fewer.
Eigen::VectorXd singular_values(const Eigen::MatrixXd& matrix);
// The x of length 1 and the least |matrix x|. `matrix` has no fewer rows than columns.
Eigen::VectorXd nearest_to_kernel(const Eigen::MatrixXd& matrix);

}  // namespace attn_diag::matching
