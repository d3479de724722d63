// Rules for marked cells, of blocks, lanes and threads.
#include "harness/capture/cell_places.h"

#include <functional>
#include <string>

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

constexpr CellWords kWrong = {"wrong", "right"};

MarkedCells cells_of(const std::function<bool(std::int64_t q, std::int64_t d)>& is_marked,
                     std::int64_t queries = 128, std::int64_t columns = 64) {
  MarkedCells cells;
  cells.columns = columns;
  cells.block_m = 64;
  for (std::int64_t q = 0; q < queries; ++q) {
    cells.query.push_back(q);
    for (std::int64_t d = 0; d < columns; ++d) cells.marked.push_back(is_marked(q, d) ? 1 : 0);
  }
  return cells;
}

std::string rule_of(const std::function<bool(std::int64_t q, std::int64_t d)>& is_marked) {
  return place_rule(cells_of(is_marked), kWrong).value_or("none");
}

}  // namespace

TEST_CASE(
    "columns in blocks: a rule, how much of what is wrong it holds, and how much of what is "
    "right") {
  CHECK(rule_of([](auto, auto d) { return d % 16 >= 8; }) ==
        "where dim mod 16 is 8-15, right elsewhere: 100% of 4,096 wrong cells, 0 of 4,096 right "
        "ones");
  CHECK_THAT(rule_of([](auto, auto d) { return d == 5 || d == 40; }),
             contains("where dim is 5, 40, "));
  CHECK_THAT(rule_of([](auto, auto d) { return d % 32 == 7; }),
             contains("where dim mod 32 is 7, "));
}

TEST_CASE("places inside blocks of 8 x 8 and 16 x 16, and the lanes that hold them") {
  CHECK_THAT(
      rule_of([](auto q, auto d) { return q % 16 < 8 && d % 16 >= 8; }),
      contains("where q mod 16 is 0-7 and dim mod 16 is 8-15, right elsewhere: 100% of 2,048"));
  CHECK_THAT(rule_of([](auto q, auto d) { return (q % 16 < 8) != (d % 16 < 8); }),
             contains("where q mod 16 is 0-7 and dim mod 16 is 8-15, or q mod 16 is 8-15 and dim "
                      "mod 16 is 0-7, "));
  CHECK_THAT(rule_of([](auto q, auto d) { return q % 8 == 5 && d % 8 / 2 == 1; }),
             contains("where q mod 8 is 5 and dim mod 8 is 2-3 (what lane 21 holds of an mma.m16n8 "
                      "accumulator), "));
  CHECK_THAT(rule_of([](auto q, auto d) { return q % 8 != d % 8; }),
             contains("where q mod 8 is not dim mod 8, "));
}

TEST_CASE("elements of threads that take them in turn, and of warps that have 16 rows each") {
  CHECK_THAT(rule_of([](auto q, auto d) { return (q * 64 + d) / 8 % 128 / 4 == 25; }),
             contains("where (q * 64 + dim) / 8 mod 128 is 100-103, "));
  CHECK_THAT(rule_of([](auto q, auto d) { return q % 64 / 16 == 2 && d % 32 < 8; }),
             contains("where (q mod 64) / 16 is 2 and dim is 0-7, 32-39, "));
}

TEST_CASE("where a rule holds of some rows alone, it is said of those that have any") {
  CHECK_THAT(
      rule_of([](auto q, auto d) { return q >= 100 && q < 117 && d % 16 >= 8; }),
      contains("where dim mod 16 is 8-15, right elsewhere: 100% of 544 wrong cells, 0 of 544 "
               "right ones, in the 17 of 128 rows that have any"));
}

TEST_CASE("cells within rounding inside the rule, and few outside it, are counted") {
  CHECK_THAT(rule_of([](auto q, auto d) { return d % 16 >= 8 && (q * 7 + d) % 5 != 0; }),
             contains("where dim mod 16 is 8-15, right elsewhere: 100% of "));
  const std::string few =
      rule_of([](auto q, auto d) { return d % 16 >= 8 || (q == 50 && d == 3); });
  CHECK_THAT(few, contains("1 of 4,096 wrong elsewhere: "));
  CHECK_THAT(few, contains("0 of 4,095 right ones"));
}

TEST_CASE("noise, everything and nothing have no rule") {
  std::uint64_t state = 7;
  CHECK(rule_of([&](auto, auto) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          return state >> 63 == 0;
        }) == "none");
  CHECK(rule_of([](auto, auto) { return true; }) == "none");
  CHECK(rule_of([](auto, auto) { return false; }) == "none");
  CHECK(rule_of([](auto q, auto d) { return q == 7 && d == 9; }) == "none");
  CHECK_FALSE(place_rule({}, kWrong).has_value());
}

}  // namespace attn_diag
