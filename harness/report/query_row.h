// One query's row of every tensor of a capture, with the reference's values and bounds beside it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "harness/compare/judgement.h"

namespace attn_diag::report {

struct RowTensor {
  // Dense over the axes that follow (batch, head, query); empty where the capture does not have it.
  std::vector<double> actual, expected, limit;
  std::int64_t inner0 = 1, inner1 = 1;
};

struct QueryRow {
  std::int32_t batch = 0, head = 0, query = 0;
  std::array<RowTensor, kNumTensors> tensors;

  const RowTensor& operator[](Tensor t) const { return tensors[static_cast<std::size_t>(t)]; }
};

// Computes the reference for this row only. Throws Error where the capture does not hold the row.
QueryRow row_of(const Capture& capture, const Tolerance& tolerance, std::int32_t batch,
                std::int32_t head, std::int32_t query);

}  // namespace attn_diag::report
