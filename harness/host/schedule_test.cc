#include <cmath>
#include <stdexcept>

#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

constexpr int kCells = 3 * 96;
using Kernel = cudaError_t (*)(float*);

std::vector<float> output(const std::string& schedule, Kernel kernel, int workers = 0) {
  std::vector<float> out(kCells, -7.0f);
  LaunchOptions options;
  options.schedule = parse_schedule(schedule);
  options.workers = workers;
  const Launched run = launched(options, [&] { return kernel(out.data()); });
  for (const LaunchFinding& finding : run.report.findings) UNSCOPED_INFO(finding.message);
  REQUIRE(run.completed());
  return out;
}

// What the kernel writes if each thread's t becomes value(t) before the exchange.
template <class Value, class First, class Second>
std::vector<float> exchanged(Value value, First first, Second second) {
  std::vector<float> out;
  for (int block = 0; block < 3; ++block)
    for (int t = 0; t < 96; ++t) out.push_back(value(first(t)) + 100.0f * value(second(t)));
  return out;
}

float itself(int t) { return static_cast<float>(t); }
float modulo_five(int t) { return static_cast<float>(t % 5); }
int next_lane(int t) { return t ^ 1; }
int next_but_one(int t) { return t ^ 2; }

}  // namespace

TEST_CASE("a schedule is read from its name and written back") {
  for (const char* name : {"forward", "reverse", "lockstep", "seed:0", "seed:18446744073709551615"})
    CHECK(to_string(parse_schedule(name)) == name);
  for (const char* wrong : {"", "Forward", "seed", "seed:", "seed:-1", "seed:1x", "seed: 1",
                            "seed:18446744073709551616"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_schedule(wrong), std::invalid_argument);
  }
}

TEST_CASE("a right kernel gives bit-identical output under every schedule") {
  for (const auto& [on_host, in_lockstep] :
       {std::pair<Kernel, Kernel>{plain::right, lockstep::right},
        {plain::right_with_divergence, lockstep::right_with_divergence}}) {
    const std::vector<float> expected = output("forward", on_host);
    for (const float x : expected) REQUIRE(std::isfinite(x));
    for (const std::string& schedule : plain_schedules()) {
      CAPTURE(schedule);
      CHECK(output(schedule, on_host) == expected);
    }
    CHECK(output("lockstep", in_lockstep) == expected);
    // The lockstep build also runs under the other schedules.
    CHECK(output("reverse", in_lockstep) == expected);
  }
}

TEST_CASE("a missing __syncwarp is wrong under free schedules and right in lockstep") {
  const std::vector<float> right = exchanged(itself, next_lane, next_but_one);
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    CHECK(output(schedule, plain::missing_syncwarp) != right);
  }
  CHECK(output("lockstep", lockstep::missing_syncwarp) == right);
}

TEST_CASE("in lockstep, lanes that diverged converge again where their paths meet") {
  const std::vector<float> right = exchanged(modulo_five, next_lane, next_but_one);
  CHECK(output("forward", plain::missing_syncwarp_after_divergence) != right);
  CHECK(output("lockstep", lockstep::missing_syncwarp_after_divergence) == right);
}

TEST_CASE("a missing __syncthreads between warps is wrong under every schedule") {
  const std::vector<float> right = exchanged(
      itself, [](int t) { return (t + 32) % 96; }, [](int t) { return (t + 64) % 96; });
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    CHECK(output(schedule, plain::missing_syncthreads) != right);
  }
  CHECK(output("lockstep", lockstep::missing_syncthreads) != right);
}

TEST_CASE("a wrong kernel's output depends on the schedule alone, not on workers or repetition") {
  for (const std::string& schedule : plain_schedules()) {
    CAPTURE(schedule);
    const auto bits = [&](int workers) {
      std::vector<std::uint32_t> result;
      for (const float x : output(schedule, plain::missing_syncthreads, workers))
        result.push_back(__float_as_uint(x));
      return result;
    };
    const auto expected = bits(1);
    CHECK(bits(1) == expected);
    CHECK(bits(2) == expected);
    CHECK(bits(5) == expected);
  }
}

TEST_CASE(
    "forward runs threads and blocks in ascending order, reverse in descending, a seed in its "
    "own") {
  constexpr int kThreads = 70, kBlocks = 4, kAll = kThreads * kBlocks;
  const auto order = [&](const std::string& schedule) {
    LaunchOptions options;
    options.schedule = parse_schedule(schedule);
    options.workers = 1;
    std::vector<int> out(kAll);
    int counter = 0;
    REQUIRE(launched(options, [&] {
              return plain::order_of_threads(kThreads, kBlocks, &counter, out.data());
            }).completed());
    return out;
  };
  const std::vector<int> forward = order("forward"), reverse = order("reverse");
  for (int i = 0; i < kAll; ++i) {
    REQUIRE(forward[i] == i);
    REQUIRE(reverse[i] == kAll - 1 - i);
  }
  CHECK(order("seed:1") == order("seed:1"));
  CHECK(order("seed:1") != order("seed:2"));
  CHECK(order("seed:1") != forward);
}

TEST_CASE("__activemask promises only the own lane, and in lockstep the lanes that run together") {
  std::vector<unsigned> out(32);
  REQUIRE(launched("forward", [&] { return plain::active_masks(out.data()); }).completed());
  for (int t = 0; t < 32; ++t) CHECK(out[t] == 1u << t);
  REQUIRE(launched("lockstep", [&] { return lockstep::active_masks(out.data()); }).completed());
  for (int t = 0; t < 32; ++t) CHECK(out[t] == (t < 5 ? 999u : 0xFFFFFFFFu));  // 2^32 - 1 + 1000
}

TEST_CASE("lockstep of a library built without call-outs is a finding, not a plain run") {
  std::vector<float> out(kCells, -7.0f);
  const Launched run = launched("lockstep", [&] { return plain::right(out.data()); });
  CHECK(run.error == cudaErrorNotSupported);
  CHECK(run.finding().kind == LaunchFindingKind::kNotInstrumented);
  CHECK(contains(run.finding().message, "right_kernel was not built for the lockstep schedule"));
  CHECK(out[0] == -7.0f);
}

}  // namespace attn_diag::host
