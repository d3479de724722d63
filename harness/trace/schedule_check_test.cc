#include "harness/trace/schedule_check.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

ScheduleTrial completed(const std::string& schedule, std::int64_t differing, bool right) {
  ScheduleTrial trial;
  trial.schedule = schedule;
  trial.completed = true;
  trial.differing = differing;
  trial.right = right;
  return trial;
}
ScheduleTrial same(const std::string& schedule, bool right) {
  return completed(schedule, 0, right);
}
ScheduleTrial differs(const std::string& schedule, bool right) {
  return completed(schedule, 7, right);
}

}  // namespace

TEST_CASE("runs that are bit-identical are the same, right or wrong") {
  for (const bool right : {true, false}) {
    const ScheduleCheck check =
        classify_schedules("forward", right,
                           {same("forward", right), same("reverse", right), same("seed:1", right),
                            same("lockstep", right)});
    CHECK(check.finding == ScheduleFinding::kSame);
    CHECK(check.wrong_under.empty());
    CHECK(check.detail ==
          "Bit-identical when run twice under forward and under reverse, seed:1, lockstep.");
  }
}

TEST_CASE("a kernel right under one order and wrong under another depends on the order") {
  const ScheduleCheck check =
      classify_schedules("forward", true,
                         {same("forward", true), differs("reverse", false), same("seed:1", true),
                          differs("lockstep", false)});
  CHECK(check.finding == ScheduleFinding::kOrderDependent);
  CHECK(check.wrong_under == "reverse");
  CHECK_THAT(check.detail,
             contains("Under reverse 7 cells of the outputs differ, and it is wrong."));
}

TEST_CASE("a kernel wrong on free orders and right in lockstep is right only if converged") {
  SECTION("wrong on all of them alike") {
    CHECK(classify_schedules("forward", false,
                             {same("forward", false), same("reverse", false), same("seed:1", false),
                              differs("lockstep", true)})
              .finding == ScheduleFinding::kRightIfConverged);
  }
  SECTION("wrong on some") {
    CHECK(classify_schedules("forward", true,
                             {same("forward", true), differs("reverse", false),
                              differs("seed:1", false), same("lockstep", true)})
              .finding == ScheduleFinding::kRightIfConverged);
  }
  SECTION("but not if two runs under one schedule differ") {
    CHECK(classify_schedules("forward", false,
                             {differs("forward", false), same("reverse", false),
                              same("seed:1", false), differs("lockstep", true)})
              .finding == ScheduleFinding::kOrderDependent);
  }
}

TEST_CASE("results that differ within rounding depend on the order all the same") {
  const ScheduleCheck check = classify_schedules(
      "forward", true, {same("forward", true), differs("reverse", true), same("seed:1", true)});
  CHECK(check.finding == ScheduleFinding::kOrderDependent);
  CHECK(check.wrong_under.empty());
}

TEST_CASE("a schedule under which the kernel does not complete is a finding with its message") {
  ScheduleTrial stopped;
  stopped.schedule = "reverse";
  stopped.error = "barrier at x.cu:3";
  const ScheduleCheck check =
      classify_schedules("forward", true, {same("forward", true), stopped, same("seed:1", true)});
  CHECK(check.finding == ScheduleFinding::kOrderDependent);
  CHECK(check.wrong_under.empty());  // there is nothing to look at
  CHECK_THAT(check.detail, contains("Under reverse it did not complete: barrier at x.cu:3"));
}

}  // namespace attn_diag
