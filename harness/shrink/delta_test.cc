#include "harness/shrink/delta.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::shrink {
namespace {

using Sizes = std::vector<std::int64_t>;

Sizes up_to(std::int64_t n) {
  Sizes sizes(static_cast<std::size_t>(n));
  std::iota(sizes.begin(), sizes.end(), 1);
  return sizes;
}

// Answers, and notes what was asked.
struct SizeOracle {
  std::function<bool(std::int64_t)> fails;
  std::map<std::int64_t, bool> tried = {};

  FirstSize ask() {
    return [this](const Sizes& candidates) -> std::optional<std::size_t> {
      for (std::size_t i = 0; i < candidates.size(); ++i)
        if (tried[candidates[i]] = fails(candidates[i]); tried[candidates[i]]) return i;
      return std::nullopt;
    };
  }
};

// Answers from a rule, and counts the sets that were asked about.
struct SetOracle {
  std::function<bool(const std::set<int>&)> fails;
  int asked = 0;

  FirstSet ask() {
    return [this](std::size_t candidates, const SetOfParts& set) -> std::optional<std::size_t> {
      for (std::size_t i = 0; i < candidates; ++i) {
        ++asked;
        const std::vector<int> parts = set(i);
        CHECK(std::is_sorted(parts.begin(), parts.end()));
        if (fails({parts.begin(), parts.end()})) return i;
      }
      return std::nullopt;
    };
  }
};

TEST_CASE("a size above which all fail is found, and its neighbour was tried") {
  for (const std::int64_t edge : {1, 2, 3, 17, 63, 64, 65, 99, 100}) {
    SizeOracle oracle{[edge](std::int64_t n) { return n >= edge; }};
    CHECK(smaller_size(up_to(100), {}, oracle.ask()) == edge);
    if (edge > 1) CHECK((oracle.tried.contains(edge - 1) && !oracle.tried[edge - 1]));
    CHECK(oracle.tried.size() < 20);
  }
}

TEST_CASE("what fails is a size that was tried, whatever the rule") {
  const std::vector<std::function<bool(std::int64_t)>> rules = {
      [](std::int64_t n) { return n % 32 == 1 && n > 1; },  // 33, 65, 97
      [](std::int64_t n) { return n == 100 || n == 37; },
      [](std::int64_t n) { return n % 2 == 0; },
      [](std::int64_t n) { return n == 100; },
      [](std::int64_t) { return true; },
  };
  for (const auto& rule : rules) {
    SizeOracle oracle{rule};
    const std::int64_t found = smaller_size(up_to(100), {33, 65}, oracle.ask());
    CHECK(rule(found));
    CHECK((found == 100 || oracle.tried[found]));
    if (found > 1) CHECK((oracle.tried.contains(found - 1) && !oracle.tried[found - 1]));
  }
}

TEST_CASE("likely sizes are tried first, and those that are not to be tried never") {
  SizeOracle oracle{[](std::int64_t n) { return n == 33 || n >= 90; }};
  CHECK(smaller_size(up_to(100), {33}, oracle.ask()) == 33);
  const Sizes multiples = {32, 64, 96, 128};
  SizeOracle declared{[](std::int64_t n) { return n >= 70; }};
  CHECK(smaller_size(multiples, {33}, declared.ask()) == 96);
  for (const auto& [n, said] : declared.tried)
    CHECK(std::find(multiples.begin(), multiples.end(), n) != multiples.end());
}

TEST_CASE("without an answer the size stays") {
  CHECK(smaller_size(up_to(50), {}, [](const Sizes&) { return std::nullopt; }) == 50);
  CHECK(smaller_size({7}, {}, [](const Sizes&) { return std::nullopt; }) == 7);
}

TEST_CASE("the parts that it takes are found, however they lie") {
  for (const std::set<int>& needed :
       std::vector<std::set<int>>{{0}, {99}, {3, 4}, {0, 50, 99}, {10, 11, 12, 70}}) {
    SetOracle oracle{[&](const std::set<int>& kept) {
      return std::includes(kept.begin(), kept.end(), needed.begin(), needed.end());
    }};
    const std::vector<int> found = necessary_parts(100, oracle.ask());
    CHECK(std::set<int>(found.begin(), found.end()) == needed);
    CHECK(oracle.asked < 300);
  }
}

TEST_CASE("none of what is left can be left out, also where it is not monotone") {
  const std::vector<std::function<bool(const std::set<int>&)>> rules = {
      // An odd number of parts below 8, or all.
      [](const std::set<int>& kept) {
        return kept.size() == 20 ||
               std::count_if(kept.begin(), kept.end(), [](int i) { return i < 8; }) % 2 == 1;
      },
      [](const std::set<int>& kept) { return kept.size() >= 7; },
      [](const std::set<int>& kept) { return kept.contains(4) || kept.contains(13); },
      [](const std::set<int>& kept) { return kept.size() == 20; },
  };
  for (const auto& rule : rules) {
    SetOracle oracle{rule};
    const std::vector<int> found = necessary_parts(20, oracle.ask());
    const std::set<int> kept(found.begin(), found.end());
    CHECK(rule(kept));
    for (const int i : kept) {
      std::set<int> less = kept;
      less.erase(i);
      CHECK_FALSE(rule(less));
    }
  }
}

TEST_CASE("what fails without any part needs none") {
  SetOracle oracle{[](const std::set<int>&) { return true; }};
  CHECK(necessary_parts(9, oracle.ask()).empty());
  CHECK(oracle.asked == 1);
  CHECK(necessary_parts(0, oracle.ask()).empty());
}

}  // namespace
}  // namespace attn_diag::shrink
