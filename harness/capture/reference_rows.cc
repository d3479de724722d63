#include "harness/capture/reference_rows.h"

namespace attn_diag {

reference::Options reference_options(const Capture& capture, int threads, bool bounds) {
  reference::Options options;
  options.tensors = 0;
  for (int t = 0; t < kNumTensors; ++t)
    if (capture.has(static_cast<Tensor>(t))) options.tensors |= tensor_bit(static_cast<Tensor>(t));
  options.bounds = bounds;
  options.mode = capture.isolated ? reference::BoundMode::kIsolate : reference::BoundMode::kPrefix;
  options.threads = threads;
  const auto& [origin, extent] = capture.region;
  options.batch_begin = static_cast<std::int32_t>(origin[0]);
  options.batch_end = static_cast<std::int32_t>(origin[0] + extent[0]);
  options.head_begin = static_cast<std::int32_t>(origin[1]);
  options.head_end = static_cast<std::int32_t>(origin[1] + extent[1]);
  options.query_begin = static_cast<std::int32_t>(origin[2]);
  options.query_end = static_cast<std::int32_t>(origin[2] + extent[2]);
  return options;
}

std::int64_t row_index(const Region& region, std::int64_t batch, std::int64_t head,
                       std::int64_t query) {
  const auto& [origin, extent] = region;
  return ((batch - origin[0]) * extent[1] + (head - origin[1])) * extent[2] + (query - origin[2]);
}

std::int64_t first_row(const Region& region, const reference::RowBlock& block) {
  return row_index(region, block.batch, block.head, block.query_begin);
}

}  // namespace attn_diag
