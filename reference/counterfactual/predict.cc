#include <algorithm>
#include <span>

#include "reference/counterfactual/evaluator.h"

namespace attn_diag::reference {
namespace {

struct Cells {
  const std::vector<double>*value, *error;
};

Cells cells_of(const RowState& s, Tensor t) {
  switch (t) {
    case Tensor::kS:
      return {&s.s, &s.s_error};
    case Tensor::kM:
      return {&s.m, &s.m_error};
    case Tensor::kL:
      return {&s.l, &s.l_error};
    case Tensor::kP:
      return {&s.p, &s.o_weight};
    case Tensor::kPartialO:
      return {&s.partial_o, &s.partial_o_error};
    case Tensor::kRunningM:
      return {&s.running_m, &s.running_m_error};
    case Tensor::kRunningL:
      return {&s.running_l, &s.running_l_error};
    case Tensor::kRunningO:
      return {&s.running_o, &s.running_o_error};
    case Tensor::kMergedL:
      return {&s.merged_l, &s.merged_l_error};
    case Tensor::kMergedO:
      return {&s.merged_o, &s.merged_o_error};
    case Tensor::kO:
      return {&s.o, &s.o_error};
    case Tensor::kLse:
      break;
  }
  return {nullptr, nullptr};
}

bool wants(std::uint32_t tensors, Tensor t) { return (tensors >> static_cast<int>(t) & 1u) != 0; }

bool defined(const Case::Data& c, Tensor t) {
  return c.geometry.has_split_merge || (t != Tensor::kMergedL && t != Tensor::kMergedO);
}

}  // namespace

void predict(const Case& c, std::span<const Row> rows, const Deviation& deviation,
             std::uint32_t tensors, Prediction& out) {
  const Case::Data& data = c.data();
  for (const TensorInfo& t : kTensors) {
    Prediction::Values& values = out[t.id];
    const std::size_t cells = wants(tensors, t.id) && defined(data, t.id)
                                  ? rows.size() * static_cast<std::size_t>(data.cells_per_row(t.id))
                                  : 0;
    values.value.resize(cells);
    values.bound.resize(cells);
    values.known.assign(cells, 1);
  }
  Evaluator evaluator(data, deviation, tensors);
  RowState state;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    evaluator.evaluate(rows[r], state);
    for (const TensorInfo& t : kTensors) {
      Prediction::Values& values = out[t.id];
      if (values.value.empty()) continue;
      if (t.id == Tensor::kLse) {
        values.value[r] = state.lse;
        values.bound[r] = state.lse_error * kRoom;
        continue;
      }
      const Cells cells = cells_of(state, t.id);
      const std::size_t n = values.value.size() / rows.size();
      std::copy_n(cells.value->data(), n, values.value.data() + r * n);
      std::transform(cells.error->data(), cells.error->data() + n, values.bound.data() + r * n,
                     [](double e) { return e * kRoom; });
    }
  }
}

}  // namespace attn_diag::reference
