#include "harness/trace/find_first_divergence.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "attn_diag/reference/reference.h"

namespace attn_diag {
namespace {

using Index = std::array<std::int64_t, 5>;

const TensorComparison* find(const Comparison& comparison, Tensor t) {
  for (const TensorComparison& tensor : comparison.tensors)
    if (tensor.tensor == t) return &tensor;
  return nullptr;
}

// The only KV tile with a key that the query sees; nullopt if there are several or none.
std::optional<std::int64_t> only_visible_tile(const Capture& capture, std::int64_t query) {
  const Problem& p = capture.problem;
  std::optional<std::int64_t> only;
  for (std::int32_t key = 0; key < p.seqlen_k; ++key) {
    if (!reference::visible(p, static_cast<std::int32_t>(query), key)) continue;
    const std::int64_t tile = key / capture.geometry.tile.block_n;
    if (only && *only != tile) return std::nullopt;
    only = tile;
  }
  return only;
}

// Batch, head, query, and what the tensor's other axes say.
FirstDivergence place(const Capture& capture, Tensor t, const Index& index) {
  const Geometry& g = capture.geometry;
  FirstDivergence out;
  out.stage = stage_of(t);
  out.tensor = t;
  out.batch = index[0];
  out.head = index[1];
  out.query = index[2];
  out.query_tile = index[2] / g.tile.block_m;
  const TensorInfo& tensor = info(t);
  for (std::size_t i = 3; i < static_cast<std::size_t>(tensor.rank); ++i) {
    switch (tensor.axes[i]) {
      case Axis::kKey:
        out.key = index[i];
        out.kv_tile = index[i] / g.tile.block_n;
        break;
      case Axis::kKvTile:
        out.kv_tile = index[i];
        break;
      case Axis::kSplit:
        // A split may be empty: then its first tile would be one that is not there.
        out.split = index[i];
        if (index[i] * g.tiles_per_split < num_kv_tiles(capture.problem, g))
          out.kv_tile = index[i] * g.tiles_per_split;
        break;
      default:
        out.dim = index[i];
    }
  }
  if (t == Tensor::kO || t == Tensor::kLse) out.kv_tile = only_visible_tile(capture, index[2]);
  if (out.kv_tile && !out.split && (g.has_split_merge || g.num_splits > 1))
    out.split = *out.kv_tile / g.tiles_per_split;
  return out;
}

}  // namespace

std::optional<FirstDivergence> find_first_divergence(const Capture& capture,
                                                     const Comparison& comparison) {
  for (const TensorInfo& tensor : kTensors) {
    const TensorComparison* compared = find(comparison, tensor.id);
    const Mismatch* mismatch = compared != nullptr && compared->mismatched > 0 && compared->first
                                   ? &*compared->first
                                   : nullptr;
    const Coverage& coverage = capture.coverage[static_cast<std::size_t>(tensor.id)];
    const CoverageFault* uncovered = nullptr;
    for (const auto& fault : {&coverage.first_never, &coverage.first_repeated}) {
      if (fault->has_value() && (uncovered == nullptr || (*fault)->index < uncovered->index))
        uncovered = &**fault;
    }
    if (mismatch == nullptr && uncovered == nullptr) continue;
    // A cell that was not written once has no value worth judging: on a tie, coverage is the news.
    const bool by_coverage =
        uncovered != nullptr && (mismatch == nullptr || uncovered->index <= mismatch->index);
    FirstDivergence first =
        place(capture, tensor.id, by_coverage ? uncovered->index : mismatch->index);
    if (by_coverage) first.writes = uncovered->writes;
    if (mismatch != nullptr && (!by_coverage || mismatch->index == uncovered->index)) {
      first.expected = mismatch->expected;
      first.actual = mismatch->actual;
      first.bound = mismatch->limit;
    }
    return first;
  }
  return std::nullopt;
}

bool stage_diverges(Stage stage, const Capture& capture, const Comparison& comparison) {
  for (const TensorInfo& tensor : kTensors) {
    if (tensor.stage != stage) continue;
    const Coverage& coverage = capture.coverage[static_cast<std::size_t>(tensor.id)];
    const TensorComparison* compared = find(comparison, tensor.id);
    if (coverage.never > 0 || coverage.repeatedly > 0 ||
        (compared != nullptr && compared->mismatched > 0))
      return true;
  }
  return false;
}

Comparison of_stage(const Comparison& comparison, Stage stage) {
  Comparison out;
  out.unjudged_because = comparison.unjudged_because;
  std::copy_if(comparison.tensors.begin(), comparison.tensors.end(),
               std::back_inserter(out.tensors),
               [&](const TensorComparison& t) { return stage_of(t.tensor) == stage; });
  return out;
}

}  // namespace attn_diag
