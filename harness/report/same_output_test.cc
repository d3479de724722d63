#include "harness/report/same_output.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

SameOutput same(const std::string& then, const std::string& now, bool stale) {
  return {"2026-11-20T10:00:00Z", {"/src/a.cu", "/src/b.h"}, then, now, stale};
}

}  // namespace

TEST_CASE("an unchanged output names the run, the files and what the build id proves") {
  Style style;
  style.width = 300;
  const std::string text = same_output_text(same("aa11", "aa11", true), style);
  CHECK_THAT(text, contains("output bit-identical to the run before your edit "
                            "(2026-11-20T10:00:00Z; changed: a.cu, b.h): either the edit does not "
                            "touch this case, or this binary does not contain it"));
  CHECK_THAT(text,
             contains("This binary does not contain it: it has the build id of that run (aa11)"));
  CHECK_THAT(same_output_text(same("aa11", "bb22", false), style),
             contains("The edit does not touch this case: the binary was rebuilt (build id bb22, "
                      "then aa11)"));
  CHECK_THAT(same_output_text(same("aa11", "bb22", true), style),
             contains("sources were changed after that"));
  CHECK_THAT(same_output_text(same("", "", false), style), contains("cannot be told"));
  CHECK_THAT(same_output_text(same("", "", true), style),
             contains("was not built from what is now on disk"));
  CHECK(same_output_text(std::nullopt, style).empty());
}

TEST_CASE("an edit of many files names a few and counts the rest") {
  SameOutput many = same("", "", false);
  many.changed = {"a", "b", "c", "d", "e"};
  CHECK_THAT(same_output_line(many), contains("changed: a, b, c, 2 more)"));
}

TEST_CASE("an unchanged output in JSON says why as a word") {
  CHECK(to_json(std::optional<SameOutput>{}).is_null());
  const Json j = to_json(std::optional<SameOutput>{same("a", "b", false)});
  CHECK(j["why"] == "edit_does_not_touch_this_case");
  CHECK(j["before"] == "2026-11-20T10:00:00Z");
  CHECK(j["changed"].size() == 2);
}

TEST_CASE("a history is a table, newest last, with what was not judged said so") {
  RecordedRun run;
  run.time = "T";
  run.command = "dump";
  run.kernel = "fa1";
  run.build_id = "0123456789abcdef";
  run.output = 0xabcdef0123456789;
  run.case_key = "B=1";
  const std::string text = history_text({run}, Style{});
  CHECK_THAT(text, contains("not judged"));
  CHECK_THAT(text, contains("abcdef01"));
  CHECK_THAT(text, contains("01234567"));
  CHECK(to_json(run)["verdict"].is_null());
}

}  // namespace attn_diag::report
