// What a diagnosis compares predictions with: the recorded numbers of some tensors, row by row, and
// which rows are wrong. A row is one query of one head of one batch entry.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/reference/counterfactual.h"
#include "harness/run/run_plan.h"

namespace attn_diag::matching {

class Evidence {
 public:
  // The capture outlives this and has every one of `tensors`.
  Evidence(const Capture& capture, std::vector<Tensor> tensors);

  const Capture& capture() const { return *x_capture; }
  const std::vector<Tensor>& tensors() const { return x_tensors; }
  std::uint32_t mask() const { return x_mask; }
  bool has(Tensor t) const { return (x_mask & tensor_bit(t)) != 0; }

  // Rows of the capture's region, in the order (batch, head, query).
  std::int64_t rows() const { return static_cast<std::int64_t>(x_wrong.size()); }
  reference::RowIndex row(std::int64_t flat) const;
  // Cells of a tensor per row.
  std::int64_t cells(Tensor t) const { return x_cells[static_cast<std::size_t>(t)]; }
  // The recorded values of rows, [row][cell].
  std::vector<double> read(Tensor t, std::span<const std::int64_t> flat) const;
  // Whether those cells were written. Empty where that is not known: it is known for o and lse of a kernel that
  // attn-diag ran, which began as NaN. A NaN counts as unwritten if any cell is.
  std::vector<std::uint8_t> written(Tensor t, std::span<const std::int64_t> flat) const;

  // Marks the rows that a comparison found wrong in one of the tensors.
  void mark_wrong(const Comparison& comparison);
  void mark_wrong(std::int64_t flat) { x_wrong[static_cast<std::size_t>(flat)] = 1; }
  bool wrong(std::int64_t flat) const { return x_wrong[static_cast<std::size_t>(flat)] != 0; }
  std::int64_t wrong_rows() const;

 private:
  const Capture* x_capture;
  std::vector<Tensor> x_tensors;
  std::uint32_t x_mask = 0;
  std::array<std::int64_t, kNumTensors> x_cells{};
  std::vector<std::uint8_t> x_wrong;
};

}  // namespace attn_diag::matching
