#include "harness/sweep/numbering.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "attn_diag/harness/error.h"
#include "harness/sweep/deal.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::sweep {
namespace {

using Entries = std::vector<std::int64_t>;

TEST_CASE("all points of a grid are cases, the last axis changing fastest") {
  const Numbering grid({2, 3}, 0, 0);
  REQUIRE(grid.size() == 6);
  CHECK(grid.at(0) == Entries{0, 0});
  CHECK(grid.at(1) == Entries{0, 1});
  CHECK(grid.at(5) == Entries{1, 2});
  CHECK_FALSE(grid.at(1, 1).has_value());
}

TEST_CASE(
    "points drawn at random differ, also those in their place, and together they are the grid") {
  const std::int64_t drawn = GENERATE(1, 7, 40, 97);
  const std::uint64_t seed = GENERATE(0, 1, 12345);
  const Numbering some({7, 1, 14}, drawn, seed);  // 98 points
  REQUIRE(some.size() == drawn);
  std::set<Entries> seen;
  std::int64_t points = 0;
  for (std::int64_t i = 0; i < drawn; ++i)
    for (std::int64_t attempt = 0;; ++attempt) {
      const auto entries = some.at(i, attempt);
      if (!entries) break;
      CHECK((*entries)[0] < 7);
      CHECK((*entries)[2] < 14);
      seen.insert(*entries);
      ++points;
    }
  CHECK(points == 98);
  CHECK(seen.size() == 98);
}

TEST_CASE("a draw depends on the seed alone, and looks like chance") {
  const Numbering a({1000, 1000}, 1000, 5), same({1000, 1000}, 1000, 5), b({1000, 1000}, 1000, 6);
  int alike = 0, low = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    CHECK(a.at(i) == same.at(i));
    alike += a.at(i) == b.at(i);
    low += (*a.at(i))[1] < 500;
  }
  CHECK(alike < 5);
  CHECK(low > 400);
  CHECK(low < 600);
}

TEST_CASE("more points are asked for than there are: all are run") {
  CHECK(Numbering({2, 2}, 100, 0).size() == 4);
}

TEST_CASE("what no machine can run is refused") {
  CHECK_THROWS_AS(Numbering({1'000'000, 1'000'000}, 0, 0), Error);
  CHECK(Numbering({1'000'000, 1'000'000}, 1000, 0).size() == 1000);
  CHECK_THROWS_AS(Numbering({1'000'000'000, 1'000'000'000, 1'000'000'000}, 10, 0), Error);
}

// Sizes 64 to 4096, doubled, quadratic: what a grid over sequence lengths costs.
std::vector<float> doubled_lengths(int rows) {
  std::vector<float> costs;
  for (int i = 0; i < rows; ++i)
    for (float s = 64; s <= 4096; s *= 2) costs.push_back(s * s);
  return costs;
}

TEST_CASE("shards have every case once, and as much to do") {
  const std::int64_t shards = GENERATE(1, 2, 3, 7, 14, 100);  // 7: as many as lengths
  const std::vector<float> costs = doubled_lengths(100);
  std::vector<int> times(costs.size(), 0);
  double most = 0;
  for (std::int64_t i = 0; i < shards; ++i) {
    double mine = 0;
    float last = 0;
    for (const std::int64_t one : cases_of({i, shards}, costs)) {
      ++times[static_cast<std::size_t>(one)];
      mine += static_cast<double>(costs[static_cast<std::size_t>(one)]);
      CHECK(costs[static_cast<std::size_t>(one)] >= last);
      last = costs[static_cast<std::size_t>(one)];
    }
    most = std::max(most, mine);
  }
  CHECK(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
  const double all = std::accumulate(costs.begin(), costs.end(), 0.0);
  CHECK(most <= all / static_cast<double>(shards) + 4096.0 * 4096.0);
}

TEST_CASE("there may be more shards than cases") {
  CHECK(cases_of({0, 5}, {1, 2}).size() == 1);
  CHECK(cases_of({4, 5}, {1, 2}).empty());
}

}  // namespace
}  // namespace attn_diag::sweep
