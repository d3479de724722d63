#include "harness/host/test_kernels/ptx_kernels.h"
#include "harness/host/test_support.h"

namespace attn_diag::host {

TEST_CASE("shared memory has 32-bit addresses, small, never 0, aligned as the pointers are") {
  SeenAddresses seen{};
  REQUIRE(launched("forward", [&] { return plain::shared_addresses(&seen); }).completed());
  CHECK(seen.static_address >= 1024);
  CHECK(seen.dynamic_address > seen.static_address);
  CHECK(seen.dynamic_address < 232448);
  CHECK(seen.static_address % 32 == seen.static_pointer % 32);
  CHECK(seen.dynamic_address % 1024 == 0);
  CHECK(seen.dynamic_pointer % 1024 == 0);
  CHECK(seen.end_address == seen.dynamic_address + 64);
  CHECK(seen.same_static);
  CHECK(seen.same_dynamic);
  CHECK(seen.shared);
  CHECK_FALSE(seen.global_shared);
  CHECK(seen.local);
  CHECK_FALSE(seen.shared_local);
}

TEST_CASE("what is not shared memory has no shared address") {
  const struct {
    BadAddress what;
    const char* message;
  } cases[] = {
      {BadAddress::kGlobal, "takes the shared-memory address of a pointer that is not shared"},
      {BadAddress::kLocal, "but a variable of its own"},
      {BadAddress::kNull, "but null"},
      {BadAddress::kZero, "uses shared-memory address 0 at"},
      {BadAddress::kPastTheEnd, "which is not the block's: its static shared memory is at"},
  };
  float global = 0;
  for (const auto& [what, message] : cases) {
    const Launched run =
        launched("forward", [&, what = what] { return plain::bad_address(what, &global); });
    CAPTURE(message, run.finding().message);
    CHECK(run.finding().kind == LaunchFindingKind::kSharedMemoryMisuse);
    CHECK(contains(run.finding().message, message));
    CHECK(contains(run.finding().file, "ptx_kernels.cc"));
  }
}

TEST_CASE("producers and consumers meet at named barriers") {
  auto schedules = plain_schedules();
  schedules.push_back("lockstep");
  for (const std::string& schedule : schedules) {
    CAPTURE(schedule);
    std::vector<int> out(96, -1);
    const Launched run = launched(schedule, [&] {
      return schedule == "lockstep" ? lockstep::named_pipeline(7, out.data())
                                    : plain::named_pipeline(7, out.data());
    });
    REQUIRE(run.completed());
    CHECK(run.report.notes.empty());
    for (int t = 32; t < 96; ++t) REQUIRE(out[t] == 2100 + 7 * (31 - t % 32));
  }
}

TEST_CASE("a barrier without a count is for all of the block that have not returned") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    for (const int staying : {128, 100}) {
      std::vector<int> out(128, -1);
      const Launched run =
          launched(schedule, [&] { return plain::named_whole_block(128, staying, out.data()); });
      REQUIRE(run.completed());
      for (int t = 0; t < staying; ++t) REQUIRE(out[t] == t);
    }
  }
}

TEST_CASE("arrivals that nobody waited for are noted") {
  const Launched run = launched("forward", [] { return plain::unfinished_arrival(); });
  REQUIRE(run.completed());
  REQUIRE(run.report.notes.size() == 1);
  CHECK(contains(run.report.notes[0], "32 threads arrived at barrier 7 at"));
  CHECK(contains(run.report.notes[0], "the other 32 came"));
}

TEST_CASE("misuse of a named barrier is a finding") {
  const struct {
    BadNamedBarrier what;
    const char* message;
  } cases[] = {
      {BadNamedBarrier::kNumber, "barrier 16 with a count of 64; a block has barriers 0 to 15"},
      {BadNamedBarrier::kOddCount, "a count of 48; a count is a multiple of 32"},
      {BadNamedBarrier::kTooManyThreads, "a count of 96; that is more threads than the block has"},
      {BadNamedBarrier::kArriveWithoutCount, "bar.arrive needs a count"},
      {BadNamedBarrier::kDifferentCounts, "where others came with"},
      {BadNamedBarrier::kTwice, "a second time before"},
      {BadNamedBarrier::kZeroAgainstSyncthreads, "which is barrier 0 too"},
      {BadNamedBarrier::kSyncthreadsAgainstZero,
       "32 threads have arrived at barrier 0 with a count"},
      {BadNamedBarrier::kTooFew, "no thread can go on: threads (0..31,0,0) at barrier 1 (32 of 64"},
  };
  for (const auto& [what, message] : cases) {
    const Launched run = launched("forward", [w = what] { return plain::bad_named_barrier(w); });
    CAPTURE(message, run.finding().message);
    CHECK(run.finding().kind == LaunchFindingKind::kBarrierDivergence);
    CHECK(contains(run.finding().message, message));
    CHECK(contains(run.finding().file, "ptx_kernels.cc"));
  }
}

TEST_CASE("producers and consumers meet at mbarriers") {
  auto schedules = plain_schedules();
  schedules.push_back("lockstep");
  for (const std::string& schedule : schedules) {
    CAPTURE(schedule);
    std::vector<int> out(96, -1);
    const Launched run = launched(schedule, [&] {
      return schedule == "lockstep" ? lockstep::mbarrier_pipeline(7, out.data())
                                    : plain::mbarrier_pipeline(7, out.data());
    });
    REQUIRE(run.completed());
    for (int t = 32; t < 96; ++t) REQUIRE(out[t] == 2100 + 7 * (31 - t % 32));
  }
}

TEST_CASE("a phase of an mbarrier waits for the bytes that were announced") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    std::vector<int> out(64, -1);
    REQUIRE(launched(schedule, [&] { return plain::mbarrier_bytes(out.data()); }).completed());
    for (int t = 0; t < 64; ++t) REQUIRE(out[t] == 63 - t % 32);
  }
}

TEST_CASE("states of an mbarrier tell what was pending, and phases end in order") {
  std::vector<std::uint64_t> out(8, 99);
  REQUIRE(launched("forward", [&] { return plain::mbarrier_states(out.data()); }).completed());
  CHECK(out == std::vector<std::uint64_t>{3, 0, 2, 1, 2, 0, 0, 1});
}

TEST_CASE(
    "an mbarrier that follows copies hands them over, and without a wait they have not landed") {
  std::vector<float> in(64);
  for (int i = 0; i < 64; ++i) in[i] = static_cast<float>(i);
  for (const bool noinc : {false, true})
    for (const std::string& schedule : plain_schedules()) {
      CAPTURE(schedule, noinc);
      std::vector<float> out(64, -1);
      REQUIRE(launched(schedule, [&] {
                return plain::mbarrier_copies(noinc, true, in.data(), out.data());
              }).completed());
      for (int t = 0; t < 64; ++t) REQUIRE(out[t] == in[63 - t]);
      REQUIRE(launched(schedule, [&] {
                return plain::mbarrier_copies(noinc, false, in.data(), out.data());
              }).completed());
      for (int t = 0; t < 64; ++t) REQUIRE(out[t] != out[t]);
    }
}

TEST_CASE("misuse of an mbarrier is a finding") {
  const struct {
    BadMbarrier what;
    const char* message;
  } cases[] = {
      {BadMbarrier::kNotInitialised, "that was not initialised"},
      {BadMbarrier::kZeroed, "that was not initialised"},
      {BadMbarrier::kInvalidated, "that was not initialised"},
      {BadMbarrier::kNoArrivals, "initialises an mbarrier for 0 arrivals"},
      {BadMbarrier::kTooManyArrivals, "arrives 3 times at an mbarrier that lacks 2 of 2 arrivals"},
      {BadMbarrier::kGlobal, "uses an mbarrier that is not shared memory"},
      {BadMbarrier::kMisaligned, "4 bytes past a multiple of 8"},
      {BadMbarrier::kNeverComplete,
       "no thread can go on: thread (0,0,0) at mbarrier (phase 0, 1 of 2 arrivals and 0 bytes"},
      {BadMbarrier::kBytesNeverCome, "0 of 2 arrivals and 4096 bytes missing) at"},
  };
  std::uint64_t global = 0;
  for (const auto& [what, message] : cases) {
    const Launched run =
        launched("forward", [&, what = what] { return plain::bad_mbarrier(what, &global); });
    CAPTURE(message, run.finding().message);
    CHECK(contains(run.finding().message, message));
    CHECK(contains(run.finding().file, "ptx_kernels.cc"));
  }
}

}  // namespace attn_diag::host
