#include "harness/compare/error_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>

#include "attn_diag/reference/reference.h"
#include "harness/capture/oracle.h"
#include "harness/capture/reference_rows.h"
#include "harness/compare/judgement.h"
#include "harness/compare/ulps.h"

namespace attn_diag {
namespace {

constexpr std::int64_t kMostBins = 128;  // of a map, down and across
constexpr std::size_t kMostHeads = 4;
constexpr std::int64_t kWindowColumns = 64, kWindowCells = 4096;

const std::array<double, ErrorHistogram::kEdges>& limit_edges() {
  static const auto edges = [] {
    std::array<double, ErrorHistogram::kEdges> e{};
    for (int i = 0; i < ErrorHistogram::kEdges; ++i)
      e[static_cast<std::size_t>(i)] = std::pow(10.0, ErrorHistogram::kFirstExponent + i / 2.0);
    return e;
  }();
  return edges;
}

std::size_t limit_bin(double ratio) {
  if (ratio == 0) return 0;
  if (!std::isfinite(ratio)) return ErrorHistogram::kEdges + 2;
  const auto& edges = limit_edges();
  return 1 + static_cast<std::size_t>(std::lower_bound(edges.begin(), edges.end(), ratio) -
                                      edges.begin());
}

// The axis along which cells of a row lie next to each other; kQuery where a row is one cell.
Axis last_axis(Tensor t) {
  const TensorInfo& tensor = info(t);
  return tensor.rank > 3 ? tensor.axes[static_cast<std::size_t>(tensor.rank) - 1] : Axis::kQuery;
}

std::int64_t columns_of(const TensorData& data) {
  return data.shape.size() > 3 ? data.shape.back() : 1;
}
std::int64_t cells_of_row(const TensorData& data) {
  std::int64_t cells = 1;
  for (std::size_t i = 3; i < data.shape.size(); ++i) cells *= data.shape[i];
  return cells;
}

const TensorComparison* first_wrong(const Comparison& comparison) {
  for (const TensorComparison& t : comparison.tensors)
    if (t.mismatched > 0) return &t;
  return nullptr;
}

std::vector<std::array<std::int64_t, 2>> heads_to_show(const Capture& capture,
                                                       const TensorComparison* wrong) {
  if (wrong == nullptr) return {{capture.region.origin[0], capture.region.origin[1]}};
  std::vector<std::array<std::int64_t, 2>> heads;
  for (const TensorComparison::WrongRow& row : wrong->wrong_rows) {
    const std::array<std::int64_t, 2> head = {row.batch, row.head};
    if (std::find(heads.begin(), heads.end(), head) == heads.end()) heads.push_back(head);
    if (heads.size() == kMostHeads) break;
  }
  if (heads.empty() && wrong->first)
    heads.push_back({wrong->first->index[0], wrong->first->index[1]});
  return heads;
}

ErrorMap empty_map(const Capture& capture, Tensor tensor, std::array<std::int64_t, 2> head) {
  ErrorMap map;
  map.tensor = tensor;
  map.batch = head[0], map.head = head[1];
  map.across = last_axis(tensor);
  map.first_query = capture.region.origin[2];
  map.queries = capture.region.extent[2];
  map.columns = columns_of(capture[tensor]);
  map.by_query = (map.queries + kMostBins - 1) / kMostBins;
  map.by_column = (map.columns + kMostBins - 1) / kMostBins;
  map.worst.assign(static_cast<std::size_t>(map.down() * map.wide()), -1.0F);
  return map;
}

// Around a cell, whole tiles of columns; within what was recorded.
CellWindow window_around(const Capture& capture, Tensor tensor,
                         const std::array<std::int64_t, 5>& index) {
  CellWindow window;
  window.tensor = tensor;
  window.first = index;
  const std::int64_t wide = columns_of(capture[tensor]);
  window.columns = std::min(wide, kWindowColumns);
  const std::int64_t first = capture.region.origin[2], queries = capture.region.extent[2];
  window.rows = std::min(queries, kWindowCells / window.columns);
  const std::int64_t down = (index[2] - first) / window.rows * window.rows;
  window.first[2] = first + std::min(down, queries - window.rows);
  if (info(tensor).rank > 3) {
    std::int64_t& column = window.first[static_cast<std::size_t>(info(tensor).rank) - 1];
    column = std::min(column / window.columns * window.columns, wide - window.columns);
  }
  const auto cells = static_cast<std::size_t>(window.rows * window.columns);
  for (auto* const values : {&window.actual, &window.expected, &window.limit})
    values->assign(cells, 0.0);
  return window;
}

class Collector {
 public:
  Collector(const Capture& capture, const Comparison& comparison, const Tolerance& tolerance)
      : x_capture(capture), x_tolerance(tolerance) {
    const TensorComparison* const wrong = first_wrong(comparison);
    x_out.heads = heads_to_show(capture, wrong);
    for (const TensorComparison& t : comparison.tensors) {
      ErrorHistogram histogram;
      histogram.tensor = t.tensor;
      histogram.storage = storage_of(t.tensor, capture);
      x_out.histograms.push_back(histogram);
      for (std::size_t i = 0; i < x_out.heads.size(); ++i)
        if (i == 0 || t.tensor == Tensor::kO || (wrong != nullptr && t.tensor == wrong->tensor))
          x_out.maps.push_back(empty_map(capture, t.tensor, x_out.heads[i]));
      add_windows(t, &t == wrong);
    }
  }

  // Called from several threads at once.
  void visit(const reference::RowBlock& block) {
    for (ErrorHistogram& histogram : x_out.histograms) {
      const auto t = static_cast<std::size_t>(histogram.tensor);
      if (block.value[t] != nullptr) add(block, histogram);
    }
  }

  ErrorMaps finish() { return std::move(x_out); }

 private:
  void add_windows(const TensorComparison& t, bool is_first_wrong) {
    if (!is_first_wrong && t.tensor != Tensor::kO) return;
    std::array<std::int64_t, 5> middle{};
    std::copy(x_capture.region.origin.begin(), x_capture.region.origin.end(), middle.begin());
    if (t.first) middle = t.first->index;
    x_out.windows.push_back(window_around(x_capture, t.tensor, middle));
    if (!is_first_wrong || !t.worst) return;
    const CellWindow worst = window_around(x_capture, t.tensor, t.worst->index);
    if (worst.first != x_out.windows.back().first) x_out.windows.push_back(worst);
  }

  void add(const reference::RowBlock& block, ErrorHistogram& histogram) {
    const Tensor id = histogram.tensor;
    const auto t = static_cast<std::size_t>(id);
    const TensorData& data = x_capture[id];
    const Limits limits(x_tolerance, data);
    const std::int64_t row_cells = cells_of_row(data), wide = columns_of(data);
    const std::int64_t at = first_row(x_capture.region, block) * row_cells;
    const bool over_keys = last_axis(id) == Axis::kKey;
    ErrorHistogram part;
    std::vector<float> worst(static_cast<std::size_t>(wide));
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::fill(worst.begin(), worst.end(), -1.0F);
      for (std::int64_t i = 0; i < row_cells; ++i) {
        const std::int64_t in_block = row * row_cells + i, cell = at + in_block;
        const double actual = data.at(cell), expected = block.value[t][in_block];
        const double bound = block.bound[t] == nullptr ? 0.0 : block.bound[t][in_block];
        const double limit = limits.of(cell, bound, expected);
        const Judgement judged = judge_cell(actual, expected, limit);
        keep(block, row, i, id, {actual, expected, limit});
        if (!judged.judged) continue;
        ++part.by_limit[limit_bin(judged.ratio)];
        // What a user tolerates is no bound of rounding.
        const double rounding = x_tolerance.use_bound ? limit : 0.0;
        if (const auto ulps = error_in_ulps(histogram.storage, actual, expected, rounding))
          ++part.by_ulp[static_cast<std::size_t>(ulp_bin(*ulps))];
        const bool masked = over_keys && judged.ratio == 0 &&
                            !reference::visible(x_capture.problem,
                                                block.query_begin + static_cast<std::int32_t>(row),
                                                static_cast<std::int32_t>(i));
        float& to = worst[static_cast<std::size_t>(i % wide)];
        if (!masked) to = std::max(to, static_cast<float>(judged.ratio));
      }
      put(block, row, id, worst);
    }
    const std::lock_guard lock(x_mutex);
    for (std::size_t i = 0; i < part.by_limit.size(); ++i)
      histogram.by_limit[i] += part.by_limit[i];
    for (std::size_t i = 0; i < part.by_ulp.size(); ++i) histogram.by_ulp[i] += part.by_ulp[i];
  }

  struct Cell {
    double actual, expected, limit;
  };
  // A cell belongs to one block, and so to one thread.
  void keep(const reference::RowBlock& block, std::int64_t row, std::int64_t i, Tensor id,
            const Cell& cell) {
    for (CellWindow& w : x_out.windows) {
      if (w.tensor != id || w.first[0] != block.batch || w.first[1] != block.head) continue;
      const std::int64_t down = block.query_begin + row - w.first[2];
      if (down < 0 || down >= w.rows) continue;
      const std::int64_t wide = columns_of(x_capture[id]);
      const int rank = info(id).rank;
      if (rank > 4 && i / wide != w.first[3]) continue;
      const std::int64_t across =
          rank > 3 ? i % wide - w.first[static_cast<std::size_t>(rank) - 1] : 0;
      if (across < 0 || across >= w.columns) continue;
      const auto to = static_cast<std::size_t>(down * w.columns + across);
      w.actual[to] = cell.actual, w.expected[to] = cell.expected, w.limit[to] = cell.limit;
    }
  }

  // Several blocks may share a row of bins.
  void put(const reference::RowBlock& block, std::int64_t row, Tensor id,
           const std::vector<float>& worst) {
    for (ErrorMap& map : x_out.maps) {
      if (map.tensor != id || map.batch != block.batch || map.head != block.head) continue;
      const std::lock_guard lock(x_mutex);
      const std::int64_t down = (block.query_begin + row - map.first_query) / map.by_query;
      for (std::size_t c = 0; c < worst.size(); ++c) {
        const std::int64_t across = static_cast<std::int64_t>(c) / map.by_column;
        float& to = map.worst[static_cast<std::size_t>(down * map.wide() + across)];
        to = std::max(to, worst[c]);
      }
    }
  }

  const Capture& x_capture;
  Tolerance x_tolerance;
  ErrorMaps x_out;
  std::mutex x_mutex;
};

}  // namespace

ErrorMaps map_errors(const Capture& capture, const Comparison& comparison,
                     const Tolerance& tolerance, int threads) {
  Collector collector(capture, comparison, tolerance);
  for_each_row_block(capture, reference_options(capture, threads, tolerance.use_bound),
                     [&](const reference::RowBlock& block) { collector.visit(block); });
  return collector.finish();
}

}  // namespace attn_diag
