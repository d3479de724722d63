#include "harness/host/test_kernels/reconvergence.h"

#include <utility>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

constexpr int kThreads = 32, kRounds = 4;

// What a converged warp computes.
std::vector<int> converged(Parting parting) {
  std::vector<int> out;
  for (int t = 0; t < kThreads; ++t) {
    const bool returned = parting == Parting::kReturn && t % 4 == 3;
    int sum = 0;
    for (int round = 0; round <= kRounds; ++round) {
      const int factor = round < kRounds ? round + 1 : 1;
      sum += factor * ((t ^ 1) + 1000 * (t ^ 2));
    }
    out.push_back(returned ? -1 : sum);
  }
  return out;
}

// Nothing is expected of lanes whose neighbours have returned.
bool is_judged(Parting parting, int t) {
  return parting != Parting::kReturn || ((t ^ 1) % 4 != 3 && (t ^ 2) % 4 != 3);
}

}  // namespace

TEST_CASE("a warp converges again behind every kind of branch, however the code is optimised") {
  const std::pair<const char*, cudaError_t (*)(Parting, int*)> builds[] = {
      {"-O1", lockstep_O1::reconverge},
      {"-O2", lockstep_O2::reconverge},
      {"-O3", lockstep_O3::reconverge}};
  for (const auto& build : builds)
    for (const Parting parting :
         {Parting::kIf, Parting::kElse, Parting::kBreak, Parting::kContinue, Parting::kNestedLoops,
          Parting::kCall, Parting::kSwitch, Parting::kReturn}) {
      CAPTURE(build.first, static_cast<int>(parting));
      std::vector<int> out(kThreads, 0);
      REQUIRE(launched("lockstep", [&] { return build.second(parting, out.data()); }).completed());
      const std::vector<int> expected = converged(parting);
      for (int t = 0; t < kThreads; ++t)
        if (is_judged(parting, t)) CHECK(out[t] == expected[t]);
    }
}

TEST_CASE("lanes load behind a branch what one stored in it, however the code is optimised") {
  const std::pair<const char*, cudaError_t (*)(int*)> builds[] = {{"-O1", lockstep_O1::broadcast},
                                                                  {"-O2", lockstep_O2::broadcast},
                                                                  {"-O3", lockstep_O3::broadcast}};
  int expected = 0;
  for (int round = 0; round < kRounds; ++round) expected += 2 * round + 1 + 10 * (round + 7);
  for (const auto& build : builds) {
    CAPTURE(build.first);
    std::vector<int> out(kThreads, 0);
    REQUIRE(launched("lockstep", [&] { return build.second(out.data()); }).completed());
    CHECK(out == std::vector<int>(kThreads, expected));
  }
}

TEST_CASE("a lane that holds a lock goes on while others wait for it in lockstep") {
  unsigned lock = 0;
  int count = 0;
  REQUIRE(
      launched("lockstep", [&] { return lockstep_O2::lock_of_lanes(&lock, &count); }).completed());
  CHECK(count == kThreads);
}

}  // namespace attn_diag::host
