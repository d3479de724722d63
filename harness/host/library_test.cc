// Classes of libcu++: cuda::pipeline, cuda::barrier, cuda::atomic.
#include <vector>

#include "harness/host/test_kernels/library_kernels.h"
#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

std::vector<float> numbers(int count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
  return values;
}

}  // namespace

TEST_CASE("a pipeline of a block hands over stage by stage, whoever produces and consumes") {
  constexpr int kRows = 7;
  const std::vector<float> in = numbers(kRows * 64);
  for (const auto roles : {PipelineRoles::kAll, PipelineRoles::kCounted, PipelineRoles::kNamed}) {
    for (const std::string& schedule : plain_schedules()) {
      CAPTURE(static_cast<int>(roles), schedule);
      std::vector<float> out(in.size(), -1);
      REQUIRE(launched(schedule, [&] {
                return plain::block_pipeline(roles, in.data(), kRows, true, out.data());
              }).completed());
      for (int i = 0; i < kRows * 64; ++i)
        REQUIRE(out[static_cast<std::size_t>(i)] == static_cast<float>(i / 64 * 64 + 63 - i % 64));
    }
    std::vector<float> out(in.size(), -1);
    REQUIRE(launched("lockstep", [&] {
              return lockstep::block_pipeline(roles, in.data(), kRows, true, out.data());
            }).completed());
    CHECK(out[0] == 63);
  }
}

TEST_CASE("consumers that never release a stage stop the producers, and both are named") {
  const std::vector<float> in = numbers(7 * 64);
  std::vector<float> out(in.size());
  const Launched run = launched("forward", [&] {
    return plain::block_pipeline(PipelineRoles::kCounted, in.data(), 7, false, out.data());
  });
  CHECK(run.finding().kind == LaunchFindingKind::kBarrierDivergence);
  CHECK(contains(run.finding().message, "library_kernels.cc"));
}

TEST_CASE("a group's copy is complete when the barrier's phase is") {
  const std::vector<float> in = numbers(64);
  for (const std::string& schedule : plain_schedules()) {
    std::vector<float> out(64, -1);
    REQUIRE(launched(schedule, [&] {
              return plain::barrier_of_group(in.data(), out.data());
            }).completed());
    for (int i = 0; i < 64; ++i)
      CHECK(out[static_cast<std::size_t>(i)] == static_cast<float>(63 - i));
  }
}

TEST_CASE("cuda::atomic and cuda::atomic_ref update as one") {
  int counters[5] = {0, -1, 0, 7, 0};
  float sum = 0;
  REQUIRE(
      launched("seed:2", [&] { return plain::atomic_references(4, counters, &sum); }).completed());
  CHECK((counters[0] == 256 && counters[1] == 255 && counters[2] == -1 && counters[3] == 8));
  CHECK(counters[4] == 4);
  CHECK(sum == 128);
}

}  // namespace attn_diag::host
