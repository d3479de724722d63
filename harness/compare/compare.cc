#include "attn_diag/harness/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <vector>

#include "harness/capture/consistency.h"
#include "harness/capture/oracle.h"
#include "harness/capture/reference_rows.h"
#include "harness/compare/accumulator.h"
#include "harness/compare/compare_and_visit.h"
#include "harness/compare/judgement.h"
#include "harness/compare/pool.h"

namespace attn_diag {
namespace {

TypedCells cells_of(const TensorData& data, std::int64_t at) {
  return {data.bytes.data() + at * static_cast<std::int64_t>(size_of(data.dtype)), data.dtype};
}

std::int64_t sum_of(const std::vector<TensorComparison>& tensors,
                    std::int64_t TensorComparison::*cells) {
  std::int64_t sum = 0;
  for (const TensorComparison& t : tensors) sum += t.*cells;
  return sum;
}

void check_tensors(const Capture& capture) {
  for (const std::optional<TensorData>& data : capture.tensors)
    if (data) check_tensor(capture, *data);
}

}  // namespace

bool lets_zeros_pass(const TensorComparison& t) {
  return t.by_bound && t.agrees() && t.zeros_err_over_bound > 0 && t.zeros_err_over_bound <= 1;
}

Answer Comparison::answer() const {
  if (mismatched() > 0 || !broken_elsewhere.empty()) return Answer::kDiverges;
  for (const TensorComparison& t : tensors)
    if (t.tensor == Tensor::kO) return lets_zeros_pass(t) ? Answer::kNotJudged : t.answer();
  return answer_of(judged(), 0);
}

std::string why_not_judged(const Comparison& comparison) {
  for (const TensorComparison& t : comparison.tensors)
    if (t.tensor == Tensor::kO && lets_zeros_pass(t))
      return fmt::format(
          "an all-zeros o would agree as well, at {:.2g} of what is allowed: declare no coarser "
          "arithmetic than the kernel's, or take fewer keys, other inputs or a smaller tolerance",
          t.zeros_err_over_bound);
  const std::int64_t judged = comparison.judged();
  std::int64_t cells = comparison.unjudged();
  if (judged + cells == 0) return "nothing was compared";
  for (const TensorComparison& t : comparison.tensors)
    if (judged > 0 && t.tensor == Tensor::kO) cells = t.unjudged;
  return fmt::format("none of the {} elements{} can be judged, having no bound: {}", cells,
                     judged > 0 ? " of o" : "", comparison.unjudged_because);
}

Answer answer_of(const Capture& capture, const Comparison& comparison) {
  const bool holes = std::any_of(capture.coverage.begin(), capture.coverage.end(),
                                 [](const Coverage& c) { return c.never > 0 || c.repeatedly > 0; });
  return holes || !capture.input_writes.empty() || capture.repetition.unsound()
             ? Answer::kDiverges
             : comparison.answer();
}

std::int64_t Comparison::judged() const { return sum_of(tensors, &TensorComparison::compared); }
std::int64_t Comparison::unjudged() const { return sum_of(tensors, &TensorComparison::unjudged); }
std::int64_t Comparison::mismatched() const {
  return sum_of(tensors, &TensorComparison::mismatched);
}

Comparison compare_with_reference(const Capture& capture, const Tolerance& tolerance, int threads) {
  return compare_and_visit(capture, tolerance, threads, {});
}

Comparison compare_and_visit(const Capture& capture, const Tolerance& tolerance, int threads,
                             const BlockVisitors& visitors) {
  check_tensors(capture);
  AccumulatorPool pool(capture);
  if (pool.work().empty()) return {};
  const auto visit = [&](const reference::RowBlock& block) {
    if (visitors.every) visitors.every(block);
    AccumulatorPool::Set& set = pool.borrow();
    for (std::size_t i = 0; i < set.size(); ++i) {
      const TensorWork& work = *pool.work()[i];
      const auto t = static_cast<std::size_t>(work.grid.id);
      const std::int64_t at = first_row(capture.region, block) * work.grid.row_cells;
      const std::int64_t n = block.rows * work.grid.row_cells;
      if (block.value[t] == nullptr) continue;  // not defined for this geometry
      const std::int64_t before = set[i].mismatched();
      Limits(tolerance, work.actual)
          .add(set[i], at, n, cells_of(work.actual, at), {block.value[t], DType::kFp64},
               tolerance.use_bound ? block.bound[t] : nullptr);
      if (visitors.wrong && set[i].mismatched() > before) visitors.wrong(block, work.grid.id);
    }
    pool.give_back(set);
  };
  reference::Options options = reference_options(capture, threads, tolerance.use_bound);
  options.tensors |= visitors.tensors;
  for_each_row_block(capture, options, visit);
  return pool.finish(tolerance);
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
      const TensorData& other = expected[work.grid.id];
      Limits(tolerance, work.actual, other)
          .add(part, 0, work.grid.size(), cells_of(work.actual, 0), cells_of(other, 0), nullptr);
    });
    return pool.finish(tolerance);
  }
  std::mutex mutex;
  const auto visit = [&](const reference::RowBlock& block) {
    const std::lock_guard lock(mutex);
    each_tensor([&](CellAccumulator& part, const TensorWork& work) {
      const double* bound = block.bound[static_cast<std::size_t>(work.grid.id)];
      if (bound == nullptr) return;
      const std::int64_t at = first_row(actual.region, block) * work.grid.row_cells;
      const TensorData& other = expected[work.grid.id];
      Limits(tolerance, work.actual, other)
          .add(part, at, block.rows * work.grid.row_cells, cells_of(work.actual, at),
               cells_of(other, at), bound);
    });
  };
  for_each_row_block(expected, reference_options(expected, 0, true), visit);
  return pool.finish(tolerance);
}

}  // namespace attn_diag
