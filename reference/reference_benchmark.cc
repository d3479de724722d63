// Speed of the reference as a fraction of the fp64 FMA peak of the cores it runs on, measured in the
// same run. docs/benchmarks.md, section "Reference".
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "attn_diag/reference/reference.h"
#include "reference/testing/fma_peak.h"
#include "reference/testing/random_case.h"

namespace attn_diag::reference {
namespace {

testing::Case bench_case(DType dtype, MaskKind mask) {
  testing::Case c;
  Problem& p = c.problem;
  p.heads = p.kv_heads = 8;
  p.seqlen_q = p.seqlen_k = 2048;
  p.head_dim = p.head_dim_v = 64;
  p.dtype = dtype;
  p.mask.kind = mask;
  p.softmax_scale = 0.125f;
  c.geometry.tile = {64, 64};
  c.geometry.tiles_per_split = 32;
  std::mt19937_64 random(1);
  fill_inputs(random, c);
  return c;
}

// Floating-point operations of the two matrix products; exp and the recurrences are not counted.
double operations(const Problem& p) {
  return 2.0 * p.batch * p.heads * p.seqlen_q * static_cast<double>(p.seqlen_k) *
         (p.head_dim + p.head_dim_v);
}

void all_tensors(benchmark::State& state, bool bounds) {
  const int threads = static_cast<int>(state.range(0));
  const testing::Case c = bench_case(DType::kFp16, MaskKind::kNone);
  Options options;
  options.bounds = bounds;
  options.threads = threads;
  double rate = 0, peak = 0, wall = 1e300;
  for (auto _ : state) {
    peak = std::max(peak, testing::measure_fma_peak(threads));
    const double begin = testing::processor_seconds();
    const auto clock = std::chrono::steady_clock::now();
    for_each_row_block(c.problem, c.geometry, Arithmetic{}, c.inputs(), options,
                       [](const RowBlock& block) { benchmark::DoNotOptimize(block.value); });
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - clock;
    rate = std::max(rate, operations(c.problem) / (testing::processor_seconds() - begin));
    wall = std::min(wall, spent.count());
    state.SetIterationTime(spent.count());
  }
  state.counters["GFLOP/s_core"] = rate * 1e-9;
  state.counters["peak_core"] = peak * 1e-9;
  state.counters["of_peak_%"] = 100 * rate / peak;
  state.counters["of_peak_wall_%"] = 100 * operations(c.problem) / wall / (peak * threads);
}

void BM_AllTensors(benchmark::State& state) { all_tensors(state, false); }
void BM_AllTensorsWithBounds(benchmark::State& state) { all_tensors(state, true); }

BENCHMARK(BM_AllTensors)
    ->Arg(1)
    ->Arg(2)
    ->Iterations(5)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_AllTensorsWithBounds)
    ->Arg(1)
    ->Arg(2)
    ->Iterations(5)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attn_diag::reference

BENCHMARK_MAIN();
