#include "harness/report/check_suppressions.h"

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

host::CheckFinding race(const std::string& array, int line) {
  host::CheckFinding f;
  f.array = array;
  f.access.places.push_back({"/src/kernels/mine.cu", line, "mine"});
  f.has_other = true;
  f.other.places.push_back({"/src/kernels/other.cuh", 7, "other"});
  return f;
}

CheckView view_of(const std::vector<host::CheckFinding>& findings) {
  CheckView view;
  view.result.report.findings = findings;
  return view;
}

std::size_t standing_after(const std::string& line) {
  CheckView view = view_of({race("sRow", 12)});
  apply_suppressions(parse_suppressions(line + " # reason", "file"), "file", view);
  return view.result.report.findings.size();
}

}  // namespace

TEST_CASE("a suppression takes findings of its kind, array and place out of the count") {
  for (const char* line :
       {"race sRow mine.cu:12", "race * *", "* s* kernels/mine.cu:*", "race sRow other.cuh:7",
        "race sRow /src/kernels/mine.cu:12", "r*c* s*w kernels/*ne.*:1*", "** *R** **"}) {
    CAPTURE(line);
    CHECK(standing_after(line) == 0);
  }
  for (const char* line : {"race sCol mine.cu:12", "race sRow mine.cu:1", "out-of-bounds sRow *",
                           "race sRow ne.cu:12", "race sR*Row *", "race s*R*w*x *"}) {
    CAPTURE(line);
    CHECK(standing_after(line) == 1);
  }
}

TEST_CASE("a suppressed finding keeps its reason, and lines that name none are said") {
  CheckView view = view_of({race("sRow", 12), race("sCol", 12)});
  apply_suppressions(
      parse_suppressions("# known\n\nrace sRow * # same values\nrace sTile * # gone\n", "list"),
      "list", view);
  REQUIRE(view.suppressed.size() == 1);
  CHECK(view.suppressed[0].reason == "same values");
  CHECK(view.suppressed[0].line == 3);
  REQUIRE(view.result.report.findings.size() == 1);
  CHECK(view.result.report.findings[0].array == "sCol");
  REQUIRE(view.unused_suppressions.size() == 1);
  CHECK(view.unused_suppressions[0] == "list:4: race sTile *");
}

TEST_CASE("a line without a reason, with other words or of no kind is refused") {
  for (const char* line : {"race sRow mine.cu:12", "race sRow # why", "race a b c # why",
                           "rice sRow * # why", "race sRow * #"}) {
    CAPTURE(line);
    CHECK_THROWS_AS(parse_suppressions(line, "file"), Error);
  }
}

}  // namespace attn_diag::report
