#include "harness/diagnose/line_agreement.h"

#include <catch2/catch.hpp>

namespace attn_diag::matching {
namespace {

Match of(std::initializer_list<const char*> ids) {
  Match match;
  for (const char* id : ids) {
    REQUIRE(reference::find_hypothesis(id) != nullptr);
    match.parts.push_back({id, "", "", "", "", Stage::kQk, {}});
  }
  return match;
}

LineDivergence found(LineFault fault, bool firm = true) {
  LineDivergence lines;
  lines.fault = fault;
  lines.fault_is_firm = firm;
  return lines;
}

}  // namespace

TEST_CASE("a bug can be where numbers first go wrong, or cannot") {
  struct Row {
    const char* id;
    LineFault fault;
    LineSays says;
  };
  const Row rows[] = {
      {"temperature", LineFault::kScores, LineSays::kAgrees},
      {"temperature", LineFault::kDivision, LineSays::kOtherwise},
      {"temperature", LineFault::kPlace, LineSays::kOtherwise},
      {"mask-missing", LineFault::kKeys, LineSays::kAgrees},
      {"mask-missing", LineFault::kDivision, LineSays::kOtherwise},
      {"alpha-missing-o", LineFault::kFrames, LineSays::kAgrees},
      {"alpha-missing-o", LineFault::kScores, LineSays::kOtherwise},
      {"alpha-missing-o", LineFault::kOperands, LineSays::kOtherwise},
      {"l-missing", LineFault::kDivision, LineSays::kAgrees},
      {"l-missing", LineFault::kScores, LineSays::kOtherwise},
      {"gain", LineFault::kKeys, LineSays::kOtherwise},
      {"l-times-n", LineFault::kKeys, LineSays::kAgrees},
      {"product-times-n", LineFault::kDivision, LineSays::kAgrees},
      {"product-times-n", LineFault::kScores, LineSays::kOtherwise},
      {"output-rows-shifted", LineFault::kRows, LineSays::kAgrees},
      {"output-rows-shifted", LineFault::kFrames, LineSays::kOtherwise},
      {"sum-narrow", LineFault::kRounding, LineSays::kAgrees},
      {"sum-narrow", LineFault::kKeys, LineSays::kOtherwise},
      // What the line cannot tell says nothing.
      {"temperature", LineFault::kRounding, LineSays::kNothing},
      {"temperature", LineFault::kNoNumbers, LineSays::kNothing},
      {"temperature", LineFault::kNotKnown, LineSays::kNothing},
  };
  for (const Row& row : rows) {
    INFO(row.id << ", " << name(row.fault));
    CHECK(line_says(of({row.id}), found(row.fault)) == row.says);
    const bool rounds = row.fault == LineFault::kRounding;
    CHECK(line_says(of({row.id}), found(row.fault, false)) ==
          (rounds ? row.says : LineSays::kNothing));
  }
}

TEST_CASE("of two bugs at once the line may see either") {
  CHECK(line_says(of({"temperature", "l-missing"}), found(LineFault::kScores)) ==
        LineSays::kAgrees);
  CHECK(line_says(of({"temperature", "l-missing"}), found(LineFault::kDivision)) ==
        LineSays::kAgrees);
  CHECK(line_says(of({"temperature", "l-missing"}), found(LineFault::kPlace)) ==
        LineSays::kOtherwise);
}

TEST_CASE("a name that the line contradicts is disputed, a class where it contradicts all of it") {
  Diagnosis d;
  d.verdict = DiagnosisVerdict::kNamed;
  d.best = {of({"temperature"})};
  confirm_by_line(d, found(LineFault::kScores));
  CHECK(d.verdict == DiagnosisVerdict::kNamed);
  CHECK(d.best.front().line == LineSays::kAgrees);
  confirm_by_line(d, found(LineFault::kDivision));
  CHECK(d.verdict == DiagnosisVerdict::kDisputed);
  CHECK(answer_of(d) == Answer::kDiverges);

  d.verdict = DiagnosisVerdict::kClass;
  d.best = {of({"temperature"}), of({"l-missing"})};
  confirm_by_line(d, found(LineFault::kDivision));
  CHECK(d.verdict == DiagnosisVerdict::kClass);
  CHECK(d.best[0].line == LineSays::kOtherwise);
  CHECK(d.best[1].line == LineSays::kAgrees);
  confirm_by_line(d, found(LineFault::kPlace));
  CHECK(d.verdict == DiagnosisVerdict::kDisputed);

  d.verdict = DiagnosisVerdict::kUnknown;
  confirm_by_line(d, found(LineFault::kPlace));
  CHECK(d.verdict == DiagnosisVerdict::kUnknown);
}

}  // namespace attn_diag::matching
