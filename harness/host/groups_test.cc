#include <algorithm>
#include <numeric>
#include <vector>

#include "harness/host/test_kernels/group_kernels.h"
#include "harness/host/test_support.h"

namespace attn_diag::host {
namespace {

// The members of a thread's group, in the order of their ranks.
using Members = std::function<std::vector<int>(int thread, int threads)>;

std::vector<int> run_of(int thread, int threads, int size) {
  std::vector<int> members;
  for (int t = thread / size * size; t < thread / size * size + size && t < threads; ++t)
    members.push_back(t);
  return members;
}

void check_groups(GroupKind kind, const std::vector<int>& sizes, const Members& members_of) {
  for (const int threads : sizes) {
    for (const std::string& schedule : plain_schedules()) {
      CAPTURE(threads, schedule);
      std::vector<GroupSeen> out(static_cast<std::size_t>(threads));
      REQUIRE(
          launched(schedule, [&] { return plain::groups(kind, threads, out.data()); }).completed());
      for (int t = 0; t < threads; ++t) {
        const std::vector<int> members = members_of(t, threads);
        const GroupSeen& seen = out[static_cast<std::size_t>(t)];
        int sum = 0, before = 0, rank = -1, ballot = 0, any = 0;
        for (std::size_t i = 0; i < members.size(); ++i) {
          if (members[i] == t) {
            rank = static_cast<int>(i);
            before = sum;
          }
          sum += members[i];
          if (members[i] % 3 == 0) ballot |= static_cast<int>(1u << i);
          any |= members[i] == 5;
        }
        CAPTURE(t);
        REQUIRE((seen.rank == rank && seen.sum == sum && seen.before == before));
        REQUIRE((seen.up_to == before + t && seen.most == members.back()));
        REQUIRE((seen.first == members[0] && seen.ballot == ballot && seen.any == any));
      }
    }
  }
}

}  // namespace

TEST_CASE("tiles of 32 and 8 threads reduce, scan, shuffle and vote among themselves") {
  check_groups(GroupKind::kTile32, {32, 96}, [](int t, int n) { return run_of(t, n, 32); });
  check_groups(GroupKind::kTile8, {8, 40}, [](int t, int n) { return run_of(t, n, 8); });
  check_groups(GroupKind::kTileOfTile, {64}, [](int t, int n) { return run_of(t, n, 4); });
}

TEST_CASE("partitions by label and by predicate hold the lanes that agree") {
  check_groups(GroupKind::kLabeled, {32, 64}, [](int t, int) {
    std::vector<int> members;
    for (int other = t / 32 * 32; other < t / 32 * 32 + 32; ++other)
      if (other % 3 == t % 3) members.push_back(other);
    return members;
  });
  check_groups(GroupKind::kBinary, {32}, [](int t, int) {
    std::vector<int> members;
    for (int other = 0; other < 32; ++other)
      if ((other < 20) == (t < 20)) members.push_back(other);
    return members;
  });
}

TEST_CASE(
    "coalesced threads are those that run together in lockstep, alone under other schedules") {
  std::vector<GroupSeen> out(64);
  REQUIRE(launched("lockstep", [&] {
            return lockstep::groups(GroupKind::kCoalesced, 64, out.data());
          }).completed());
  for (int t = 0; t < 64; t += 2) {
    const GroupSeen& seen = out[static_cast<std::size_t>(t)];
    CHECK((seen.size == 16 && seen.rank == t % 32 / 2 && seen.first == t / 32 * 32));
  }
  REQUIRE(launched("forward", [&] {
            return plain::groups(GroupKind::kCoalesced, 64, out.data());
          }).completed());
  CHECK((out[4].size == 1 && out[4].sum == 4));
}

TEST_CASE("meta ranks number the tiles of what was partitioned") {
  std::vector<GroupSeen> out(64);
  REQUIRE(launched("forward", [&] {
            return plain::groups(GroupKind::kTile8, 64, out.data());
          }).completed());
  CHECK((out[63].meta_rank == 7 && out[63].meta_size == 8));
  REQUIRE(launched("forward", [&] {
            return plain::groups(GroupKind::kTileOfTile, 64, out.data());
          }).completed());
  CHECK((out[63].meta_rank == 3 && out[63].meta_size == 4));
}

TEST_CASE("a function of any thread_group works on blocks and on tiles of them") {
  for (const std::string& schedule : plain_schedules()) {
    std::vector<int> out(9);
    REQUIRE(launched(schedule, [&] {
              return plain::block_sum_of_groups(128, out.data());
            }).completed());
    CHECK(out[0] == 127 * 64);
    for (int i = 0; i < 8; ++i) CHECK(out[static_cast<std::size_t>(1 + i)] == 16 * 16 * i + 120);
  }
}

TEST_CASE("thread 0 has what a block reduces, the first lane what a warp does") {
  std::vector<float> in(96);
  for (int i = 0; i < 96; ++i) in[static_cast<std::size_t>(i)] = static_cast<float>(i * 37 % 96);
  const auto sum = [&](int begin, int end) {
    return std::accumulate(in.begin() + begin, in.begin() + end, 0.0f);
  };
  for (const std::string& schedule : plain_schedules())
    for (const int valid : {1, 31, 40, 64, 95}) {
      CAPTURE(schedule, valid);
      std::vector<float> out(4 + 12 + 3);
      REQUIRE(launched(schedule, [&] {
                return plain::reductions(in.data(), valid, out.data());
              }).completed());
      CHECK(out[0] == sum(0, 96));
      CHECK(out[1] == 95);
      CHECK(out[2] == sum(0, valid));
      CHECK(out[3] == 2 * sum(0, 96));
      for (int i = 0; i < 12; ++i)
        CHECK(out[static_cast<std::size_t>(4 + i)] == sum(8 * i, 8 * i + 8));
      for (int i = 0; i < 3; ++i)
        CHECK(out[static_cast<std::size_t>(16 + i)] ==
              *std::min_element(in.begin() + 32 * i, in.begin() + 32 * i + 32));
    }
}

TEST_CASE("shuffles of groups move values of any size") {
  std::vector<double4> out(32);
  REQUIRE(launched("reverse", [&] { return plain::wide_shuffle(out.data()); }).completed());
  for (int t = 0; t < 32; ++t) {
    const int from = t / 16 * 16 + (t % 16 ^ 5);
    CHECK((out[static_cast<std::size_t>(t)].x == from &&
           out[static_cast<std::size_t>(t)].w == from + 0.75));
  }
}

TEST_CASE("copies of a group land when it waits for them, and not before") {
  std::vector<float> in(400);
  for (int i = 0; i < 400; ++i) in[static_cast<std::size_t>(i)] = static_cast<float>(i);
  for (const int count : {200, 199}) {
    std::vector<float> out(400, -1);
    REQUIRE(launched("seed:3", [&] {
              return plain::group_copies(in.data(), count, true, out.data());
            }).completed());
    for (int i = 0; i < count; ++i) {
      REQUIRE(out[static_cast<std::size_t>(i)] == static_cast<float>(count - 1 - i));
      REQUIRE(out[static_cast<std::size_t>(count + i)] == static_cast<float>(2 * count - 1 - i));
    }
  }
  std::vector<float> out(400, -1);
  REQUIRE(launched("forward", [&] {
            return plain::group_copies(in.data(), 200, false, out.data());
          }).completed());
  CHECK(out[0] != out[0]);  // poison
}

TEST_CASE("the blocks of a cooperative grid meet") {
  for (const char* schedule : {"forward", "reverse", "seed:5"}) {
    std::vector<int> values(20 * 32);
    LaunchOptions options;
    options.schedule = parse_schedule(schedule);
    options.workers = 20;
    const Launched run =
        launched(options, [&] { return plain::grid_rounds(20, 32, true, values.data()); });
    REQUIRE(run.completed());
    for (int i = 0; i < 640; ++i) REQUIRE(values[static_cast<std::size_t>(i)] == (i + 3) % 640);
  }
}

TEST_CASE("a grid barrier that blocks never reach names itself and them") {
  for (const int workers : {1, 2}) {
    std::vector<int> values(6);
    LaunchOptions options;
    options.workers = workers;
    const Launched run =
        launched(options, [&] { return plain::grid_of_leavers(6, values.data()); });
    CHECK(run.finding().kind == LaunchFindingKind::kBarrierDivergence);
    CAPTURE(run.finding().message);
    CHECK(contains(run.finding().message, "waits at grid.sync() at "));
    CHECK(contains(run.finding().message, "group_kernels.cc:"));
    CHECK(contains(run.finding().message,
                   "3 of 6 blocks that have returned: blocks (1,0,0), (3,0,0), (5,0,0)"));
  }
}

TEST_CASE("a grid that was not launched as a cooperative one may not meet") {
  std::vector<int> values(64);
  const Launched run =
      launched("forward", [&] { return plain::grid_rounds(2, 32, false, values.data()); });
  CHECK(run.error == cudaErrorAssert);
  CHECK(run.finding().kind == LaunchFindingKind::kTrap);
  CHECK(contains(run.finding().message, "grid.sync() in a launch that is not cooperative"));
  CHECK(contains(run.finding().message, "cudaLaunchCooperativeKernel"));
}

TEST_CASE("kernels are launched by pointers to their arguments") {
  std::vector<int> out(32);
  REQUIRE(launched("forward", [&] {
            return plain::launched_by_pointer(out.data(), 10, 1.5f);
          }).completed());
  CHECK((out[0] == 15 && out[31] == 46));
  CHECK(plain::launched_by_untyped_pointer(out.data()) == cudaErrorInvalidDeviceFunction);
  CHECK(contains(cudaGetErrorString(cudaGetLastError()), "pass the kernel itself"));
}

TEST_CASE("clusters of several blocks are refused, hints are ignored") {
  CHECK(launched("forward", [] { return plain::clustered(1); }).completed());
  const Launched run = launched("forward", [] { return plain::clustered(2); });
  CHECK(run.finding().kind == LaunchFindingKind::kLaunchConfig);
  CHECK(contains(run.finding().message, "clusters of 2 x 1 x 1 blocks are not supported"));
}

TEST_CASE("a trap or a failed assert ends the launch and says where") {
  const Launched trapped = launched("forward", [] { return plain::stops(Stop::kTrap, 7); });
  CHECK(trapped.error == cudaErrorAssert);
  CHECK(contains(trapped.finding().message, "thread (7,0,0) calls __trap() at "));
  CHECK(contains(trapped.finding().file, "group_kernels.cc"));
  CHECK(trapped.finding().line > 0);
  const Launched failed = launched("reverse", [] { return plain::stops(Stop::kAssert, 9); });
  CHECK(contains(failed.finding().message, "block (1,0,0)"));
  CHECK(contains(failed.finding().message, "thread (9,0,0) fails assert("));
  CHECK(contains(failed.finding().message, "no such thread"));
  CHECK(launched("forward", [] { return plain::stops(Stop::kAssertHolds, 9); }).completed());
}

TEST_CASE("atomics of vectors and of scopes are those of their parts and of the device") {
  float4 sum{};
  float2 pair{};
  unsigned bits[3] = {};
  REQUIRE(launched("seed:1", [&] {
            return plain::atomics_of_vectors(64, &sum, &pair, bits);
          }).completed());
  CHECK((sum.x == 2016 && sum.y == 64 && sum.z == 128 && sum.w == 32));
  CHECK((pair.x == 64 && pair.y == 2016));
  CHECK((bits[0] == ~0u && bits[1] == 63 && bits[2] != 0));
}

TEST_CASE("pointers are known by their address spaces, shared memory by 32 bits") {
  const int global = 0;
  unsigned out[7] = {};
  REQUIRE(launched("forward", [&] { return plain::address_spaces(&global, out); }).completed());
  CHECK((out[0] == 12 && out[1] == 1));
  CHECK((out[2] == 4 && out[3] == 2 && out[4] == 1));
  CHECK((out[5] == 1 && out[6] == 1));
}

}  // namespace attn_diag::host
