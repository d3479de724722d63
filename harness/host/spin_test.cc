#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "harness/host/fingerprints.h"
#include "harness/host/sanitizer.h"
#include "harness/host/test_kernels/spin_kernels.h"
#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

struct Way {
  std::string schedule;
  int workers;
};

std::vector<Way> ways() {
  return {{"forward", 1},  {"reverse", 1}, {"seed:3", 1},
          {"lockstep", 1}, {"forward", 2}, {"reverse", 3}};
}

Launched launched_by(const Way& way, const std::function<cudaError_t()>& plain_launch,
                     const std::function<cudaError_t()>& lockstep_launch) {
  LaunchOptions options;
  options.schedule = parse_schedule(way.schedule);
  options.workers = way.workers;
  options.silent_seconds = 5;
  return launched(options, way.schedule == "lockstep" ? lockstep_launch : plain_launch);
}

// Calls the kernel of both builds' name with the same arguments.
#define LAUNCHED(way, call) \
  launched_by(              \
      way, [&] { return plain::call; }, [&] { return lockstep::call; })

}  // namespace

TEST_CASE("a block that waits for a flag of another gets it, whichever of them starts first") {
  for (const Way& way : ways())
    for (const int waiter : {0, 1}) {
      CAPTURE(way.schedule, way.workers, waiter);
      int flag = 0;
      std::vector<int> out(64, -1);
      REQUIRE(LAUNCHED(way, hand_off(waiter, &flag, out.data())).completed());
      for (int t = 0; t < 32; ++t) REQUIRE(out[static_cast<std::size_t>(t)] == t + 1);
    }
}

TEST_CASE("a chain of 64 blocks, each waiting for its neighbour, completes") {
  for (const Way& way : ways())
    for (const bool backwards : {false, true}) {
      CAPTURE(way.schedule, way.workers, backwards);
      std::vector<int> flags(64), out(64);
      REQUIRE(LAUNCHED(way, chain(64, backwards, flags.data(), out.data())).completed());
      for (int b = 0; b < 64; ++b)
        REQUIRE(out[static_cast<std::size_t>(b)] == (backwards ? 64 - b : b + 1));
    }
}

// As an edit is tried.
TEST_CASE("blocks that wait for one another complete in a forked process, where no worker is yet") {
  const auto completes = [](int workers) {
    std::vector<int> flags(64), out(64);
    const auto launch = [&] { return plain::chain(64, true, flags.data(), out.data()); };
    return launched_by({"forward", workers}, launch, launch).completed();
  };
  REQUIRE(completes(2));
  for (const int workers : {1, 3}) {
    CAPTURE(workers);
    std::fflush(nullptr);  // else the child prints it too
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
      ::alarm(20);
      ::_exit(completes(workers) ? 3 : 4);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
  }
}

TEST_CASE("locks by ticket and by exchange let every thread in once") {
  for (const Way& way : ways()) {
    CAPTURE(way.schedule, way.workers);
    std::vector<int> tickets(2), out(1);
    REQUIRE(LAUNCHED(way, ticket_lock(4, tickets.data(), out.data())).completed());
    CHECK(out[0] == 4 * 64);
    int lock = 0;
    out[0] = 0;
    REQUIRE(LAUNCHED(way, exchange_lock(4, &lock, out.data())).completed());
    CHECK(out[0] == 2 * 4 * 2);
  }
}

TEST_CASE("a barrier of the whole grid, by polling, is passed by all blocks in each phase") {
  for (const Way& way : ways()) {
    CAPTURE(way.schedule, way.workers);
    constexpr int kBlocks = 16, kPhases = 5;
    int counter = 0;
    std::vector<int> values(2 * kBlocks), out(kBlocks);
    REQUIRE(LAUNCHED(way, grid_of_barriers(kBlocks, kPhases, &counter, values.data(), out.data()))
                .completed());
    for (int b = 0; b < kBlocks; ++b)
      REQUIRE(out[static_cast<std::size_t>(b)] == (b + kPhases) % kBlocks);
    counter = 0;
    REQUIRE(LAUNCHED(way, polling_with_give_way(kBlocks, &counter, out.data())).completed());
    for (const int seen : out) REQUIRE(seen == kBlocks);
  }
}

TEST_CASE("warps and lanes that poll volatile shared memory get on") {
#if defined(ATTN_DIAG_HOST_ASAN)
  WARN("SKIP: with AddressSanitizer's frames threads are not interrupted before the limit");
#else
  for (const Way& way : ways()) {
    CAPTURE(way.schedule, way.workers);
    std::vector<int> out(64);
    REQUIRE(LAUNCHED(way, volatile_pipeline(4, out.data())).completed());
    for (int t = 32; t < 64; ++t) REQUIRE(out[static_cast<std::size_t>(t)] == 10 * (63 - t));
    REQUIRE(LAUNCHED(way, lanes_in_turn(out.data())).completed());
    for (int t = 0; t < 32; ++t) REQUIRE(out[static_cast<std::size_t>(t)] == 31 - t);
  }
#endif
}

TEST_CASE("a thread that counts while it waits is interrupted after a part of the limit") {
  LaunchOptions options;
  options.silent_seconds = 0.2;
  int flag = 0, out = 0;
  REQUIRE(launched(options, [&] { return plain::counting_wait(&flag, &out); }).completed());
  CHECK(out == 1);
}

TEST_CASE("a thread that is interrupted finds its registers as they were") {
  std::vector<double> in(24), out(32 * 24);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = 0.1 + static_cast<double>(i);
  int flag = 0;
  REQUIRE(launched("forward", [&] {
            return plain::registers_kept(&flag, in.data(), out.data());
          }).completed());
  for (std::size_t t = 0; t < 32; ++t)
    for (std::size_t i = 0; i < 24; ++i)
      REQUIRE(out[t * 24 + i] == in[i] * static_cast<double>(t + 1));
}

TEST_CASE("a thread that computes for long without synchronising is not interrupted") {
  std::vector<int> order(4);
  std::vector<double> sink(4);
  int counter = 0;
  REQUIRE(launched("forward", [&] {
            return plain::long_computation(20000000, &counter, order.data(), sink.data());
          }).completed());
  CHECK(order == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a state that is seen again is a loop, at once only if another was seen between") {
  Fingerprints fingerprints;
  CHECK_FALSE(fingerprints.comes_back(0x100));
  CHECK_FALSE(fingerprints.comes_back(0x100));
  CHECK_FALSE(fingerprints.comes_back(0x100));
  CHECK_FALSE(fingerprints.comes_back(0x200));
  CHECK(fingerprints.comes_back(0x100));
  CHECK_FALSE(fingerprints.comes_back(0x100));
  CHECK_FALSE(fingerprints.comes_back(0x100));
  CHECK(fingerprints.comes_back(0x100));
  CHECK(fingerprints.comes_back(0x100));
  fingerprints.clear();
  CHECK_FALSE(fingerprints.comes_back(0x100));
  CHECK_FALSE(fingerprints.comes_back(0x200));
}

TEST_CASE("a launch of which no thread gets on is reported, with who waits where") {
  LaunchOptions options;
  options.silent_seconds = 0.1;
  for (const int workers : {1, 2}) {
    options.workers = workers;
    int flag = 0;
    const Launched run = launched(options, [&] { return plain::waits_for_nobody(3, &flag); });
    CAPTURE(workers, run.finding().message);
    CHECK(run.error == cudaErrorLaunchTimeout);
    CHECK(run.finding().kind == LaunchFindingKind::kStepLimit);
    CHECK(contains(run.finding().message, "block (0,0,0): thread (5,0,0) has used 0.1 s"));
    CHECK(contains(run.finding().message, "thread (5,0,0) at a loop after"));
    CHECK(contains(run.finding().message, "threads (0..4,0,0), (6..63,0,0) at __syncthreads at"));

    std::vector<int> flags(2);
    const Launched circle =
        launched(options, [&] { return plain::wait_in_a_circle(flags.data()); });
    CAPTURE(circle.finding().message);
    CHECK(contains(circle.finding().message, "block (0,0,0): thread (0,0,0) has used"));
    CHECK(contains(circle.finding().message, "at a loop before any synchronisation point"));
  }
}

TEST_CASE("a block that waits for one that failed is not what is reported") {
  for (const int workers : {1, 2}) {
    LaunchOptions options;
    options.workers = workers;
    int flag = 0;
    const Launched run = launched(options, [&] { return plain::other_block_fails(&flag); });
    CAPTURE(workers, run.finding().message);
    CHECK(run.finding().kind == LaunchFindingKind::kBarrierDivergence);
    CHECK(contains(run.finding().message, "block (1,0,0)"));
  }
}

}  // namespace attn_diag::host
