#include "harness/compare/some_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "attn_diag/harness/error.h"
#include "attn_diag/reference/sampled_rows.h"
#include "harness/capture/consistency.h"
#include "harness/capture/reference_rows.h"
#include "harness/compare/judgement.h"
#include "harness/compare/pool.h"

namespace attn_diag {
namespace {

void require_recorded(const Capture& capture, const SomeRows& rows) {
  const auto within = [](std::int64_t begin, std::int64_t end, std::int64_t origin,
                         std::int64_t extent) {
    return begin >= origin && end <= origin + extent && begin < end;
  };
  const auto& [origin, extent] = capture.region;
  if (rows.queries.empty() || !within(rows.batch_begin, rows.batch_end, origin[0], extent[0]) ||
      !within(rows.head_begin, rows.head_end, origin[1], extent[1]) ||
      !within(rows.queries.front(), rows.queries.back() + 1, origin[2], extent[2]))
    throw Error(fmt::format(
        "Of the rows that are to be compared some were not recorded: there are batch {}:{}, head "
        "{}:{} and query {}:{}.",
        origin[0], origin[0] + extent[0], origin[1], origin[1] + extent[1], origin[2],
        origin[2] + extent[2]));
}

}  // namespace

std::int64_t SomeRows::count() const {
  return std::int64_t{batch_end - batch_begin} * (head_end - head_begin) * std::ssize(queries);
}

std::vector<std::int32_t> sampled_queries(std::int64_t extent, std::int64_t wanted,
                                          std::uint64_t seed) {
  std::vector<std::int32_t> queries;
  if (wanted >= extent || extent < 3) {
    for (std::int64_t q = 0; q < std::min(wanted, extent); ++q)
      queries.push_back(static_cast<std::int32_t>(q));
    return queries;
  }
  std::mt19937_64 random(seed);
  const std::int64_t between = extent - 2, parts = std::max<std::int64_t>(0, wanted - 2);
  if (wanted > 1) queries.push_back(0);
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = between * i / parts, end = between * (i + 1) / parts;
    const auto within =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end - begin));
    queries.push_back(static_cast<std::int32_t>(1 + begin + within));
  }
  queries.push_back(static_cast<std::int32_t>(extent - 1));
  return queries;
}

Comparison compare_some_rows(const Capture& capture, const SomeRows& rows,
                             const Tolerance& tolerance, int threads) {
  for (const std::optional<TensorData>& data : capture.tensors)
    if (data) check_tensor(capture, *data);
  require_recorded(capture, rows);
  AccumulatorPool pool(capture);
  if (pool.work().empty()) return {};
  reference::Options options = reference_options(capture, threads, tolerance.use_bound);
  options.batch_begin = rows.batch_begin;
  options.batch_end = rows.batch_end;
  options.head_begin = rows.head_begin;
  options.head_end = rows.head_end;
  const auto visit = [&](const reference::SampledBlock& sampled) {
    const reference::RowBlock& block = sampled.block;
    AccumulatorPool::Set& set = pool.borrow();
    for (std::size_t i = 0; i < set.size(); ++i) {
      const TensorWork& work = *pool.work()[i];
      const auto t = static_cast<std::size_t>(work.grid.id);
      if (block.value[t] == nullptr) continue;  // not defined for this geometry
      const std::int64_t cells = work.grid.row_cells;
      for (std::int32_t r = 0; r < block.rows; ++r) {
        const std::int64_t at =
            row_index(capture.region, block.batch, block.head, sampled.queries[r]) * cells;
        const std::byte* const actual =
            work.actual.bytes.data() + at * static_cast<std::int64_t>(size_of(work.actual.dtype));
        Limits(tolerance, work.actual)
            .add(set[i], at, cells, {actual, work.actual.dtype},
                 {block.value[t] + r * cells, DType::kFp64},
                 tolerance.use_bound ? block.bound[t] + r * cells : nullptr);
      }
    }
    pool.give_back(set);
  };
  reference::for_each_sampled_rows(capture.problem, capture.geometry, capture.arithmetic,
                                   {capture.q.data(), capture.k.data(), capture.v.data()}, options,
                                   rows.queries, visit);
  return pool.finish(tolerance, rows.count());
}

std::string some_rows_note(const SomeRows& rows, const Problem& problem) {
  return fmt::format(
      "Judged are {} of {} queries, of {} of {} heads and {} of {} batch entries: what is wrong "
      "elsewhere is {}.",
      rows.queries.size(), problem.seqlen_q, rows.head_end - rows.head_begin, problem.heads,
      rows.batch_end - rows.batch_begin, problem.batch,
      rows.sampled ? "seen only where it breaks an invariant" : "not seen");
}

}  // namespace attn_diag
