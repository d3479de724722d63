// Sums the mismatches of one tensor up along its axes.
#include "harness/trace/wrong_cells.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "attn_diag/reference/reference.h"
#include "harness/capture/oracle.h"
#include "harness/capture/reference_rows.h"
#include "harness/compare/judgement.h"
#include "harness/run/run_memory.h"

namespace attn_diag {
namespace {

// A row is explained by a factor if no cell is further off than these parts of the largest value and of the largest
// error: a few cells that are a little wrong leave every row near a factor of 1.
constexpr double kFactorResidual = 0.02, kErrorResidual = 0.25;
constexpr std::int64_t kMostCells = 1 << 24;  // kept one by one

std::int64_t kv_tile_of(const TensorInfo& tensor, const Geometry& g, std::int64_t i) {
  switch (tensor.axes[3]) {
    case Axis::kKey:
      return i / g.tile.block_n;
    case Axis::kKvTile:
      return i;
    default:
      return -1;
  }
}

}  // namespace

class FirstWrongCells::Counter {
 public:
  Counter(const Capture& capture, Tensor t, const Tolerance& tolerance)
      : x_capture(capture),
        x_tensor(info(t)),
        x_limits(tolerance, capture[t]),
        x_use_bound(tolerance.use_bound) {
    const TensorData& data = capture[t];
    x_cells.compared = data.size();
    x_cells.tensor = t;
    x_cells.region = capture.region;
    for (std::size_t i = 0; i < data.shape.size(); ++i)
      x_cells.by_axis[i].assign(static_cast<std::size_t>(data.shape[i]), 0);
    x_inner1 = data.shape.size() > 4 ? data.shape[4] : 1;
    x_kv_tiles = num_kv_tiles(capture.problem, capture.geometry);
    if (x_tensor.rank > 3 && kv_tile_of(x_tensor, capture.geometry, 0) >= 0) {
      x_cells.by_tile.assign(
          static_cast<std::size_t>(num_query_tiles(capture.problem, capture.geometry) * x_kv_tiles),
          0);
    }
    if (x_tensor.rank > 3 && x_tensor.axes[3] == Axis::kKey) {
      x_cells.by_diagonal.assign(
          static_cast<std::size_t>(capture.problem.seqlen_q) + capture.problem.seqlen_k, 0);
    }
    if (t == Tensor::kO && data.size() <= kMostCells)
      x_cells.cells.assign(static_cast<std::size_t>(data.size()), 0);
    const std::string& backend = capture.provenance.backend;
    x_poisoned = t == Tensor::kO && (backend == "host" || backend == "cuda") &&
                 capture.coverage[static_cast<std::size_t>(t)].never > 0;
  }

  void add(const reference::RowBlock& block) {
    const auto t = static_cast<std::size_t>(x_tensor.id);
    const TensorData& data = x_capture[x_tensor.id];
    const std::int64_t row_size = std::accumulate(data.shape.begin() + 3, data.shape.end(),
                                                  std::int64_t{1}, std::multiplies<std::int64_t>());
    const auto size = static_cast<std::size_t>(row_size);
    std::vector<double> limits(size);
    const std::int64_t first = first_row(x_capture.region, block) * row_size;
    for (std::int32_t row = 0; row < block.rows; ++row) {
      const double* expected = block.value[t] + row * row_size;
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t cell = static_cast<std::size_t>(row) * size + i;
        limits[i] = x_limits.of(first + static_cast<std::int64_t>(cell),
                                x_use_bound ? block.bound[t][cell] : 0, expected[i]);
      }
      add_row(block.batch, block.head, block.query_begin + row, {expected, size}, limits);
    }
  }

  WrongCells take() { return std::move(x_cells); }

 private:
  // `limits` has one limit per cell of the row.
  void add_row(std::int64_t b, std::int64_t h, std::int64_t q, std::span<const double> expected,
               std::span<const double> limits) {
    const std::int64_t first =
        row_index(x_capture.region, b, h, q) * static_cast<std::int64_t>(expected.size());
    const TensorData& data = x_capture[x_tensor.id];
    std::vector<double> actual(expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      actual[i] = data.at(first + static_cast<std::int64_t>(i));

    const std::lock_guard lock(x_mutex);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (judge_cell(actual[i], expected[i], limits[i]).passes) continue;
      ++wrong;
      count(b, h, q, static_cast<std::int64_t>(i));
      mark(first + static_cast<std::int64_t>(i), std::isnan(actual[i]) && !std::isnan(expected[i]));
      x_cells.nan += std::isnan(actual[i]) && !std::isnan(expected[i]);
      x_cells.infinite += std::isinf(actual[i]) && !std::isinf(expected[i]);
      x_cells.zero += actual[i] == 0.0 && expected[i] != 0.0;
    }
    x_cells.mismatched += wrong;
    if (wrong > 0) fit_factor(actual, expected);
  }

  void mark(std::int64_t cell, bool is_nan) {
    if (x_cells.cells.empty()) return;
    const TensorData& data = x_capture[x_tensor.id];
    const std::size_t at = static_cast<std::size_t>(cell) * size_of(data.dtype);
    const bool unwritten = x_poisoned && is_poison(data.bytes.data() + at, data.dtype);
    x_cells.cells[static_cast<std::size_t>(cell)] = static_cast<std::uint8_t>(
        kCellWrong | (unwritten ? kCellUnwritten : 0) | (is_nan && !unwritten ? kCellNaN : 0));
  }

  void count(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t i) {
    const Region& r = x_capture.region;
    const std::int64_t i0 = i / x_inner1, i1 = i % x_inner1;
    const auto bump = [](std::vector<std::int64_t>& counts, std::int64_t at) {
      ++counts[static_cast<std::size_t>(at)];
    };
    bump(x_cells.by_axis[0], b - r.origin[0]);
    bump(x_cells.by_axis[1], h - r.origin[1]);
    bump(x_cells.by_axis[2], q - r.origin[2]);
    if (x_tensor.rank > 3) bump(x_cells.by_axis[3], i0);
    if (x_tensor.rank > 4) bump(x_cells.by_axis[4], i1);
    if (!x_cells.by_tile.empty()) {
      bump(x_cells.by_tile, q / x_capture.geometry.tile.block_m * x_kv_tiles +
                                kv_tile_of(x_tensor, x_capture.geometry, i0));
    }
    if (!x_cells.by_diagonal.empty())
      bump(x_cells.by_diagonal, i0 - q + x_capture.problem.seqlen_q - 1);
  }

  // The factor of least squares over the row's finite cells.
  void fit_factor(const std::vector<double>& actual, std::span<const double> expected) {
    double product = 0, square = 0, largest = 0, largest_error = 0;
    int finite = 0;
    const auto usable = [&](std::size_t i) {
      return std::isfinite(actual[i]) && std::isfinite(expected[i]);
    };
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (!usable(i) || expected[i] == 0.0) continue;
      ++finite;
      product += actual[i] * expected[i];
      square += expected[i] * expected[i];
      largest = std::max(largest, std::fabs(actual[i]));
      largest_error = std::max(largest_error, std::fabs(actual[i] - expected[i]));
    }
    if (finite < (x_tensor.rank > 3 ? 2 : 1)) return;
    ++x_cells.rows;
    const double factor = product / square;
    const double most = std::min(kFactorResidual * largest, kErrorResidual * largest_error);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      if (usable(i) && !(std::fabs(actual[i] - factor * expected[i]) <= most)) return;
      if (std::isnan(actual[i]) && !std::isnan(expected[i])) return;
    }
    const bool first = x_cells.rows_explained++ == 0;
    x_cells.min_factor = first ? factor : std::min(x_cells.min_factor, factor);
    x_cells.max_factor = first ? factor : std::max(x_cells.max_factor, factor);
  }

  const Capture& x_capture;
  const TensorInfo& x_tensor;
  Limits x_limits;
  bool x_use_bound;
  std::int64_t x_inner1 = 1, x_kv_tiles = 1;
  bool x_poisoned = false;
  std::mutex x_mutex;
  WrongCells x_cells;
};

FirstWrongCells::FirstWrongCells(const Capture& capture, const Tolerance& tolerance)
    : x_capture(capture), x_tolerance(tolerance), x_first(kNumTensors) {
  // A tensor with cells that were not written once diverges, whatever it holds.
  for (int t = kNumTensors; t-- > 0;)
    if (const Coverage& c = capture.coverage[static_cast<std::size_t>(t)];
        c.never > 0 || c.repeatedly > 0)
      x_first = t;
}

FirstWrongCells::~FirstWrongCells() = default;

FirstWrongCells::Counter& FirstWrongCells::counter(Tensor t) {
  const std::lock_guard lock(x_mutex);
  std::unique_ptr<Counter>& counter = x_counters[static_cast<std::size_t>(t)];
  if (counter == nullptr) counter = std::make_unique<Counter>(x_capture, t, x_tolerance);
  return *counter;
}

void FirstWrongCells::take(const reference::RowBlock& block, Tensor t) {
  const int at = static_cast<int>(t);
  int first = x_first;
  while (at < first && !x_first.compare_exchange_weak(first, at)) {
  }
  // No block of the tensor that is first in the end is left out: nothing before it is ever wrong.
  if (at <= first) counter(t).add(block);
}

std::optional<WrongCells> FirstWrongCells::finish() {
  if (x_first == kNumTensors) return std::nullopt;
  return counter(static_cast<Tensor>(x_first.load())).take();
}

WrongCells collect_wrong_cells(const Capture& capture, Tensor tensor, const Tolerance& tolerance,
                               int threads) {
  FirstWrongCells::Counter counter(capture, tensor, tolerance);
  reference::Options options = reference_options(capture, threads, tolerance.use_bound);
  options.tensors = tensor_bit(tensor);
  for_each_row_block(capture, options,
                     [&](const reference::RowBlock& block) { counter.add(block); });
  return counter.take();
}

}  // namespace attn_diag
