// What invariants of a capture and those by further runs share.
#pragma once

#include <vector>

#include "attn_diag/harness/numerics.h"

namespace attn_diag {

// A cell where an invariant does not hold.
struct BrokenCell {
  std::int64_t row = 0;  // of the region
  Tensor tensor = Tensor::kO;
  std::array<std::int64_t, 5> index{};
  double actual = 0, expected = 0, limit = 0;
};

InvariantResult not_tried(Invariant invariant, std::string why);

}  // namespace attn_diag
