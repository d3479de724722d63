#include "harness/run/replacements.h"

#include <algorithm>

#include "harness/capture/oracle.h"
#include "harness/capture/reference_rows.h"

namespace attn_diag {

Replacements::Replacements(const Capture& of, std::uint32_t tensors)
    : x_region(of.region),
      x_tensors(tensors),
      x_rows(of.region.extent[0] * of.region.extent[1] * of.region.extent[2]) {
  for (const TensorInfo& tensor : kTensors) {
    if ((tensors & tensor_bit(tensor.id)) == 0) continue;
    const auto at = static_cast<std::size_t>(tensor.id);
    const auto shape = tensor_shape(tensor.id, of.problem, of.geometry);
    x_inner[at] = 1;
    for (std::size_t i = 3; i < shape.size(); ++i) x_inner[at] *= shape[i];
    x_values[at].resize(static_cast<std::size_t>(x_rows * x_inner[at]));
  }
}

void Replacements::take(const reference::RowBlock& block) {
  const std::int64_t row = first_row(x_region, block);
  for (std::size_t t = 0; t < kNumTensors; ++t) {
    if ((x_tensors & tensor_bit(static_cast<Tensor>(t))) == 0 || block.value[t] == nullptr)
      continue;
    std::transform(block.value[t], block.value[t] + block.rows * x_inner[t],
                   x_values[t].begin() + row * x_inner[t],
                   [](double x) { return static_cast<float>(x); });
    x_taken += block.rows;
  }
}

bool Replacements::complete() const {
  std::int64_t needed = 0;
  for (std::size_t t = 0; t < kNumTensors; ++t)
    if ((x_tensors & tensor_bit(static_cast<Tensor>(t))) != 0) needed += x_rows;
  return x_taken == needed;
}

std::shared_ptr<Replacements> make_replacements(const Capture& of, std::uint32_t tensors,
                                                int threads) {
  auto out = std::make_shared<Replacements>(of, tensors);
  if (tensors == 0) return out;
  reference::Options options = reference_options(of, threads, false);
  options.tensors = tensors;
  for_each_row_block(of, options, [&](const reference::RowBlock& block) { out->take(block); });
  return out;
}

}  // namespace attn_diag
