// Where a run first leaves the reference.
#pragma once

#include <cstdint>
#include <optional>

#include "attn_diag/kernels/stage.h"

namespace attn_diag {

struct FirstDivergence {
  Stage stage = Stage::kQk;
  Tensor tensor = Tensor::kS;
  std::int64_t batch = 0, head = 0, query = 0, query_tile = 0;
  std::optional<std::int64_t> kv_tile, split, key, dim;  // where the tensor has or implies one
  double expected = 0, actual = 0, bound = 0;
  // Set if the finding is that the cell was written never (0) or more than once.
  std::optional<int> writes;
};

}  // namespace attn_diag
