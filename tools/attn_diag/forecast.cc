#include "tools/attn_diag/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/reference/sampled_rows.h"
#include "harness/base/parallel_for.h"
#include "harness/report/text.h"
#include "harness/run/run_plan.h"

namespace attn_diag::cli {
namespace {

constexpr std::int64_t kSampled = 64;  // queries that the message offers

// CPU time of all threads of this process: what others do on the machine does not change it.
double processor_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::int64_t judged_rows(const RequestedCase& c) {
  if (!c.rows.queries.empty()) return c.rows.count();
  const Region region = resolve_region(c.run.region, c.problem);
  return region.extent[0] * region.extent[1] * region.extent[2];
}
double heads_judged(const RequestedCase& c) {
  if (!c.rows.queries.empty())
    return static_cast<double>(c.rows.batch_end - c.rows.batch_begin) *
           (c.rows.head_end - c.rows.head_begin);
  const Region region = resolve_region(c.run.region, c.problem);
  return static_cast<double>(region.extent[0] * region.extent[1]);
}

// Products of one query with one key.
double pairs(const Problem& p) {
  return static_cast<double>(p.batch) * p.heads * p.seqlen_q * static_cast<double>(p.seqlen_k);
}

// One head, with at most that many queries and keys.
Problem small_problem(Problem p, std::int32_t queries, std::int32_t keys) {
  p.batch = p.heads = p.kv_heads = 1;
  p.seqlen_q = std::min(p.seqlen_q, queries);
  p.seqlen_k = std::min(p.seqlen_k, keys);
  return p;
}

double kernel_seconds(const Kernel& kernel, const RequestedCase& c) {
  RequestedCase part = c;
  const std::int32_t blocks = 2 * resolve_threads(c.run.threads);
  const std::int32_t side = std::max({blocks * c.run.tile.block_m, 2 * c.run.tile.block_n, 128});
  part.problem = small_problem(c.problem, side, side);
  part.run.region = {};
  const InputData inputs = make_inputs(part.problem, "randn", 0, 1);
  const double begin = processor_seconds();
  run_kernel({kernel, part.problem, inputs, part.run});
  return (processor_seconds() - begin) / resolve_threads(c.run.threads) * pairs(c.problem) /
         pairs(part.problem);
}

// The rows of a short sequence cost a row of a long one's in proportion, and k and v are widened once a head.
double reference_seconds(const Kernel& kernel, const RequestedCase& c, std::int64_t rows,
                         double heads) {
  const std::int32_t few = static_cast<std::int32_t>(std::min<std::int64_t>(rows, 24));
  const Problem p = small_problem(c.problem, 4096, 4096);
  const Geometry geometry = plan_geometry(kernel, p, c.run);
  const InputData inputs = make_inputs(p, "randn", 0, 1);
  const auto seconds_of = [&](std::int32_t count) {
    reference::Options options;
    options.threads = c.run.threads;
    if (!c.run.taps) options.tensors = tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse);
    std::vector<std::int32_t> queries;  // the last, which see most keys
    for (std::int32_t q = std::max(0, p.seqlen_q - count); q < p.seqlen_q; ++q)
      queries.push_back(q);
    const double begin = processor_seconds();
    reference::for_each_sampled_rows(p, geometry, declared_arithmetic(kernel, p, geometry),
                                     {inputs.q.data(), inputs.k.data(), inputs.v.data()}, options,
                                     queries, [](const reference::SampledBlock&) {});
    return (processor_seconds() - begin) / resolve_threads(c.run.threads);
  };
  const double widen = seconds_of(1), both = seconds_of(few + 1);
  const double keys = static_cast<double>(c.problem.seqlen_k) / p.seqlen_k;
  return keys * (heads * widen + static_cast<double>(rows) * std::max(0.0, both - widen) / few);
}

// k and v of the heads that are looked at at the same time, in fp64 and without signs; each thread's block of rows.
double reference_bytes(const RequestedCase& c, const Geometry& geometry) {
  const Problem& p = c.problem;
  const double head = 4.0 * sizeof(double) * p.seqlen_k * (p.head_dim + p.head_dim_v) / 2;
  return head * std::min<double>(resolve_threads(c.run.threads), heads_judged(c)) +
         static_cast<double>(resolve_threads(c.run.threads) *
                             reference::block_bytes(c.problem, geometry));
}

}  // namespace

std::optional<Forecast> forecast(const Kernel& kernel, const RequestedCase& c) {
  const bool host = c.backend == "host";
  const Geometry geometry = plan_geometry(kernel, c.problem, c.run);
  Forecast f;
  f.bytes = run_bytes(kernel, c.problem, geometry, c.run) + reference_bytes(c, geometry);
  const double reference_pairs = static_cast<double>(judged_rows(c)) * c.problem.seqlen_k;
  constexpr double kManyPairs = 0x1p27,
                   kManyBytes = 0x1p30;  // some 10 s of the executor, of the reference
  if (reference_pairs + (host ? pairs(c.problem) : 0) < kManyPairs && f.bytes < kManyBytes)
    return std::nullopt;
  try {
    if (host) f.kernel_seconds = kernel_seconds(kernel, c);
    f.reference_seconds = reference_seconds(kernel, c, judged_rows(c), heads_judged(c));
  } catch (const Error&) {  // the run itself will say why
    return std::nullopt;
  }
  return f;
}

void say_forecast(const Kernel& kernel, const RequestedCase& c, bool each_run) {
  const std::optional<Forecast> all = forecast(kernel, c);
  if (!all) return;
  std::string s = fmt::format(
      "attn-diag: {} will take about {} on {}{} and {} of memory", each_run ? "each run" : "this",
      report::duration(all->seconds()), report::plural(resolve_threads(c.run.threads), "core"),
      all->kernel_seconds > 0 ? fmt::format(" ({} of it the kernel on the host executor)",
                                            report::duration(all->kernel_seconds))
                              : "",
      report::bytes(all->bytes));
  if (c.rows.queries.empty() && c.problem.seqlen_q > 4 * kSampled && !each_run) {
    RequestedCase sample = c;
    sample.run.region = whole(c.problem);
    sample.run.gate = Gate::kFull;
    sample.run.taps = false;
    sample.rows = {0, c.problem.batch, 0, c.problem.heads,
                   sampled_queries(c.problem.seqlen_q, kSampled, c.seed)};
    if (const auto less = forecast(kernel, sample); less && less->seconds() < 0.9 * all->seconds())
      s += fmt::format(
          "; --query sample:{} judges o and lse of {} queries of each head in about {} and {}",
          kSampled, kSampled, report::duration(less->seconds()), report::bytes(less->bytes));
  }
  // At once: what a child gives to write_stderr() appears when it has ended.
  std::fputs((s + '\n').c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace attn_diag::cli
