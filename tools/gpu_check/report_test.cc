#include "tools/gpu_check/report.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::gpu_check {
namespace {

Section section(const std::string& name, std::vector<Check> checks) {
  Section s;
  s.name = name;
  s.title = "About " + name;
  s.checks = std::move(checks);
  return s;
}

Report on_gpu(std::vector<Section> sections) {
  Report report;
  report.created = "2026-01-01T00:00:00Z";
  report.commit = "abc123";
  report.gpu = "Made-up GPU (sm_90)";
  report.driver = "580.1";
  report.sections = std::move(sections);
  report.complete = true;
  return report;
}

TEST_CASE("passed, skipped and unseen races are no failure") {
  const Report report = on_gpu({section("a", {{"x", Verdict::kPassed, "", ""},
                                              {"y", Verdict::kSkipped, "no fp32", ""},
                                              {"z", Verdict::kNotSeen, "a race", ""}})});
  CHECK(report.exit_code() == 0);
  CHECK_THAT(summary_line(report), contains("1 passed, 0 failed, 1 skipped, 1 race not seen"));
}

TEST_CASE("one failed check fails the whole") {
  const Report report = on_gpu({section("a", {{"x", Verdict::kPassed, "", ""}}),
                                section("b", {{"y", Verdict::kFailed, "wrong", "run it"}})});
  CHECK(report.exit_code() == 1);
  CHECK_THAT(to_markdown(report), contains("- `y`: wrong\n  `run it`"));
}

TEST_CASE("a section that ran and checked nothing has failed") {
  const Report report = on_gpu({section("a", {{"x", Verdict::kPassed, "", ""}}), section("b", {})});
  CHECK(report.exit_code() == 1);
  CHECK_THAT(to_markdown(report), contains("About b (**nothing was checked**)"));
  CHECK_THAT(summary_line(report), contains("1 section checked nothing"));
}

TEST_CASE("a section that was left out is no failure and is said aloud") {
  Section left_out = section("bench", {});
  left_out.skipped = "--no-bench";
  const Report report = on_gpu({section("a", {{"x", Verdict::kPassed, "", ""}}), left_out});
  CHECK(report.exit_code() == 0);
  CHECK_THAT(to_markdown(report), contains("| About bench | not run |"));
  CHECK_THAT(to_markdown(report), contains("Not run: --no-bench"));
}

TEST_CASE("what is written before the end has no verdict") {
  Report report = on_gpu({section("a", {{"x", Verdict::kPassed, "", ""}})});
  report.complete = false;
  CHECK(to_json(report)["exit_code"].is_null());
  CHECK_THAT(to_markdown(report), contains("# gpu-check: unfinished"));
}

TEST_CASE("without a GPU the exit code is 2, whatever else") {
  Report report = on_gpu({section("a", {{"x", Verdict::kFailed, "", ""}})});
  report.gpu.clear();
  report.no_gpu = "There is no driver.";
  CHECK(report.exit_code() == 2);
  CHECK(to_json(report)["gpu"].is_null());
  CHECK(to_json(report)["no_gpu"] == "There is no driver.");
  CHECK_THAT(to_markdown(report), contains("# gpu-check: could not run"));
}

TEST_CASE("the JSON counts each section and keeps every check") {
  const Json j = to_json(on_gpu(
      {section("a", {{"x", Verdict::kPassed, "", ""}, {"y", Verdict::kFailed, "bad", "cmd"}})}));
  CHECK(j["schema"] == kSchema);
  CHECK(j["exit_code"] == 1);
  CHECK(j["commit"] == "abc123");
  CHECK(j["sections"][0]["counts"]["passed"] == 1);
  CHECK(j["sections"][0]["counts"]["failed"] == 1);
  CHECK(j["sections"][0]["checks"][1]["why"] == "bad");
  CHECK_FALSE(j["sections"][0]["checks"][0].contains("why"));
}

TEST_CASE("what a check says cannot break the table") {
  const std::string text =
      to_markdown(on_gpu({section("a", {{"x", Verdict::kFailed, "two\nlines | bar", ""}})}));
  CHECK_THAT(text, contains("two lines \\| bar"));
}

TEST_CASE("figures become a table in which rows that were not timed have none") {
  Section bench = section("bench", {{"x", Verdict::kPassed, "", ""}});
  bench.figures = Json::parse(R"({"device": {"copy_bytes_per_second": 4.2e12, "sm_count": 132,
    "clock_hz": 1.98e9}, "cases": [
    {"kernel": "fa1", "verdict": "timed", "problem": {"seqlen_q": 512, "mask": "causal", "dtype": "fp16"},
     "seconds": {"median": 2e-5, "min": 1.9e-5}, "tflops": 12.5, "gigabytes_per_second": 100,
     "of_floor": 9.5, "of_fastest": 2, "faster_than_fa1": null, "of_pytorch": 1.5},
    {"kernel": "bad", "verdict": "diverges", "problem": {"seqlen_q": 512, "mask": "none", "dtype": "fp16"}}]})");
  const std::string text = to_markdown(on_gpu({bench}));
  CHECK_THAT(
      text,
      contains(
          "| 512 | causal | fp16 | fa1 | 20.00 | 19.00 | 12.5 | 100 | 9.50 | 2.00 | - | 1.50 |"));
  CHECK_THAT(text, contains("| bad | diverges |"));
  CHECK_THAT(text, contains("bytes at 4200 GB/s"));
}

}  // namespace
}  // namespace attn_diag::gpu_check
