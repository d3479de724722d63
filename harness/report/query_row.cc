#include "harness/report/query_row.h"

#include <fmt/format.h>

#include "attn_diag/harness/error.h"
#include "attn_diag/reference/reference.h"

namespace attn_diag::report {
namespace {

void require_inside(const Region& region, std::int32_t batch, std::int32_t head,
                    std::int32_t query) {
  const std::array<std::int64_t, 3> at = {batch, head, query};
  const std::array<const char*, 3> axis = {"batch", "head", "query"};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t end = region.origin[i] + region.extent[i];
    if (at[i] >= region.origin[i] && at[i] < end) continue;
    throw Error(fmt::format("{} {} was not recorded: the capture holds {} {} to {}.", axis[i],
                            at[i], axis[i], region.origin[i], end - 1));
  }
}

}  // namespace

QueryRow row_of(const Capture& capture, const Tolerance& tolerance, std::int32_t batch,
                std::int32_t head, std::int32_t query) {
  require_inside(capture.region, batch, head, query);
  reference::Options options;
  options.mode = capture.isolated ? reference::BoundMode::kIsolate : reference::BoundMode::kPrefix;
  options.threads = 1;
  options.batch_begin = batch, options.batch_end = batch + 1;
  options.head_begin = head, options.head_end = head + 1;
  options.query_begin = query, options.query_end = query + 1;
  reference::Tensors oracle =
      reference::compute(capture.problem, capture.geometry, capture.arithmetic,
                         {capture.q.data(), capture.k.data(), capture.v.data()}, options);

  QueryRow row;
  row.batch = batch, row.head = head, row.query = query;
  for (std::size_t t = 0; t < kNumTensors; ++t) {
    if (!capture.tensors[t]) continue;
    const TensorData& data = *capture.tensors[t];
    RowTensor& out = row.tensors[t];
    if (data.shape.size() > 3) out.inner0 = data.shape[3];
    if (data.shape.size() > 4) out.inner1 = data.shape[4];
    const std::int64_t inner = out.inner0 * out.inner1;
    const std::int64_t first = row_index(capture.region, batch, head, query) * inner;
    for (std::int64_t i = 0; i < inner; ++i) out.actual.push_back(data.at(first + i));
    out.expected = std::move(oracle.value[t]);
    out.limit = std::move(oracle.bound[t]);
    out.limit.resize(out.expected.size());  // without bounds there are none
    const Limits limits(tolerance, data);
    for (std::size_t i = 0; i < out.limit.size(); ++i)
      out.limit[i] = limits.of(first + static_cast<std::int64_t>(i), out.limit[i], out.expected[i]);
  }
  return row;
}

}  // namespace attn_diag::report
