#include "harness/report/diagnosis.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::report {
namespace {

Match match(const std::string& id) {
  Match m;
  m.parts.push_back({id,
                     "what " + id + " does",
                     "F1",
                     "somewhere#1",
                     "the line of " + id,
                     Stage::kReduce,
                     {{"kappa", 0.125, "softmax_scale"}}});
  m.label = id + "(kappa = softmax_scale)";
  m.rows = 10;
  m.rows_explained = 10;
  m.wrong_rows = 4;
  m.wrong_rows_explained = 4;
  m.telling_rows = 3;
  m.residual_over_bound = 0.5;
  m.confirmed = true;
  return m;
}

struct Example {
  Diagnosis diagnosis;
  Capture capture;
  DiagnosisView view;

  Example() {
    diagnosis.verdict = DiagnosisVerdict::kClass;
    diagnosis.best = {match("one"), match("two")};
    diagnosis.best[0].equivalent = {"gain(g = 2)"};
    diagnosis.best[0].other_parameters = {"one-otherwise"};
    diagnosis.runner_up = match("three");
    diagnosis.experiments = {
        {"run with --inputs probe", "it tells 1 of 1 pairs apart", "probe", std::nullopt}};
    diagnosis.rows = 10;
    diagnosis.wrong_rows = 4;
    view.diagnosis = &diagnosis;
    view.capture = &capture;
    view.subject = "x.h5";
    view.reproduce = "attn-diag diagnose x.h5";
    view.experiment_commands = {"attn-diag diagnose --inputs probe"};
  }
  std::string text() const { return diagnosis_text(view, {}); }
  Json json() const { return diagnosis_json(view, {"diagnose", view.reproduce, "0"}); }
};

}  // namespace

TEST_CASE("the line is told with a name, and says whether it agrees") {
  Example e;
  TraceResult trace;
  trace.lines.emplace();
  trace.lines->answer = LineAnswer::kLine;
  trace.lines->what = "adds what was added before";
  trace.lines->suspects = {{{"/src/k.cu", "k", 12, 3, "l += p;", "l"}, "adds it"}};
  e.view.trace = &trace;
  CHECK_THAT(e.text(), contains("The line, which tells nothing of the name: k.cu:12: adds what"));
  e.diagnosis.best[0].line = LineSays::kAgrees;
  CHECK_THAT(e.text(), contains("The line agrees with one(kappa = softmax_scale): k.cu:12"));
  e.diagnosis.best[1].line = LineSays::kOtherwise;
  CHECK_THAT(e.text(), contains("agrees with one(kappa = softmax_scale), not with two(kappa"));
  CHECK(e.json()["diagnosis"][0]["line"] == "agrees");
  CHECK(e.json()["diagnosis"][1]["line"] == "otherwise");
  CHECK(e.json()["line_divergence"]["suspects"][0]["line"] == 12);
  e.diagnosis.best.resize(1);
  e.diagnosis.best[0].line = LineSays::kOtherwise;
  e.diagnosis.verdict = DiagnosisVerdict::kDisputed;
  CHECK_THAT(e.text(), contains("NOT CERTAIN: one(kappa = softmax_scale) by the numbers, and"));
  CHECK_THAT(e.text(), contains("The line says otherwise: k.cu:12"));
  CHECK(e.json()["diagnosis_verdict"] == "disputed");
}

TEST_CASE("a class is reported with all members and the command that tells them apart") {
  const Example e;
  CHECK_THAT(e.text(), contains("ONE OF 2: one(kappa = softmax_scale), two(kappa"));
  CHECK_THAT(e.text(), contains("What would tell them apart"));
  CHECK_THAT(e.text(), contains("attn-diag diagnose --inputs probe"));
  CHECK_THAT(e.text(), contains("one-otherwise"));
  const Json j = e.json();
  CHECK(j["diagnosis_verdict"] == "class");
  CHECK(j["diagnosis"][0]["other_parameters"] == Json({"one-otherwise"}));
  REQUIRE(j["diagnosis"].size() == 2);
  CHECK(j["diagnosis"][0]["equivalent"] == Json({"gain(g = 2)", "two(kappa = softmax_scale)"}));
  CHECK(j["diagnosis"][0]["parameters"]["kappa"]["value"] == 0.125);
  CHECK(j["diagnosis"][0]["parameters"]["kappa"]["named"] == "softmax_scale");
  CHECK(j["experiments"][0]["command"] == "attn-diag diagnose --inputs probe");
}

TEST_CASE("a name comes with evidence, runner-up, remedy and the commands") {
  Example e;
  e.diagnosis.verdict = DiagnosisVerdict::kNamed;
  e.diagnosis.best.pop_back();
  const std::string text = e.text();
  CHECK_THAT(text, contains("NAMED: one(kappa = softmax_scale)\n"));
  CHECK_THAT(text, contains("The next best of the others, three"));
  CHECK_THAT(text, contains("the line of one"));
  CHECK_THAT(text, contains("Reproduce: attn-diag diagnose x.h5"));
  CHECK(text.find("What would tell them apart") == std::string::npos);
}

TEST_CASE("an unknown bug is reported with what is left, and nothing wrong without a bug") {
  Example e;
  e.diagnosis.verdict = DiagnosisVerdict::kUnknown;
  e.diagnosis.best.clear();
  e.diagnosis.residual = {"every row is 0.75 times the right one"};
  CHECK_THAT(e.text(), contains("UNKNOWN: none of the known bugs"));
  CHECK_THAT(e.text(), contains("every row is 0.75 times the right one"));
  CHECK(e.json()["residual"].size() == 1);
  e.diagnosis.verdict = DiagnosisVerdict::kNothingWrong;
  CHECK_THAT(e.text(), contains("NOTHING WRONG"));
  CHECK(e.json()["diagnosis"].empty());
}

TEST_CASE("why not shows the cell, and what cannot be there is said to be so") {
  Example e;
  WhyNot fails;
  fails.match = match("four");
  fails.worst = WhyNot::Cell{Tensor::kO, {0, 1, 5, 3, 0}, 2, 1, 0.25};
  WhyNot impossible;
  impossible.match = match("five");
  impossible.possible = false;
  const std::vector<WhyNot> both = {fails, impossible};
  e.view.why_not = &both;
  CHECK_THAT(e.text(), contains("o(0, 1, 5, 3) is 2"));
  CHECK_THAT(e.text(), contains("it cannot be there"));
  CHECK(e.json()["why_not"][0]["worst"]["predicted"] == 1.0);
  CHECK(e.json()["why_not"][1]["worst"].is_null());
}

}  // namespace attn_diag::report
