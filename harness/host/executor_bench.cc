// What the executor costs: a barrier, a shuffle, setting up a block, and fa1, beside the same object
// code run by the leanest ring of fibers. Each benchmark runs both in turn and reports the better
// time of each, and their ratio; what the machine does meanwhile hits both alike.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "attn_diag/kernels/adapter.h"
#include "harness/host/bench/bench_kernels.h"

namespace attn_diag::host {
namespace {

double seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// One of the two modules that hold the kernels.
class Module {
 public:
  explicit Module(const char* path) : x_handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (x_handle == nullptr) throw std::runtime_error(dlerror());
  }
  template <class F>
  F* find(const char* name) const {
    void* symbol = dlsym(x_handle, name);
    if (symbol == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<F*>(symbol);
  }

 private:
  void* x_handle;
};

const Module& on_executor() {
  static const Module module(ATTN_DIAG_BENCH_EXECUTOR_MODULE);
  return module;
}
const Module& on_ring() {
  static const Module module(ATTN_DIAG_BENCH_RING_MODULE);
  return module;
}

struct Best {
  double wall = std::numeric_limits<double>::infinity(), cpu = wall;

  template <class F>
  void time(const F& run) {
    const double wall_start = seconds(CLOCK_MONOTONIC);
    const double cpu_start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    run();
    wall = std::min(wall, seconds(CLOCK_MONOTONIC) - wall_start);
    cpu = std::min(cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start);
  }
};

// Times run(module) on both in turn. `scale` times a second is the unit reported.
template <class F>
void compare(benchmark::State& state, int workers, double scale, const std::string& unit,
             const F& run) {
  LaunchOptions options;
  options.workers = workers;
  const LaunchScope scope(options);
  on_ring().find<decltype(lean_set_workers)>("lean_set_workers")(workers);
  run(on_executor());
  run(on_ring());
  Best executor, ring;
  for (auto _ : state) {
    executor.time([&] { run(on_executor()); });
    ring.time([&] { run(on_ring()); });
  }
  if (!scope.report().findings.empty())
    state.SkipWithError(scope.report().findings[0].message.c_str());
  state.counters["executor_" + unit] = executor.wall * scale;
  state.counters["ring_" + unit] = ring.wall * scale;
  state.counters["ratio"] = executor.wall / ring.wall;
  state.counters["cpu_executor_" + unit] = executor.cpu * scale;
  state.counters["cpu_ratio"] = executor.cpu / ring.cpu;
}

constexpr int kThreads = 128;

void thread_barrier(benchmark::State& state) {
  constexpr int kCount = 2000;
  compare(state, 1, 1e9 / (kCount * kThreads), "ns", [&](const Module& module) {
    module.find<decltype(bench_barriers)>("bench_barriers")(1, kCount);
  });
}
BENCHMARK(thread_barrier)->Iterations(200)->Unit(benchmark::kMicrosecond);

void thread_shuffle(benchmark::State& state) {
  constexpr int kCount = 2000;
  std::vector<float> out(kThreads);
  compare(state, 1, 1e9 / (kCount * kThreads), "ns", [&](const Module& module) {
    module.find<decltype(bench_shuffles)>("bench_shuffles")(1, kCount, out.data());
  });
}
BENCHMARK(thread_shuffle)->Iterations(200)->Unit(benchmark::kMicrosecond);

void block_of_128_threads(benchmark::State& state) {
  constexpr int kBlocks = 500;
  compare(state, 1, 1e6 / kBlocks, "us", [&](const Module& module) {
    module.find<decltype(bench_empty_blocks)>("bench_empty_blocks")(kBlocks);
  });
}
BENCHMARK(block_of_128_threads)->Iterations(200)->Unit(benchmark::kMicrosecond);

// mma_sync of one warp, 16 x 16 x 16, half inputs and float accumulators. The ring has none.
void matrix_product(benchmark::State& state) {
  constexpr int kCount = 5000;
  alignas(32) std::uint16_t in[256];
  alignas(32) float out[256];
  for (int i = 0; i < 256; ++i) in[i] = static_cast<std::uint16_t>(0x3800 + i);  // 0.5 and more
  LaunchOptions options;
  options.workers = 1;
  const LaunchScope scope(options);
  const auto run = on_executor().find<decltype(bench_matrix_products)>("bench_matrix_products");
  Best executor;
  for (auto _ : state) executor.time([&] { run(kCount, in, out); });
  if (!scope.report().findings.empty())
    state.SkipWithError(scope.report().findings[0].message.c_str());
  state.counters["executor_ns"] = executor.wall * 1e9 / kCount;
}
BENCHMARK(matrix_product)->Iterations(200)->Unit(benchmark::kMicrosecond);

// H = 8, S = 512, D = 64, fp32, no mask, 64 x 64 tiles.
void fa1(benchmark::State& state) {
  Problem problem;
  problem.heads = problem.kv_heads = 8;
  problem.seqlen_q = problem.seqlen_k = 512;
  problem.head_dim = problem.head_dim_v = 64;
  problem.dtype = DType::kFp32;
  problem.softmax_scale = 0.125f;
  const std::size_t elements = 8 * 512 * 64;
  std::vector<float> q(elements), k(elements), v(elements), lse(8 * 512);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto x = static_cast<float>(i);
    q[i] = std::sin(x);
    k[i] = std::cos(1.7f * x);
    v[i] = std::sin(0.3f * x);
  }
  std::vector<float> o[2] = {std::vector<float>(elements), std::vector<float>(elements)};

  compare(state, static_cast<int>(state.range(0)), 1e3, "ms", [&](const Module& module) {
    const KernelInfo& kernel =
        *module.find<decltype(attn_diag_kernel_library)>("attn_diag_kernel_library")()->kernels;
    char error[256] = "";
    RunRequest request;
    request.problem = problem;
    if (kernel.plan(problem, {64, 64}, 0, &request.geometry, error, sizeof error) != Status::kOk)
      throw std::runtime_error(error);
    request.q = q.data();
    request.k = k.data();
    request.v = v.data();
    request.o = o[&module == &on_ring()].data();
    request.lse = lse.data();
    request.error = error;
    request.error_capacity = sizeof error;
    if (kernel.run(request) != Status::kOk) throw std::runtime_error(error);
  });
  if (o[0] != o[1]) state.SkipWithError("the executor and the ring give different outputs");
}
BENCHMARK(fa1)->ArgName("workers")->Arg(1)->Arg(2)->Iterations(30)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attn_diag::host

BENCHMARK_MAIN();
