// Matrix products of the oracle: K and V are packed once per head, in the order in which the
// product reads them, because packing at every product (as a general library must) would cost as much
// as a third of it.
#pragma once

#include <cstdint>
#include <vector>

#include <Eigen/Core>

#include "attn_diag/reference/vector.h"

namespace attn_diag::reference {

// Vectors of a row of c that are summed at once. With kRowsAtOnce rows they fill the vector
// registers (32 with AVX-512, else 16) but for a few operands.
inline constexpr int kPanelVectors = kLanes == 8 ? 4 : 2;
inline constexpr int kPanelWidth = kPanelVectors * kLanes;
inline constexpr int kRowsAtOnce = 6;

// A (depth, columns) matrix in panels of a few columns: [panel][depth][width], padded with zeros.
class Panels {
 public:
  Panels() = default;
  Panels(std::int32_t depth, std::int32_t columns);

  std::int32_t depth() const { return depth_; }
  std::int32_t columns() const { return columns_; }

  double& at(std::int32_t row, std::int32_t column) {
    return data_[static_cast<std::size_t>(offset(row, column))];
  }
  double at(std::int32_t row, std::int32_t column) const {
    return data_[static_cast<std::size_t>(offset(row, column))];
  }
  // Every element's magnitude.
  Panels abs() const;

  const double* panel(std::int32_t index) const {
    return data_.data() + std::int64_t{index} * depth_ * kPanelWidth;
  }

 private:
  std::int64_t offset(std::int32_t row, std::int32_t column) const {
    return (std::int64_t{column / kPanelWidth} * depth_ + row) * kPanelWidth + column % kPanelWidth;
  }

  std::int32_t depth_ = 0, columns_ = 0;
  std::vector<double, Eigen::aligned_allocator<double>> data_;
};

// c = a * b for the rows [depth_begin, depth_begin + depth) of b:
//   a  (rows, depth), rows `a_stride` apart
//   c  (rows, b.columns()), rows `c_stride` apart; columns outside the panels that touch
//      [column_begin, column_end) are left alone
void multiply(const double* a, std::int64_t a_stride, std::int32_t rows, std::int32_t depth,
              const Panels& b, std::int32_t depth_begin, std::int32_t column_begin,
              std::int32_t column_end, double* c, std::int64_t c_stride);

}  // namespace attn_diag::reference
