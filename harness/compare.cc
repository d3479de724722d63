#include "attn_diag/harness/compare.h"

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "harness/compare_accumulator.h"
#include "harness/compare_check.h"
#include "harness/reference_rows.h"

namespace attn_diag {
namespace {

// One tensor under comparison with everything its accumulators share.
struct TensorWork {
  TensorWork(const TensorData& data, const TileShape& tile)
      : actual(data), grid(data.id, data.shape, data.origin, tile), picture(grid) {}
  const TensorData& actual;
  CellGrid grid;
  SharedPicture picture;
};

TypedCells cells_of(const TensorData& data, std::int64_t at) {
  return {data.bytes.data() + at * static_cast<std::int64_t>(size_of(data.dtype)), data.dtype};
}

std::vector<std::unique_ptr<TensorWork>> work_on(const Capture& capture) {
  std::vector<std::unique_ptr<TensorWork>> work;
  for (const std::optional<TensorData>& data : capture.tensors)
    if (data) {
      check_tensor(capture, *data);
      work.push_back(std::make_unique<TensorWork>(*data, capture.geometry.tile));
    }
  return work;
}

// Accumulators for every tensor; a visiting thread borrows a set for one block.
class AccumulatorPool {
 public:
  using Set = std::vector<CellAccumulator>;

  explicit AccumulatorPool(std::vector<std::unique_ptr<TensorWork>> work)
      : x_work(std::move(work)) {}

  const std::vector<std::unique_ptr<TensorWork>>& work() const { return x_work; }

  Set& borrow() {
    const std::lock_guard lock(x_mutex);
    if (x_idle.empty()) {
      auto set = std::make_unique<Set>();
      for (const auto& w : x_work) set->emplace_back(w->grid, w->picture, w->actual.dtype);
      x_sets.push_back(std::move(set));
      return *x_sets.back();
    }
    Set* set = x_idle.back();
    x_idle.pop_back();
    return *set;
  }

  void give_back(Set& set) {
    const std::lock_guard lock(x_mutex);
    x_idle.push_back(&set);
  }

  Comparison finish() {
    Comparison comparison;
    for (const auto& set : x_sets)
      for (CellAccumulator& part : *set) part.finish();
    for (std::size_t t = 0; t < x_work.size(); ++t) {
      std::vector<const CellAccumulator*> parts;
      for (const auto& set : x_sets) parts.push_back(&(*set)[t]);
      comparison.tensors.push_back(merge(x_work[t]->grid, std::move(x_work[t]->picture), parts));
    }
    return comparison;
  }

 private:
  std::vector<std::unique_ptr<TensorWork>> x_work;
  std::mutex x_mutex;
  std::vector<std::unique_ptr<Set>> x_sets;
  std::vector<Set*> x_idle;
};

}  // namespace

bool Comparison::agrees() const {
  for (const TensorComparison& t : tensors)
    if (!t.agrees()) return false;
  return !tensors.empty();
}

Comparison compare_with_reference(const Capture& capture, const Tolerance& tolerance, int threads) {
  AccumulatorPool pool(work_on(capture));
  if (pool.work().empty()) return {};
  const auto visit = [&](const reference::RowBlock& block) {
    AccumulatorPool::Set& set = pool.borrow();
    for (std::size_t i = 0; i < set.size(); ++i) {
      const TensorWork& work = *pool.work()[i];
      const auto t = static_cast<std::size_t>(work.grid.id);
      const std::int64_t at = first_row(capture.region, block) * work.grid.row_cells;
      const std::int64_t n = block.rows * work.grid.row_cells;
      if (block.value[t] == nullptr) continue;
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
  AccumulatorPool pool(work_on(actual));
  if (pool.work().empty()) return {};
  for (const auto& work : pool.work()) check_tensor(expected, expected[work->grid.id]);

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
  // Each side may be a bound away from the exact value, so two of them may be two bounds apart.
  std::mutex mutex;
  const auto visit = [&](const reference::RowBlock& block) {
    const std::lock_guard lock(mutex);
    each_tensor([&](CellAccumulator& part, const TensorWork& work) {
      const double* bound = block.bound[static_cast<std::size_t>(work.grid.id)];
      if (bound == nullptr) return;
      const std::int64_t at = first_row(actual.region, block) * work.grid.row_cells;
      part.add(at, block.rows * work.grid.row_cells, cells_of(work.actual, at),
               cells_of(expected[work.grid.id], at), ArrayLimit{bound, 2.0});
    });
  };
  reference::for_each_row_block(expected.problem, expected.geometry, expected.arithmetic,
                                {expected.q.data(), expected.k.data(), expected.v.data()},
                                reference_options(expected, 0, true), visit);
  return pool.finish();
}

}  // namespace attn_diag
