#include "harness/lines/site_words.h"

#include <catch2/catch.hpp>

namespace attn_diag::lines {

TEST_CASE("variables with their lines, what they depend on and the constants they are given") {
  const auto found = variables_in("row@12:yt,row@14:t,first@30:,scale@7=-0.125:,nothing,", ',');
  REQUIRE(found.size() == 4);
  CHECK(found[0].name == "row");
  CHECK(found[0].line == 12);
  CHECK(found[0].sources == "yt");
  CHECK_FALSE(found[0].constant.has_value());
  CHECK(found[1].line == 14);
  CHECK(found[2].sources.empty());
  REQUIRE(found[3].constant.has_value());
  CHECK(*found[3].constant == -0.125);
}

TEST_CASE("conditions, the innermost first, with what they test") {
  const auto found = conditions_in("loop 12 n@9: n@11:x,if 30 row@4:yt,if 31,");
  REQUIRE(found.size() == 3);
  CHECK(found[0].loop);
  CHECK(found[0].at.line == 12);
  REQUIRE(found[0].tests.size() == 2);
  CHECK(found[0].tests[1].line == 11);
  CHECK_FALSE(found[1].loop);
  CHECK(found[1].tests[0].sources == "yt");
  CHECK(found[2].tests.empty());
}

TEST_CASE("nothing is told by an empty word") {
  CHECK(variables_in("", ',').empty());
  CHECK(conditions_in("").empty());
  CHECK(lines_in("").empty());
}

TEST_CASE("lines of other files carry their path") {
  const auto found = variables_in("end@55~/src/my%20mask.h:yt,m@7~/a%2Cb.h=-1.5:,", ',');
  REQUIRE(found.size() == 2);
  CHECK(found[0].line == 55);
  CHECK(found[0].file == "/src/my mask.h");
  CHECK(found[0].sources == "yt");
  CHECK(found[1].file == "/a,b.h");
  CHECK(*found[1].constant == -1.5);
  const auto loop = conditions_in("loop 12~/src/a.h n@9:,");
  REQUIRE(loop.size() == 1);
  CHECK(loop[0].at.file == "/src/a.h");
  CHECK(loop[0].tests[0].file.empty());
  const auto callers = lines_in("57,60~/b.h,");
  REQUIRE(callers.size() == 2);
  CHECK(callers[0].line == 57);
  CHECK(callers[0].file.empty());
  CHECK(callers[1].line == 60);
  CHECK(callers[1].file == "/b.h");
}

}  // namespace attn_diag::lines
