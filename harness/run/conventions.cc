#include "harness/run/conventions.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

namespace attn_diag {
namespace {

std::optional<TensorData>& tensor(Capture& capture, Tensor t) {
  return capture.tensors[static_cast<std::size_t>(t)];
}

// Rounded once more, to what the tensor is stored in.
void multiply(Capture& capture, Tensor t, double factor) {
  std::optional<TensorData>& data = tensor(capture, t);
  if (!data || factor == 1.0) return;
  for (std::int64_t i = 0; i < data->size(); ++i)
    store_element(data->bytes.data(), data->dtype, i, data->at(i) * factor);
}

// What turns recorded scores into softmax_scale * q.k.
double score_factor(ScoreUnit unit, const Problem& problem) {
  switch (unit) {
    case ScoreUnit::kNatural:
      return 1.0;
    case ScoreUnit::kBase2:
      return std::numbers::ln2;
    case ScoreUnit::kUnscaled:
      return problem.softmax_scale;
  }
  return 1.0;
}

void multiply_back(Capture& capture, Tensor partial, Tensor divisor) {
  std::optional<TensorData>& data = tensor(capture, partial);
  if (!data) return;
  const std::optional<TensorData>& l = tensor(capture, divisor);
  if (!l) {
    const auto at = static_cast<std::size_t>(partial);
    data.reset();
    capture.coverage[at] = {};
    capture.exempt[at] = fmt::format(
        "it is divided by {}, which the kernel does not expose, so that it cannot be compared",
        name(divisor));
    return;
  }
  const std::int64_t dims = data->shape.back();
  for (std::int64_t i = 0; i < data->size(); ++i) {
    const double factor = l->at(i / dims);
    // A tile without a visible key: 0 / 0 is as good as 0.
    const double value = factor == 0.0 ? 0.0 : data->at(i) * factor;
    store_element(data->bytes.data(), data->dtype, i, value);
  }
}

}  // namespace

void apply_conventions(const Conventions& conventions, Capture& capture) {
  if (conventions.lse == LseConvention::kBase2) multiply(capture, Tensor::kLse, std::numbers::ln2);
  const double factor = score_factor(conventions.scores, capture.problem);
  for (const Tensor t : {Tensor::kS, Tensor::kM, Tensor::kRunningM}) multiply(capture, t, factor);
  if (!conventions.normalised_partials) return;
  for (const auto& [partial, divisor] :
       {std::pair{Tensor::kPartialO, Tensor::kL}, std::pair{Tensor::kRunningO, Tensor::kRunningL},
        std::pair{Tensor::kMergedO, Tensor::kMergedL}})
    multiply_back(capture, partial, divisor);
}

}  // namespace attn_diag
