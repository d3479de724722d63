#include "harness/diagnose/evidence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/capture/reference_rows.h"

namespace attn_diag::matching {

Evidence::Evidence(const Capture& capture, std::vector<Tensor> tensors)
    : x_capture(&capture), x_tensors(std::move(tensors)) {
  for (const Tensor t : x_tensors) {
    x_mask |= tensor_bit(t);
    std::int64_t cells = 1;
    const std::vector<std::int64_t>& shape = capture[t].shape;
    for (std::size_t i = 3; i < shape.size(); ++i) cells *= shape[i];
    x_cells[static_cast<std::size_t>(t)] = cells;
  }
  const auto& extent = capture.region.extent;
  x_wrong.assign(static_cast<std::size_t>(extent[0] * extent[1] * extent[2]), 0);
}

reference::RowIndex Evidence::row(std::int64_t flat) const {
  const auto& [origin, extent] = x_capture->region;
  return {static_cast<std::int32_t>(origin[0] + flat / (extent[1] * extent[2])),
          static_cast<std::int32_t>(origin[1] + flat / extent[2] % extent[1]),
          static_cast<std::int32_t>(origin[2] + flat % extent[2])};
}

std::vector<double> Evidence::read(Tensor t, std::span<const std::int64_t> flat) const {
  const TensorData& data = (*x_capture)[t];
  const std::int64_t n = cells(t);
  std::vector<double> values(flat.size() * static_cast<std::size_t>(n));
  double* out = values.data();
  for (const std::int64_t row : flat)
    for (std::int64_t i = 0; i < n; ++i) *out++ = data.at(row * n + i);
  return values;
}

std::vector<std::uint8_t> Evidence::written(Tensor t, std::span<const std::int64_t> flat) const {
  const bool is_output = t == Tensor::kO || t == Tensor::kLse;
  const std::string& backend = x_capture->provenance.backend;
  if (!is_output || (backend != "host" && backend != "cuda")) return {};
  const std::int64_t n = cells(t);
  std::vector<std::uint8_t> out(flat.size() * static_cast<std::size_t>(n), 1);
  if (x_capture->coverage[static_cast<std::size_t>(t)].never == 0) return out;
  const TensorData& data = (*x_capture)[t];
  std::uint8_t* cell = out.data();
  for (const std::int64_t row : flat)
    for (std::int64_t i = 0; i < n; ++i) *cell++ = std::isnan(data.at(row * n + i)) ? 0 : 1;
  return out;
}

void Evidence::mark_wrong(const Comparison& comparison) {
  for (const TensorComparison& t : comparison.tensors) {
    if (std::find(x_tensors.begin(), x_tensors.end(), t.tensor) == x_tensors.end()) continue;
    for (const TensorComparison::WrongRow& row : t.wrong_rows)
      mark_wrong(row_index(x_capture->region, row.batch, row.head, row.query));
  }
}

std::int64_t Evidence::wrong_rows() const {
  return std::count(x_wrong.begin(), x_wrong.end(), std::uint8_t{1});
}

}  // namespace attn_diag::matching
