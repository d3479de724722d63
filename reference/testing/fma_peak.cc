#include "reference/testing/fma_peak.h"

#include <time.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "attn_diag/reference/vector.h"

namespace attn_diag::reference::testing {
namespace {

constexpr int kChains = 12;  // more than latency times ports
constexpr std::int64_t kSteps = 4'000'000;

// Keeps what it is given from being computed away.
volatile double g_sink;

void multiply_and_add() {
  Vector x[kChains];
  for (int i = 0; i < kChains; ++i) x[i] = Vector{} + 1.0 + i;
  const Vector a = Vector{} + 0.999999, b = Vector{} + 1e-6;
  for (std::int64_t step = 0; step < kSteps; ++step)
    for (int i = 0; i < kChains; ++i) x[i] = x[i] * a + b;
  Vector sum{};
  for (const Vector& v : x) sum += v;
  double total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
  g_sink = total;
}

}  // namespace

double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double measure_fma_peak(int threads) {
  const double begin = processor_seconds();
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(multiply_and_add);
  multiply_and_add();
  for (std::thread& thread : others) thread.join();
  const double spent = processor_seconds() - begin;
  return 2.0 * kLanes * kChains * static_cast<double>(kSteps) * threads / spent;
}

}  // namespace attn_diag::reference::testing
