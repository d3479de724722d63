#include "attn_diag/harness/compare.h"

#include <mutex>
#include <optional>
#include <vector>

#include "harness/compare_accumulator.h"
#include "harness/compare_check.h"
#include "harness/compare_pool.h"
#include "harness/reference_rows.h"

namespace attn_diag {
namespace {

TypedCells cells_of(const TensorData& data, std::int64_t at) {
  return {data.bytes.data() + at * static_cast<std::int64_t>(size_of(data.dtype)), data.dtype};
}

void check_tensors(const Capture& capture) {
  for (const std::optional<TensorData>& data : capture.tensors)
    if (data) check_tensor(capture, *data);
}

}  // namespace

bool Comparison::agrees() const {
  for (const TensorComparison& t : tensors)
    if (!t.agrees()) return false;
  return !tensors.empty();
}

Comparison compare_with_reference(const Capture& capture, const Tolerance& tolerance, int threads) {
  check_tensors(capture);
  AccumulatorPool pool(capture);
  if (pool.work().empty()) return {};
  const auto visit = [&](const reference::RowBlock& block) {
    AccumulatorPool::Set& set = pool.borrow();
    for (std::size_t i = 0; i < set.size(); ++i) {
      const TensorWork& work = *pool.work()[i];
      const auto t = static_cast<std::size_t>(work.grid.id);
      const std::int64_t at = first_row(capture.region, block) * work.grid.row_cells;
      const std::int64_t n = block.rows * work.grid.row_cells;
      if (block.value[t] == nullptr) continue;  // not defined for this geometry
      const TypedCells expected{block.value[t], DType::kFp64};
      if (tolerance.use_bound)
        set[i].add(at, n, cells_of(work.actual, at), expected, ArrayLimit{block.bound[t]});
      else
        set[i].add(at, n, cells_of(work.actual, at), expected,
                   AbsoluteRelativeLimit{tolerance.atol, tolerance.rtol});
    }
    pool.give_back(set);
  };
  reference::for_each_row_block(capture.problem, capture.geometry, capture.arithmetic,
                                {capture.q.data(), capture.k.data(), capture.v.data()},
                                reference_options(capture, threads, tolerance.use_bound), visit);
  return pool.finish();
}

Comparison compare_captures(const Capture& actual, const Capture& expected,
                            const Tolerance& tolerance) {
  check_comparable(actual, expected);
  check_tensors(actual);
  check_tensors(expected);
  AccumulatorPool pool(actual);
  if (pool.work().empty()) return {};

  AccumulatorPool::Set& set = pool.borrow();
  const auto each_tensor = [&](const auto& add) {
    for (std::size_t i = 0; i < set.size(); ++i) add(set[i], *pool.work()[i]);
  };
  if (!tolerance.use_bound) {
    each_tensor([&](CellAccumulator& part, const TensorWork& work) {
      part.add(0, work.grid.size(), cells_of(work.actual, 0), cells_of(expected[work.grid.id], 0),
               AbsoluteRelativeLimit{tolerance.atol, tolerance.rtol});
    });
    return pool.finish();
  }
  std::mutex mutex;
  const auto visit = [&](const reference::RowBlock& block) {
    const std::lock_guard lock(mutex);
    each_tensor([&](CellAccumulator& part, const TensorWork& work) {
      const double* bound = block.bound[static_cast<std::size_t>(work.grid.id)];
      if (bound == nullptr) return;
      const std::int64_t at = first_row(actual.region, block) * work.grid.row_cells;
      part.add(at, block.rows * work.grid.row_cells, cells_of(work.actual, at),
               cells_of(expected[work.grid.id], at), ArrayLimit{bound, kBoundsApart});
    });
  };
  reference::for_each_row_block(expected.problem, expected.geometry, expected.arithmetic,
                                {expected.q.data(), expected.k.data(), expected.v.data()},
                                reference_options(expected, 0, true), visit);
  return pool.finish();
}

}  // namespace attn_diag
