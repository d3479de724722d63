#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <thread>

#include "harness/host/test_support.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace attn_diag::host {
namespace {

bool next_launch_works() {
  std::vector<float> out(3 * 96);
  return launched("forward", [&] { return plain::right(out.data()); }).completed();
}

}  // namespace

TEST_CASE("threads see their indices in three dimensions, also after a barrier") {
  const dim3 grid(3, 2, 4), block(5, 3, 2);
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    std::vector<SeenIndices> out(3 * 2 * 4 * 5 * 3 * 2);
    REQUIRE(
        launched(schedule, [&] { return plain::indices(grid, block, out.data()); }).completed());
    std::size_t i = 0;
    for (unsigned bz = 0; bz < 4; ++bz)
      for (unsigned by = 0; by < 2; ++by)
        for (unsigned bx = 0; bx < 3; ++bx)
          for (unsigned tz = 0; tz < 2; ++tz)
            for (unsigned ty = 0; ty < 3; ++ty)
              for (unsigned tx = 0; tx < 5; ++tx, ++i) {
                const SeenIndices& seen = out[i];
                REQUIRE((seen.thread.x == tx && seen.thread.y == ty && seen.thread.z == tz));
                REQUIRE((seen.block.x == bx && seen.block.y == by && seen.block.z == bz));
                REQUIRE((seen.block_dim.x == 5 && seen.block_dim.y == 3 && seen.block_dim.z == 2));
                REQUIRE((seen.grid_dim.x == 3 && seen.grid_dim.y == 2 && seen.grid_dim.z == 4));
              }
  }
}

TEST_CASE("block shapes may change from launch to launch") {
  for (const dim3 block : {dim3(8, 4), dim3(4, 8), dim3(1024), dim3(1, 1, 64)}) {
    std::vector<SeenIndices> out(block.x * block.y * block.z);
    REQUIRE(launched("forward", [&] { return plain::indices(1, block, out.data()); }).completed());
    CHECK(out.back().thread.x == block.x - 1);
    CHECK(out.back().thread.y == block.y - 1);
    CHECK(out.back().thread.z == block.z - 1);
  }
}

TEST_CASE("an impossible launch is a finding that says what is possible") {
  const auto run = [](dim3 grid, dim3 block, std::size_t shared) {
    return launched("forward", [=] { return plain::shaped(grid, block, shared); });
  };
  CHECK(run(1, 1024, 48 * 1024).completed());
  const std::vector<std::tuple<dim3, dim3, std::size_t, std::string>> cases = {
      {dim3(1), dim3(0), 0, "block (0,1,1)"},
      {dim3(1), dim3(1025), 0, "block (1025,1,1)"},
      {dim3(1), dim3(32, 33), 0, "block (32,33,1)"},
      {dim3(1), dim3(65536, 65536), 0, "block (65536,65536,1)"},
      {dim3(1), dim3(1, 1, 65), 0, "block (1,1,65)"},
      {dim3(0), dim3(32), 0, "grid (0,1,1)"},
      {dim3(0x80000000u), dim3(32), 0, "grid (2147483648,1,1)"},
      {dim3(1, 65536), dim3(32), 0, "grid (1,65536,1)"},
      {dim3(1), dim3(32), 227 * 1024 + 1, "232449 bytes of dynamic shared memory"},
  };
  for (const auto& [grid, block, shared, part] : cases) {
    CAPTURE(part);
    const Launched refused = run(grid, block, shared);
    CHECK(refused.error == cudaErrorInvalidConfiguration);
    CHECK(refused.finding().kind == LaunchFindingKind::kLaunchConfig);
    CAPTURE(refused.finding().message);
    CHECK(contains(refused.finding().message, part));
    CHECK(contains(refused.finding().message, "empty_kernel cannot be launched"));
    CHECK(refused.report.blocks == 0);
  }
}

TEST_CASE("a kernel that synchronises for ever is stopped by the step limit, with its place") {
  LaunchOptions options;
  options.step_limit = 10000;
  for (const auto launch : {plain::endless_barriers, plain::endless_syncwarps}) {
    const Launched run = launched(options, launch);
    CHECK(run.error == cudaErrorLaunchTimeout);
    CHECK(run.finding().kind == LaunchFindingKind::kStepLimit);
    CAPTURE(run.finding().message);
    CHECK(contains(run.finding().message, "has not ended after 10000 synchronisation steps"));
    CHECK(contains(run.finding().message, "block (0,0,0)"));
    CHECK(contains(run.finding().message, "is at"));
    CHECK(contains(run.finding().message, "launches.cc:" + std::to_string(run.finding().line)));
    CHECK(next_launch_works());
  }
}

TEST_CASE("a kernel that loops without synchronising is stopped after its CPU time") {
  LaunchOptions options;
  options.silent_seconds = 0.1;
  volatile int flag = 0;
  const Launched run = launched(options, [&] { return plain::endless_loop(&flag); });
  CHECK(run.error == cudaErrorLaunchTimeout);
  CHECK(run.finding().kind == LaunchFindingKind::kStepLimit);
  CAPTURE(run.finding().message);
  CHECK(contains(run.finding().message,
                 "endless_loop_kernel, block (1,0,0): thread (3,0,0) has used"));
  CHECK(contains(run.finding().message, "has not reached one yet"));
  CHECK(next_launch_works());

  const Launched later = launched(options, [&] { return plain::endless_after_barrier(&flag); });
  CAPTURE(later.finding().message);
  CHECK(contains(later.finding().message, "the last was at"));
  CHECK(contains(later.finding().message, "launches.cc:" + std::to_string(later.finding().line)));
  CHECK(next_launch_works());
}

TEST_CASE("an endless loop is stopped in lockstep too") {
  LaunchOptions options;
  options.schedule = parse_schedule("lockstep");
  options.silent_seconds = 0.1;
  volatile int flag = 0;
  const Launched run = launched(options, [&] { return lockstep::endless_after_barrier(&flag); });
  CHECK(run.finding().kind == LaunchFindingKind::kStepLimit);
  CHECK(next_launch_works());
}

TEST_CASE("an exception that leaves a kernel is a finding with its text") {
  const Launched run = launched("forward", [] { return plain::throws(33); });
  CHECK(run.finding().kind == LaunchFindingKind::kKernelException);
  CHECK(contains(run.finding().message, "thread (33,0,0) threw an exception: no such tile"));
  CHECK(next_launch_works());
}

TEST_CASE("of two blocks that fail, the first in order is reported, whichever fails sooner") {
  for (const int slow : {7, 8}) {
    CAPTURE(slow);
    LaunchOptions options;
    options.workers = 2;
    int started = 0;
    const Launched run = launched(options, [&] { return plain::block_fails(slow, &started); });
    CAPTURE(run.finding().message);
    CHECK(contains(run.finding().message, "block (7,0,0)"));
  }
}

TEST_CASE("a launch works after one that was abandoned, on the same workers") {
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(launched("forward", [] { return plain::divergent_barrier(64); }).completed());
    CHECK(next_launch_works());
  }
}

TEST_CASE("blocks run on workers that persist, at most as many as asked for") {
  std::set<int> ids;
  for (int launch = 0; launch < 10; ++launch) {
    LaunchOptions options;
    options.workers = 3;
    std::vector<int> out(200);
    REQUIRE(launched(options, [&] { return plain::worker_ids(200, out.data()); }).completed());
    ids.insert(out.begin(), out.end());
  }
  CHECK(ids.size() >= 1);
  CHECK(ids.size() <= 3);
}

// As code under test does on an error, in a process that tries an edit.
TEST_CASE("exit() ends a forked process, though the workers are not in it") {
  LaunchOptions options;
  options.workers = 3;
  std::vector<int> out(200);
  REQUIRE(launched(options, [&] { return plain::worker_ids(200, out.data()); }).completed());
  std::fflush(nullptr);  // else the child prints it too
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);
    std::exit(3);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
#if !defined(__SANITIZE_ADDRESS__)  // which finds leaks there, of the threads that are gone
  CHECK(WEXITSTATUS(status) == 3);
#endif
}

TEST_CASE(
    "device code computes as a device does, whatever the launching thread has set for itself") {
  const std::vector<float> in = {1.0f, 0x1p-30f, 0x1p-126f, 0.5f};
  std::fenv_t before;
  std::fegetenv(&before);
  for (const int workers : {1, 2}) {
    std::vector<float> out(2 * 8, -1.0f);
    LaunchOptions options;
    options.workers = workers;
    std::fesetround(FE_UPWARD);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040);  // subnormals are zeros
#endif
    // Threads that are made meanwhile inherit that.
    std::thread([&] {
      launched(options, [&] { return plain::floats(in.data(), out.data(), 8); });
    }).join();
    launched(options, [&] { return plain::floats(in.data(), out.data(), 8); });
    CHECK(std::fegetround() == FE_UPWARD);
    std::fesetenv(&before);
    for (std::size_t i = 0; i < out.size(); i += 2) {
      CHECK(out[i] == 1.0f);
      CHECK(out[i + 1] == 0x1p-127f);
    }
  }
}

TEST_CASE("a report counts launches, blocks and steps of its scope") {
  const LaunchScope scope(LaunchOptions{});
  std::vector<float> out(3 * 96);
  plain::right(out.data());
  plain::right(out.data());
  CHECK(scope.report().launches == 2);
  CHECK(scope.report().blocks == 6);
  CHECK(scope.report().steps == 6u * 96 * 4 * (2 + 3));
}

TEST_CASE("launch scopes cannot be nested, and belong to one thread") {
  const LaunchScope scope(LaunchOptions{});
  CHECK_THROWS_AS(LaunchScope(LaunchOptions{}), std::logic_error);
  bool other_works = false;
  std::thread([&] {
    const LaunchScope other(LaunchOptions{});
    std::vector<float> out(3 * 96);
    other_works = plain::right(out.data()) == cudaSuccess && other.report().launches == 1;
  }).join();
  CHECK(other_works);
  CHECK(scope.report().launches == 0);
}

TEST_CASE("without a scope a finding is the error that cudaGetLastError returns, with its text") {
  CHECK(plain::divergent_barrier(64) == cudaErrorLaunchFailure);
  CHECK(cudaPeekAtLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(contains(cudaGetErrorString(cudaErrorLaunchFailure), "different __syncthreads()"));
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("atomic functions lose no update between blocks on several workers") {
  constexpr int kBlocks = 64, kThreads = 64, kAll = kBlocks * kThreads;
  int ints[12] = {};
  ints[5] = -1;
  unsigned unsigneds[4] = {0, 0, 0, 0};
  unsigned long long longs[1] = {};
  float floats[2] = {};
  double doubles[1] = {};
  half2 halves[1] = {__floats2half2_rn(0, 0)};
  LaunchOptions options;
  options.workers = 4;
  REQUIRE(launched(options, [&] {
            return plain::atomics(kBlocks, kThreads, ints, unsigneds, longs, floats, doubles,
                                  halves);
          }).completed());
  CHECK(ints[0] == kAll);
  CHECK(ints[1] == kAll - 1);
  CHECK(ints[2] == 1 - kAll);
  CHECK(ints[3] == -2 * kAll);
  CHECK(ints[4] == (1 << 20) - 1);
  CHECK(ints[5] == ~((1 << 20) - 1));
  CHECK(ints[6] == 0);  // 0 ^ 1 ^ ... ^ 4095
  CHECK(ints[7] == kAll - 1);
  for (int i = 8; i < 12; ++i) CHECK(ints[i] == 77);
  CHECK(unsigneds[0] == 3u * kAll);
  CHECK(unsigneds[1] == kAll % 10);
  CHECK(unsigneds[2] == (10 - kAll % 10) % 10);
  CHECK(unsigneds[3] == 0x80000000u + kAll - 1);
  CHECK(longs[0] == (1ull << 33) * kAll);
  CHECK(floats[0] == kAll);
  CHECK(floats[1] == 2.5f);
  CHECK(doubles[0] == 0.5 * kAll);
  CHECK(__half22float2(halves[0]).x == 2048.0f);  // where adding 1 in half ends
  CHECK(__half22float2(halves[0]).y == -2048.0f);
}

}  // namespace attn_diag::host
