// Cases with what Problem does not have, and batch entries with keys of their own number: o and lse against the
// formula's own values and bounds.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "harness/base/parallel_for.h"
#include "harness/compare/entries.h"
#include "harness/compare/judgement.h"
#include "harness/compare/pool.h"

namespace attn_diag {
namespace {

constexpr std::int64_t kRowsAtOnce = 64;

// What a batch entry is held against: its formula, of which it is entry `batch`. None: it has no keys.
struct Entry {
  std::optional<reference::PredictionInputs> formula;
  std::int32_t batch = 0;
};

// Rows [begin, end) of all, numbered as (batch, head, query).
class Rows {
 public:
  Rows(const Problem& problem, const std::vector<Entry>& entries, const Tolerance& tolerance,
       AccumulatorPool& pool)
      : x_problem(problem), x_entries(entries), x_tolerance(tolerance), x_pool(pool) {}

  void compare(std::int64_t begin, std::int64_t end) const {
    const std::int64_t of_entry = std::int64_t{x_problem.heads} * x_problem.seqlen_q;
    AccumulatorPool::Set& set = x_pool.borrow();
    while (begin < end) {
      const std::int64_t batch = begin / of_entry, stop = std::min(end, (batch + 1) * of_entry);
      add(set, x_entries[static_cast<std::size_t>(batch)], begin, stop);
      begin = stop;
    }
    x_pool.give_back(set);
  }

 private:
  void add(AccumulatorPool::Set& set, const Entry& entry, std::int64_t begin,
           std::int64_t end) const {
    const reference::Prediction right = predicted(entry, begin, end);
    for (std::size_t i = 0; i < set.size(); ++i) {
      const TensorWork& work = *x_pool.work()[i];
      const std::int64_t at = begin * work.grid.row_cells;
      const auto* const actual =
          work.actual.bytes.data() + at * static_cast<std::int64_t>(size_of(work.actual.dtype));
      const reference::Prediction::Values& values = right[work.grid.id];
      Limits(x_tolerance, work.actual)
          .add(set[i], at, (end - begin) * work.grid.row_cells, {actual, work.actual.dtype},
               {values.value.data(), DType::kFp64},
               x_tolerance.use_bound ? values.bound.data() : nullptr);
    }
  }

  reference::Prediction predicted(const Entry& entry, std::int64_t begin, std::int64_t end) const {
    const Problem& p = x_problem;
    reference::Prediction right;
    if (!entry.formula) {
      const auto rows = static_cast<std::size_t>(end - begin);
      const std::size_t cells = rows * static_cast<std::size_t>(p.head_dim_v);
      right[Tensor::kO].value.assign(cells, 0.0);
      right[Tensor::kO].bound.assign(cells, 0.0);
      right[Tensor::kLse].value.assign(rows, -std::numeric_limits<double>::infinity());
      right[Tensor::kLse].bound.assign(rows, 0.0);
      return right;
    }
    std::vector<reference::RowIndex> rows;
    for (std::int64_t i = begin; i < end; ++i)
      rows.push_back({entry.batch, static_cast<std::int32_t>(i / p.seqlen_q % p.heads),
                      static_cast<std::int32_t>(i % p.seqlen_q)});
    reference::predict(*entry.formula, rows, {}, tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse),
                       right);
    return right;
  }

  const Problem& x_problem;
  const std::vector<Entry>& x_entries;
  const Tolerance& x_tolerance;
  AccumulatorPool& x_pool;
};

reference::PredictionInputs formula_of(const Capture& capture, const reference::Extras& extras) {
  return {capture.problem,
          capture.geometry,
          capture.arithmetic,
          {capture.q.data(), capture.k.data(), capture.v.data()},
          extras};
}

Comparison compare(const Capture& capture, const std::vector<Entry>& entries,
                   const Tolerance& tolerance, int threads) {
  AccumulatorPool pool(capture);
  for (const auto& work : pool.work())
    if (work->grid.id != Tensor::kO && work->grid.id != Tensor::kLse)
      throw Error("With a bias, a softcap or lengths of keys o and lse alone can be compared.");
  const Rows rows(capture.problem, entries, tolerance, pool);
  const std::int64_t all =
      std::int64_t{capture.problem.batch} * capture.problem.heads * capture.problem.seqlen_q;

  parallel_for((all + kRowsAtOnce - 1) / kRowsAtOnce, threads, [&](std::int64_t i) {
    rows.compare(i * kRowsAtOnce, std::min(all, (i + 1) * kRowsAtOnce));
  });
  return pool.finish(tolerance);
}

}  // namespace

Comparison compare_with_reference(const Capture& capture, const reference::Extras& extras,
                                  const Tolerance& tolerance, int threads) {
  if (extras.bias.empty() && extras.softcap == 0)
    return compare_with_reference(capture, tolerance, threads);
  const reference::PredictionInputs formula = formula_of(capture, extras);
  std::vector<Entry> entries;
  for (std::int32_t b = 0; b < capture.problem.batch; ++b) entries.push_back({formula, b});
  return compare(capture, entries, tolerance, threads);
}

Comparison compare_entries(const Capture& capture, const std::vector<std::int32_t>& kv_lens,
                           const reference::Extras& extras, const Tolerance& tolerance,
                           int threads) {
  std::vector<Entry> entries;
  for (std::size_t b = 0; b < kv_lens.size(); ++b) {
    const auto batch = static_cast<std::int64_t>(b);
    entries.emplace_back();
    if (kv_lens[b] > 0)
      entries.back().formula = formula_of(entry_of(capture, batch, kv_lens[b]),
                                          entry_of(extras, capture.problem, batch, kv_lens[b]));
  }
  return compare(capture, entries, tolerance, threads);
}

}  // namespace attn_diag
