// partial_o = P V of every tile of one row.
#include <algorithm>

#include "reference/counterfactual/evaluator.h"
#include "reference/counterfactual/weighted_rows.h"

namespace attn_diag::reference {

void Evaluator::product(const Row& row, RowState& state) {
  const std::int64_t dim = dim_v_;
  state.partial_o.assign(static_cast<std::size_t>(tiles_ * dim), 0.0);
  state.partial_o_error.assign(static_cast<std::size_t>(tiles_ * dim), 0.0);
  const KeyRange seen = counted_keys(row.query);
  for (std::int32_t t = 0; t < tiles_; ++t) {
    const KeyRange keys = c_.has(Tensor::kS) ? slots_of_tile(t) : intersect(slots_of_tile(t), seen);
    if (keys.empty()) continue;
    add_weighted_rows(state.p.data() + keys.begin, state.o_weight.data() + keys.begin,
                      v_.data + keys.begin * v_.stride, v_.stride, keys.size(), dim_v_,
                      state.partial_o.data() + t * dim, state.partial_o_error.data() + t * dim);
  }
}

}  // namespace attn_diag::reference
