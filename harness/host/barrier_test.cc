#include "harness/host/test_support.h"

namespace attn_diag::host {

TEST_CASE("threads that return early do not keep the others at the barrier") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    std::vector<int> out(128, -1);
    const Launched run =
        launched(schedule, [&] { return plain::early_return(128, 100, out.data()); });
    REQUIRE(run.completed());
    for (int t = 0; t < 100; ++t) REQUIRE(out[t] == 99 - t);
    for (int t = 100; t < 128; ++t) REQUIRE(out[t] == -1);
  }
}

TEST_CASE("a barrier passed after some threads returned is noted with its place") {
  std::vector<int> out(128);
  const Launched run =
      launched("forward", [&] { return plain::early_return(128, 100, out.data()); });
  REQUIRE(run.report.notes.size() == 1);
  CHECK(contains(run.report.notes[0], "28 of 128 threads had returned"));
  CHECK(contains(run.report.notes[0], "barriers.cc:"));
  const Launched full =
      launched("forward", [&] { return plain::early_return(128, 128, out.data()); });
  CHECK(full.report.notes.empty());
}

TEST_CASE("a barrier reached at two lines is a finding that names threads and lines") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    const Launched run = launched(schedule, [] { return plain::divergent_barrier(dim3(32, 2)); });
    CHECK(run.error == cudaErrorLaunchFailure);
    CHECK(run.finding().kind == LaunchFindingKind::kBarrierDivergence);
    const std::string& message = run.finding().message;
    CAPTURE(message);
    CHECK(contains(message, "divergent_barrier_kernel, block (0,0,0)"));
    CHECK(contains(message, "threads (0..15,0,0) at __syncthreads at"));
    CHECK(contains(message, "threads (16..31,0,0), (0..31,1,0) at __syncthreads at"));
    CHECK(contains(message, "barriers.cc:" + std::to_string(run.finding().line)));
    CHECK(contains(run.finding().file, "barriers.cc"));
  }
}

TEST_CASE(
    "threads at a barrier and lanes at a warp collective that wait for each other are a finding") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    const Launched run = launched(schedule, [] { return plain::barrier_against_syncwarp(); });
    CHECK(run.finding().kind == LaunchFindingKind::kWarpDivergence);
    const std::string& message = run.finding().message;
    CAPTURE(message);
    CHECK(contains(message, "threads (0..7,0,0) at __syncwarp with mask 0xFFFFFFFF at"));
    CHECK(contains(message, "threads (8..63,0,0) at __syncthreads at"));
  }
}

TEST_CASE("barriers with a vote give every thread the count, the conjunction and the disjunction") {
  for (const int ayes : {0, 1, 63, 64}) {
    CAPTURE(ayes);
    std::vector<int3> out(64);
    REQUIRE(
        launched("seed:5", [&] { return plain::barrier_votes(64, ayes, out.data()); }).completed());
    for (const int3& votes : out) {
      REQUIRE(votes.x == ayes);
      REQUIRE(votes.y == (ayes == 64 ? 1 : 0));
      REQUIRE(votes.z == (ayes > 0 ? 1 : 0));
    }
  }
}

}  // namespace attn_diag::host
