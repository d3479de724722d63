#include "reference/product.h"

#include <algorithm>
#include <cmath>

#include "attn_diag/reference/vector.h"

namespace attn_diag::reference {
namespace {

// kCount rows of c, one panel: all of it, or its first `columns`.
template <int kCount, bool kWhole>
inline void multiply_rows(const double* a, std::int64_t a_stride, std::int32_t depth,
                          const double* panel, std::int32_t columns, double* c,
                          std::int64_t c_stride) {
  Vector sum[kCount][kPanelVectors] = {};
  for (std::int32_t k = 0; k < depth; ++k, panel += kPanelWidth) {
    Vector b[kPanelVectors];
    for (int j = 0; j < kPanelVectors; ++j) b[j] = load(panel + j * kLanes);
    for (int i = 0; i < kCount; ++i)
      for (int j = 0; j < kPanelVectors; ++j) sum[i][j] += a[i * a_stride + k] * b[j];
  }
  for (int i = 0; i < kCount; ++i) {
    double whole[kPanelWidth];
    double* const to = kWhole ? c + i * c_stride : whole;
    for (int j = 0; j < kPanelVectors; ++j) store(to + j * kLanes, sum[i][j]);
    if (!kWhole) std::copy_n(whole, columns, c + i * c_stride);
  }
}

template <bool kWhole>
void multiply_panel(const double* a, std::int64_t a_stride, std::int32_t rows, std::int32_t depth,
                    const double* panel, std::int32_t columns, double* c, std::int64_t c_stride) {
  std::int32_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce)
    multiply_rows<kRowsAtOnce, kWhole>(a + r * a_stride, a_stride, depth, panel, columns,
                                       c + r * c_stride, c_stride);
  for (; r + 2 <= rows; r += 2)
    multiply_rows<2, kWhole>(a + r * a_stride, a_stride, depth, panel, columns, c + r * c_stride,
                             c_stride);
  if (r < rows)
    multiply_rows<1, kWhole>(a + r * a_stride, a_stride, depth, panel, columns, c + r * c_stride,
                             c_stride);
}

}  // namespace

Panels::Panels(std::int32_t depth, std::int32_t columns) : depth_(depth), columns_(columns) {
  const std::int64_t panels = (columns + kPanelWidth - 1) / kPanelWidth;
  data_.assign(static_cast<std::size_t>(panels * depth * kPanelWidth), 0.0);
}

Panels Panels::abs() const {
  Panels result = *this;
  for (double& x : result.data_) x = std::fabs(x);
  return result;
}

void multiply(const double* a, std::int64_t a_stride, std::int32_t rows, std::int32_t depth,
              const Panels& b, std::int32_t depth_begin, std::int32_t column_begin,
              std::int32_t column_end, double* c, std::int64_t c_stride) {
  for (std::int32_t p = column_begin / kPanelWidth; p * kPanelWidth < column_end; ++p) {
    const double* const panel = b.panel(p) + std::int64_t{depth_begin} * kPanelWidth;
    const std::int32_t columns = b.columns() - p * kPanelWidth;
    double* const to = c + p * kPanelWidth;
    if (columns >= kPanelWidth)
      multiply_panel<true>(a, a_stride, rows, depth, panel, columns, to, c_stride);
    else
      multiply_panel<false>(a, a_stride, rows, depth, panel, columns, to, c_stride);
  }
}

}  // namespace attn_diag::reference
