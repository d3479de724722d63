#include "harness/report/repair_text.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

RepairView with_helpful(const std::string& but) {
  RepairView view;
  view.result.reason = "why";
  view.result.failing = "the case";
  repair::HelpfulEdit edit;
  edit.shown = "rows.cu";
  edit.line = 17;
  edit.operation = "number";
  edit.agreed = 20;
  edit.cases = 24;
  edit.but = but;
  view.result.helpful = {edit};
  return view;
}

TEST_CASE("cases that were not run in time are not said to disagree") {
  const RepairView wrong = with_helpful("S=1"), in_time = with_helpful("");
  CHECK_THAT(repair_headline(wrong), contains("it agrees, but 4 of 24 cases do not: why"));
  CHECK_THAT(repair_text(wrong, {false, false, 400}, false),
             contains("20 of 24 cases agree in all, not S=1."));
  CHECK_THAT(repair_headline(in_time),
             contains("it agrees, but 4 of 24 cases could not be run in time: why"));
  const std::string text = repair_text(in_time, {false, false, 400}, false);
  CHECK_THAT(text, contains("20 of 24 cases agree in all, the others were not run."));
}

}  // namespace
}  // namespace attn_diag::report
