#include "harness/report/lines_report.h"

#include "attn_diag/harness/error.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

LineDivergence example() {
  LineDivergence lines;
  lines.answer = LineAnswer::kUnsure;
  lines.fault = LineFault::kFrames;
  lines.fault_is_firm = true;
  lines.reason = "the first is the likeliest";
  lines.what = "adds parts";
  lines.where = "block 3";
  lines.suspects = {{{"/src/k.cu", "attend", 12, 3, "l += p;", "l"}, "adds it"}};
  lines.roles = {{{"/src/k.cu", "attend", 9, 1, "s += q * k;", "s"}, "scores", 640, 0.75}};
  lines.reads = {{{"/src/k.cu", "attend", 8, 1, "x = k[i];", "x"}, "k", "0-31 of 64", "0-7 of 8"}};
  lines.unread = {"columns 8-15 of v are loaded by no line"};
  lines.numbers = 1234;
  lines.right = 64;
  lines.understood = 60;
  return lines;
}

}  // namespace

TEST_CASE("lines come back from JSON as they were") {
  const Json j = to_json(example());
  CHECK(to_json(lines_of_json(j.dump())) == j);
  CHECK(j["fault"] == "frames");
  LineDivergence none;
  CHECK(to_json(lines_of_json(to_json(none).dump())) == to_json(none));
}

TEST_CASE("numbers are called right only if most of the output is made as is known") {
  LineDivergence lines = example();
  lines.answer = LineAnswer::kNone;
  CHECK(numbers_text(lines) == "Of 1,234 numbers every one is what attention asks for.");
  lines.understood = 0;
  CHECK(numbers_text(lines) ==
        "Of 64 right elements of o none are understood: the kernel computes in a way that is not "
        "known here.");
}

TEST_CASE("what is no JSON of lines is refused") {
  for (const char* text : {"", "3", "{}", "[1, 2]"}) {
    INFO(text);
    CHECK_THROWS_AS(lines_of_json(text), Error);
  }
  Json j = to_json(example());
  j["answer"] = "perhaps";
  CHECK_THROWS_AS(lines_of_json(j.dump()), Error);
  j = to_json(example());
  j["suspects"][0].erase("line");
  CHECK_THROWS_AS(lines_of_json(j.dump()), Error);
}

}  // namespace attn_diag::report
