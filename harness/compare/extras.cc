// Cases with what Problem does not have: o and lse against the formula's own values and bounds.
#include <algorithm>
#include <utility>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "harness/base/parallel_for.h"
#include "harness/compare/judgement.h"
#include "harness/compare/pool.h"

namespace attn_diag {
namespace {

constexpr std::int64_t kRowsAtOnce = 64;

// Rows [begin, end) of all, numbered as (batch, head, query).
class Rows {
 public:
  Rows(const Capture& capture, const reference::Case& c, const Tolerance& tolerance,
       AccumulatorPool& pool)
      : x_capture(capture), x_case(c), x_tolerance(tolerance), x_pool(pool) {}

  void compare(std::int64_t begin, std::int64_t end) const {
    const Problem& p = x_capture.problem;
    std::vector<reference::Row> rows;
    for (std::int64_t i = begin; i < end; ++i)
      rows.push_back({static_cast<std::int32_t>(i / p.seqlen_q / p.heads),
                      static_cast<std::int32_t>(i / p.seqlen_q % p.heads),
                      static_cast<std::int32_t>(i % p.seqlen_q)});
    reference::Prediction right;
    reference::predict(x_case, rows, {}, tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse), right);
    AccumulatorPool::Set& set = x_pool.borrow();
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
    x_pool.give_back(set);
  }

 private:
  const Capture& x_capture;
  const reference::Case& x_case;
  const Tolerance& x_tolerance;
  AccumulatorPool& x_pool;
};

}  // namespace

Comparison compare_with_reference(const Capture& capture, const reference::Extras& extras,
                                  const Tolerance& tolerance, int threads) {
  if (extras.bias.empty() && extras.softcap == 0)
    return compare_with_reference(capture, tolerance, threads);
  AccumulatorPool pool(capture);
  for (const auto& work : pool.work())
    if (work->grid.id != Tensor::kO && work->grid.id != Tensor::kLse)
      throw Error("With a bias or a softcap o and lse alone can be compared.");
  const reference::Case c(capture.problem, capture.geometry, capture.arithmetic,
                          {capture.q.data(), capture.k.data(), capture.v.data()}, extras);
  const Rows rows(capture, c, tolerance, pool);
  const std::int64_t all =
      std::int64_t{capture.problem.batch} * capture.problem.heads * capture.problem.seqlen_q;

  parallel_for((all + kRowsAtOnce - 1) / kRowsAtOnce, threads, [&](std::int64_t i) {
    rows.compare(i * kRowsAtOnce, std::min(all, (i + 1) * kRowsAtOnce));
  });
  return pool.finish();
}

}  // namespace attn_diag
