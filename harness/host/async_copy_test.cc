#include <cmath>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

struct alignas(32) Numbers {
  float at[1024];
  Numbers() {
    for (int i = 0; i < 1024; ++i) at[i] = static_cast<float>(i + 1);
  }
};

std::vector<std::string> all_schedules() {
  std::vector<std::string> schedules = plain_schedules();
  schedules.push_back("lockstep");
  return schedules;
}

Launched launched_with(AsyncCopies copies, const std::string& schedule,
                       const std::function<cudaError_t()>& launch) {
  LaunchOptions options;
  options.schedule = parse_schedule(schedule);
  options.async_copies = copies;
  return host::launched(options, launch);
}

// Runs on the build that the schedule needs.
#define LAUNCH(name, ...) \
  [&] { return schedule == "lockstep" ? lockstep::name(__VA_ARGS__) : plain::name(__VA_ARGS__); }

}  // namespace

TEST_CASE("an asynchronous copy lands at the wait that must complete it, and not before") {
  const Numbers in;
  for (const std::string& schedule : all_schedules())
    for (const int prior : {-1, 0, 1, 2, 3}) {
      CAPTURE(schedule, prior);
      std::vector<float> out(3 * 64, -7.0f);
      REQUIRE(launched_with(AsyncCopies::kLate, schedule,
                            LAUNCH(staged_copies, in.at, prior, out.data()))
                  .completed());
      const int landed = prior < 0 ? 0 : 3 - prior;
      for (int s = 0; s < 3; ++s)
        for (int t = 0; t < 64; ++t) {
          const float value = out[s * 64 + t];
          if (s < landed)
            REQUIRE(value == in.at[s * 64 + (t ^ 1)]);
          else
            REQUIRE(std::isnan(value));  // the poison
        }
    }
}

TEST_CASE("asynchronous copies that land early hide a missing wait") {
  const Numbers in;
  for (const std::string& schedule : all_schedules()) {
    CAPTURE(schedule);
    std::vector<float> out(3 * 64);
    REQUIRE(
        launched_with(AsyncCopies::kEarly, schedule, LAUNCH(staged_copies, in.at, -1, out.data()))
            .completed());
    for (int i = 0; i < 3 * 64; ++i) REQUIRE(out[i] == in.at[i ^ 1]);
  }
}

TEST_CASE("an asynchronous copy writes zeros for the bytes that it is told not to read") {
  const Numbers in;
  std::vector<float> out(12);
  REQUIRE(launched("forward", [&] {
            return plain::zero_filled_copies(in.at, out.data());
          }).completed());
  const std::vector<float> expected = {0, -1, 3, 0, 5, 0, 0, 0, 9, 10, 11, 12};
  CHECK(out == expected);
}

TEST_CASE("a double-buffered pipeline gives the same under every schedule, late or early") {
  const Numbers in;
  for (const std::string& schedule : all_schedules())
    for (const AsyncCopies copies : {AsyncCopies::kLate, AsyncCopies::kEarly}) {
      CAPTURE(schedule, static_cast<int>(copies));
      std::vector<float> out(32);
      const Launched run =
          launched_with(copies, schedule, LAUNCH(pipelined_copies, in.at, 5, out.data()));
      REQUIRE(run.completed());
      CHECK(run.report.notes.empty());
      for (int t = 0; t < 32; ++t) {
        float sum = 0;
        for (int tile = 0; tile < 5; ++tile)
          for (int i = 0; i < 4; ++i) sum += in.at[(tile * 32 + (t ^ 1)) * 4 + i];
        REQUIRE(out[t] == sum);
      }
    }
}

TEST_CASE("copies bound to a cuda::barrier land when its phase ends") {
  const Numbers in;
  for (const std::string& schedule : all_schedules()) {
    CAPTURE(schedule);
    std::vector<float> out(64);
    REQUIRE(launched_with(AsyncCopies::kLate, schedule,
                          LAUNCH(copies_with_barrier, in.at, true, out.data()))
                .completed());
    for (int t = 0; t < 64; ++t) REQUIRE(out[t] == in.at[t ^ 33]);
    // Without the wait, the first threads to read do not find them.
    REQUIRE(launched_with(AsyncCopies::kLate, schedule,
                          LAUNCH(copies_with_barrier, in.at, false, out.data()))
                .completed());
    int missing = 0;
    for (const float x : out) missing += std::isnan(x);
    CHECK(missing > 0);
  }
}

TEST_CASE("a cuda::barrier separates phases and forgets threads that drop out") {
  for (const std::string& schedule : all_schedules())
    for (const int threads : {1, 2, 33, 64}) {
      CAPTURE(schedule, threads);
      std::vector<int> out(threads);
      const Launched run =
          launched_with(AsyncCopies::kLate, schedule, LAUNCH(barrier_phases, threads, out.data()));
      for (const LaunchFinding& finding : run.report.findings) UNSCOPED_INFO(finding.message);
      REQUIRE(run.completed());
      for (const int sum : out) REQUIRE(sum == 123);
    }
}

TEST_CASE("warps hand values on through a pair of cuda::barriers") {
  for (const std::string& schedule : all_schedules()) {
    CAPTURE(schedule);
    std::vector<float> out(64);
    REQUIRE(launched_with(AsyncCopies::kLate, schedule, LAUNCH(producer_and_consumers, out.data()))
                .completed());
    for (int t = 0; t < 64; ++t)
      REQUIRE(out[t] == (t < 32 ? 0.0f : static_cast<float>(600 + 4 * (63 - t))));
  }
}

TEST_CASE("copies that are never waited for are noted with the line that issued them") {
  const Numbers in;
  for (const bool bound : {false, true}) {
    const Launched run =
        launched("forward", [&] { return plain::copies_not_waited_for(in.at, bound); });
    REQUIRE(run.completed());
    REQUIRE(run.report.notes.size() == 1);
    CAPTURE(run.report.notes[0]);
    CHECK(contains(run.report.notes[0], "32 asynchronous copies were never waited for"));
    CHECK(contains(run.report.notes[0], "async_copies.cc:"));
  }
  const Launched early = launched_with(AsyncCopies::kEarly, "forward",
                                       [&] { return plain::copies_not_waited_for(in.at, false); });
  CHECK(early.report.notes.empty());
}

TEST_CASE("an asynchronous copy that CUDA does not define is a finding") {
  Numbers global;
  const std::pair<BadCopy, const char*> cases[] = {
      {BadCopy::kSize, "12 bytes of a size that is not 4, 8 or 16"},
      {BadCopy::kDestinationAlignment, "whose destination is not aligned to its size"},
      {BadCopy::kSourceAlignment, "whose source is not aligned to its size"},
      {BadCopy::kZeros, "more zeros than it has bytes"},
      {BadCopy::kDestinationGlobal, "whose destination is not in shared memory"},
      {BadCopy::kSourceShared, "whose source is not in global memory"},
      {BadCopy::kSourceLocal, "whose source is not in global memory"}};
  for (const auto& one : cases)
    for (const AsyncCopies copies : {AsyncCopies::kLate, AsyncCopies::kEarly}) {
      const Launched run =
          launched_with(copies, "forward", [&] { return plain::bad_copy(one.first, global.at); });
      CHECK(run.error == cudaErrorLaunchFailure);
      CHECK(run.finding().kind == LaunchFindingKind::kAsyncCopyMisuse);
      CAPTURE(run.finding().message);
      CHECK(contains(run.finding().message, one.second));
      CHECK(
          contains(run.finding().message, "async_copies.cc:" + std::to_string(run.finding().line)));
    }
}

TEST_CASE("a cuda::barrier that is misused is a finding") {
  const std::pair<BadBarrier, const char*> cases[] = {
      {BadBarrier::kNotInitialised, "uses a cuda::barrier that was not initialised"},
      {BadBarrier::kNoArrivals, "initialises a cuda::barrier for 0 arrivals"},
      {BadBarrier::kTooManyArrivals, "arrives 5 times at a cuda::barrier that lacks 4 of 4"},
      {BadBarrier::kNeverComplete,
       "no thread can go on: threads (0..31,0,0) at cuda::barrier::wait"}};
  for (const auto& one : cases)
    for (const std::string& schedule : all_schedules()) {
      CAPTURE(schedule);
      const Launched run =
          launched_with(AsyncCopies::kLate, schedule, LAUNCH(bad_barrier, one.first));
      CHECK(run.error == cudaErrorLaunchFailure);
      CHECK(run.finding().kind == LaunchFindingKind::kBarrierDivergence);
      CAPTURE(run.finding().message);
      CHECK(contains(run.finding().message, one.second));
      CHECK(
          contains(run.finding().message, "async_copies.cc:" + std::to_string(run.finding().line)));
    }
}

}  // namespace attn_diag::host
