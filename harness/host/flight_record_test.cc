#include "attn_diag/harness/host/flight_record.h"

#include <string>
#include <thread>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

struct Seen {
  FlightRecord own, from_outside;
  std::uintptr_t local = 0;
};

// The record of thread (1, 2) of block (2, 1), by itself and by a thread that runs no kernel.
__global__ void look(Seen* seen) {
  __syncthreads();
  if (blockIdx.x != 2 || blockIdx.y != 1 || threadIdx.x != 1 || threadIdx.y != 2) return;
  seen->local = reinterpret_cast<std::uintptr_t>(&seen);
  read_flight_record(seen->own);
  std::thread([=] { read_flight_record(seen->from_outside); }).join();
}

Seen launch_look() {
  Seen seen;
  cudaLaunchConfig_t config;
  config.gridDim = dim3(3, 2);
  config.blockDim = dim3(2, 4);
  LaunchOptions options;
  options.workers = 1;
  REQUIRE(launched(options, [&] { return cudaLaunchKernelEx(&config, look, &seen); }).completed());
  return seen;
}

}  // namespace

TEST_CASE("the flight record has kernel, block, thread and where the thread last synchronised") {
  enable_flight_records();
  const Seen seen = launch_look();
  for (const FlightRecord* r : {&seen.own, &seen.from_outside}) {
    CHECK(r->in_kernel);
    CHECK(contains(r->kernel.data(), "look"));
    CHECK(r->block == std::array<unsigned, 3>{2, 1, 0});
    CHECK(r->thread == std::array<unsigned, 3>{1, 2, 0});
    CHECK(contains(r->file.data(), "flight_record_test.cc"));
    CHECK(r->line > 0);
    CHECK(r->stack_bottom < seen.local);
    CHECK(seen.local < r->stack_top);
  }
}

TEST_CASE("between launches the flight record has the last kernel's name alone") {
  enable_flight_records();
  launch_look();
  FlightRecord r;
  read_flight_record(r);
  CHECK_FALSE(r.in_kernel);
  CHECK(contains(r.kernel.data(), "look"));
}

TEST_CASE("the flight record has what was wrong with the launch that failed last") {
  enable_flight_records();
  cudaLaunchConfig_t config;
  config.gridDim = dim3(1);
  config.blockDim = dim3(4096);
  Seen seen;
  const Launched run =
      launched("forward", [&] { return cudaLaunchKernelEx(&config, look, &seen); });
  REQUIRE_FALSE(run.completed());
  FlightRecord r;
  read_flight_record(r);
  CHECK(run.finding().message == r.failed.data());
  CHECK(r.failed_line == run.finding().line);
}

}  // namespace attn_diag::host
