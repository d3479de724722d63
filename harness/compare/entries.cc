#include "harness/compare/entries.h"

#include <cstring>
#include <utility>

namespace attn_diag {
namespace {

// Rows of entry `batch`, the first `rows` of `all` of each head.
std::vector<std::byte> first_rows(const std::vector<std::byte>& from, const Problem& p,
                                  std::int64_t batch, std::int64_t heads, std::int64_t all,
                                  std::int64_t rows, std::int64_t dim) {
  const std::size_t row = static_cast<std::size_t>(dim) * size_of(p.dtype);
  const Strides in = dense_strides(p.layout, heads, all, dim),
                out = dense_strides(p.layout, heads, rows, dim);
  std::vector<std::byte> to(static_cast<std::size_t>(heads * rows) * row);
  const auto byte = [&](std::int64_t element) {
    return static_cast<std::size_t>(element) * size_of(p.dtype);
  };
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < rows; ++i)
      std::memcpy(to.data() + byte(h * out.head + i * out.seq),
                  from.data() + byte(batch * in.batch + h * in.head + i * in.seq), row);
  return to;
}

TensorData entry_of(const TensorData& whole, std::int64_t batch) {
  TensorData out;
  out.id = whole.id;
  out.dtype = whole.dtype;
  out.shape = whole.shape;
  out.origin.assign(whole.shape.size(), 0);
  const std::size_t bytes = whole.bytes.size() / static_cast<std::size_t>(whole.shape[0]);
  const std::byte* const from = whole.bytes.data() + static_cast<std::size_t>(batch) * bytes;
  out.shape[0] = 1;
  out.bytes.assign(from, from + bytes);
  return out;
}

}  // namespace

Capture entry_of(const Capture& capture, std::int64_t batch, std::int32_t keys) {
  const Problem& whole = capture.problem;
  Capture out;
  out.provenance = capture.provenance;
  out.exempt = capture.exempt;
  out.arithmetic = capture.arithmetic;
  Problem& p = out.problem = whole;
  p.batch = 1;
  p.seqlen_k = keys;
  out.region = attn_diag::whole(p);
  Geometry& g = out.geometry = capture.geometry;
  g.tiles_per_split = ceil_div(num_kv_tiles(p, g), g.num_splits);
  out.q = first_rows(capture.q, whole, batch, p.heads, p.seqlen_q, p.seqlen_q, p.head_dim);
  out.k = first_rows(capture.k, whole, batch, p.kv_heads, whole.seqlen_k, keys, p.head_dim);
  out.v = first_rows(capture.v, whole, batch, p.kv_heads, whole.seqlen_k, keys, p.head_dim_v);
  for (const Tensor t : {Tensor::kO, Tensor::kLse})
    if (capture.has(t)) out.tensors[static_cast<std::size_t>(t)] = entry_of(capture[t], batch);
  return out;
}

reference::Extras entry_of(const reference::Extras& extras, const Problem& problem,
                           std::int64_t batch, std::int32_t keys) {
  reference::Extras out;
  out.softcap = extras.softcap;
  if (extras.bias.empty()) return out;
  out.bias_heads = extras.bias_heads;
  const std::int64_t rows = std::int64_t{extras.bias_heads} * problem.seqlen_q;
  const float* row = extras.bias.data() +
                     (extras.bias_batch > 1 ? batch * rows * problem.seqlen_k : std::int64_t{0});
  for (std::int64_t i = 0; i < rows; ++i, row += problem.seqlen_k)
    out.bias.insert(out.bias.end(), row, row + keys);
  return out;
}

}  // namespace attn_diag
