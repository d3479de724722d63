#include <cstring>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

// CUDA C++ Programming Guide, "Warp Shuffle Functions", written for one lane.
int expected_source(Shuffle kind, int lane, int argument, int width) {
  const int first = lane / width * width, last = first + width - 1;
  switch (kind) {
    case Shuffle::kIndex:
      return first + ((argument % width) + width) % width;
    case Shuffle::kUp:
      return lane - argument >= first ? lane - argument : lane;
    case Shuffle::kDown:
      return lane + argument <= last ? lane + argument : lane;
    case Shuffle::kXor:
      return (lane ^ argument) <= last ? lane ^ argument : lane;
  }
  return -1;
}

void check_finding(const std::function<cudaError_t()>& launch, const std::string& part) {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    const Launched run = launched(schedule, launch);
    CHECK(run.error == cudaErrorLaunchFailure);
    CHECK(run.finding().kind == LaunchFindingKind::kWarpDivergence);
    CAPTURE(run.finding().message);
    CHECK(contains(run.finding().message, part));
    CHECK(contains(run.finding().message, "warps.cc:" + std::to_string(run.finding().line)));
  }
}

}  // namespace

TEST_CASE("shuffles read the lane that CUDA defines, at every width") {
  for (const Shuffle kind : {Shuffle::kIndex, Shuffle::kUp, Shuffle::kDown, Shuffle::kXor})
    for (const int width : {1, 2, 4, 8, 16, 32})
      for (const int argument : {0, 1, 2, 3, 7, 8, 31}) {
        CAPTURE(static_cast<int>(kind), width, argument);
        std::vector<int> out(64);
        REQUIRE(launched("forward", [&] {
                  return plain::shuffle(kind, argument, width, 64, out.data());
                }).completed());
        for (int t = 0; t < 64; ++t) {
          CAPTURE(t);
          REQUIRE(out[t] == 1000 + t / 32 * 32 + expected_source(kind, t % 32, argument, width));
        }
      }
}

TEST_CASE("one warp may shuffle while the others wait at the barrier") {
  for (const std::string& schedule : plain_schedules())
    for (const int warp : {0, 1, 2}) {
      CAPTURE(schedule, warp);
      std::vector<int> out(96);
      REQUIRE(launched(schedule, [&] {
                return plain::shuffle_in_one_warp(warp, 96, out.data());
              }).completed());
      for (int t = 0; t < 96; ++t)
        REQUIRE(out[t] == (t / 32 == warp ? warp * 32 * 32 + 31 * 16 : t));
    }
}

TEST_CASE("shuffles move doubles, 64-bit integers, half and half2") {
  std::vector<double> doubles(32);
  std::vector<long long> longs(32);
  std::vector<half> halves(32);
  std::vector<half2> pairs(32);
  REQUIRE(launched("reverse", [&] {
            return plain::shuffle_types(doubles.data(), longs.data(), halves.data(), pairs.data());
          }).completed());
  for (int t = 0; t < 32; ++t) {
    REQUIRE(doubles[t] == (t ^ 1) + 0.1);
    REQUIRE(longs[t] == (1ll << 40) + (t ^ 1));
    REQUIRE(__half2float(halves[t]) == static_cast<float>(t ^ 1) + 0.5f);
    REQUIRE(__half22float2(pairs[t]).x == static_cast<float>(t ^ 1));
    REQUIRE(__half22float2(pairs[t]).y == -1.0f);
  }
}

TEST_CASE("votes, matches and reductions give every lane what CUDA defines") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    std::vector<WarpVotes> out(32);
    REQUIRE(launched(schedule, [&] { return plain::votes(out.data()); }).completed());
    for (int t = 0; t < 32; ++t) {
      const WarpVotes& v = out[t];
      REQUIRE(v.ballot == 0x49249249u);
      REQUIRE(v.any == 1);
      REQUIRE(v.all == 1);
      REQUIRE(v.match_any == 0x11111111u << (t % 4));
      REQUIRE(v.match_all == 0xFFFFFFFFu);
      REQUIRE(v.match_all_equal == 1);
      REQUIRE(v.reduce_add == 496u);
      REQUIRE(v.reduce_min == -16);
      REQUIRE(v.reduce_max == -9);
      REQUIRE(v.reduce_and == 0xF0u);
      REQUIRE(v.reduce_or == 0xFFFFFFFFu);
      REQUIRE(v.reduce_xor == (1u ^ 2u ^ 4u));
    }
  }
}

TEST_CASE("the halves of a warp synchronise apart from each other") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    std::vector<int> out(32);
    REQUIRE(launched(schedule, [&] { return plain::half_warps(out.data()); }).completed());
    for (int t = 0; t < 16; ++t) REQUIRE(out[t] == 120);
    for (int t = 16; t < 32; ++t) REQUIRE(out[t] == (t < 31 ? 2 * t + 1 : 62));
  }
}

TEST_CASE("a lane may go through two overlapping masks one after the other") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    std::vector<int> out(32);
    REQUIRE(launched(schedule, [&] { return plain::overlapping_masks(out.data()); }).completed());
    REQUIRE(out[0] == 100 + 10 * 1 + 1000 * 2);
    REQUIRE(out[1] == 101);
    REQUIRE(out[2] == 102);
    REQUIRE(out[3] == 103);
  }
}

TEST_CASE("reading a lane outside the mask gives poison") {
  std::vector<unsigned> out(8);
  REQUIRE(launched("forward", [&] { return plain::read_outside_mask(out.data()); }).completed());
  for (const unsigned value : out) REQUIRE(value == 0xFFFFFFFFu);
}

TEST_CASE("lanes that returned no longer count, and reading them gives poison") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    std::vector<unsigned> out(32, 7);
    REQUIRE(
        launched(schedule, [&] { return plain::shuffle_after_exit(20, out.data()); }).completed());
    for (unsigned t = 0; t < 19; ++t) REQUIRE(out[t] == t + 1);
    REQUIRE(out[19] == 0xFFFFFFFFu);
    REQUIRE(out[20] == 7);
  }
}

TEST_CASE("the last warp of a block may be partial") {
  for (const int threads : {1, 31, 33, 45}) {
    CAPTURE(threads);
    std::vector<int> out(threads);
    REQUIRE(
        launched("seed:9", [&] { return plain::partial_warp(threads, out.data()); }).completed());
    REQUIRE(out[0] == (threads < 32 ? threads : 32));
    if (threads > 32) REQUIRE(out[32] == threads - 32);
  }
}

TEST_CASE("a lane that is not in its own mask is a finding") {
  check_finding([] { return plain::lane_not_in_mask(); }, "a mask that does not name its own lane");
}

TEST_CASE("a mask that names lanes waiting elsewhere is a finding that lists who waits where") {
  check_finding([] { return plain::mask_names_absent_lanes(); },
                "threads (0..3,0,0) at __shfl_sync with mask 0xFFFFFFFF at");
  check_finding([] { return plain::mask_names_absent_lanes(); },
                "threads (4..31,0,0) at __syncthreads at");
}

TEST_CASE("lanes of one mask in different operations are a finding") {
  check_finding([] { return plain::mixed_operations(); }, "in another operation");
}

TEST_CASE("lanes of one mask with different widths are a finding") {
  check_finding([] { return plain::mixed_widths(); }, "of another width");
}

TEST_CASE("a width that is no power of two is a finding") {
  check_finding([] { return plain::width_three(); }, "shuffles with an impossible width");
}

}  // namespace attn_diag::host
