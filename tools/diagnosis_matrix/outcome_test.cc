#include "tools/diagnosis_matrix/outcome.h"

#include "harness/testing/catch_for_tests.h"

namespace attn_diag::diagnosis_matrix {
namespace {

Bug bug(const char* id) {
  Bug b;
  b.hypotheses = {id};
  return b;
}

Match match(std::initializer_list<const char*> ids) {
  Match m;
  for (const char* const id : ids) {
    m.parts.emplace_back();
    m.parts.back().id = id;
  }
  return m;
}

Diagnosis said(DiagnosisVerdict verdict, std::vector<Match> best) {
  Diagnosis d;
  d.verdict = verdict;
  d.best = std::move(best);
  return d;
}

TEST_CASE("a name counts where it is the planted bug's, and is wrong where it is another's") {
  CHECK(judge(said(DiagnosisVerdict::kNamed, {match({"a"})}), bug("a")) == Outcome::kName);
  CHECK(judge(said(DiagnosisVerdict::kNamed, {match({"b"})}), bug("a")) == Outcome::kWrong);
  CHECK(judge(said(DiagnosisVerdict::kNamed, {match({"a", "b"})}), bug("a")) == Outcome::kWrong);
  CHECK(judge(said(DiagnosisVerdict::kNamed, {match({"a", "a"})}), bug("a")) == Outcome::kName);
}

TEST_CASE("a class counts where the planted bug is in it") {
  const auto of = [](std::vector<Match> best) {
    return judge(said(DiagnosisVerdict::kClass, std::move(best)), bug("a"));
  };
  CHECK(of({match({"b"}), match({"a"})}) == Outcome::kClass);
  CHECK(of({match({"b"}), match({"c"})}) == Outcome::kWrong);
  CHECK(of({match({"b"}), match({"a", "c"})}) == Outcome::kWrong);
}

TEST_CASE("a partial match counts as one only if the planted bug is the best") {
  const auto of = [](std::vector<Match> best) {
    return judge(said(DiagnosisVerdict::kPartial, std::move(best)), bug("a"));
  };
  CHECK(of({match({"a"}), match({"b"})}) == Outcome::kPartial);
  CHECK(of({match({"b"}), match({"a"})}) == Outcome::kUnknown);
  CHECK(of({}) == Outcome::kUnknown);
}

TEST_CASE("agreement is hidden, and no claim is no wrong name") {
  CHECK(judge(said(DiagnosisVerdict::kNothingWrong, {}), bug("a")) == Outcome::kHidden);
  CHECK(judge(said(DiagnosisVerdict::kUnknown, {match({"b"})}), bug("a")) == Outcome::kUnknown);
  CHECK(judge(said(DiagnosisVerdict::kNotAFormula, {}), bug("a")) == Outcome::kMoves);
}

TEST_CASE(
    "of a bug that the catalogue does not know no claim is not known, and any name is wrong") {
  const auto of = [](DiagnosisVerdict verdict, std::vector<Match> best) {
    return judge(said(verdict, std::move(best)), Bug{});
  };
  CHECK(of(DiagnosisVerdict::kUnknown, {}) == Outcome::kNotKnown);
  CHECK(of(DiagnosisVerdict::kPartial, {match({"b"})}) == Outcome::kNotKnown);
  CHECK(of(DiagnosisVerdict::kNamed, {match({"b"})}) == Outcome::kWrong);
  CHECK(of(DiagnosisVerdict::kClass, {match({"b"}), match({"c"})}) == Outcome::kWrong);
  CHECK(of(DiagnosisVerdict::kNothingWrong, {}) == Outcome::kHidden);
  CHECK(name(Outcome::kNotKnown) == std::string("not known"));
}

TEST_CASE("of two bugs both must be in one match, in either order") {
  const auto named = [](std::vector<Match> best) {
    return judge_pair(said(DiagnosisVerdict::kNamed, std::move(best)), bug("a"), bug("b"));
  };
  CHECK(named({match({"a", "b"})}) == PairOutcome::kBoth);
  CHECK(named({match({"b", "a"})}) == PairOutcome::kBoth);
  CHECK(named({match({"a"})}) == PairOutcome::kOne);
  CHECK(named({match({"a", "c"})}) == PairOutcome::kWrong);
  CHECK(named({match({"c"})}) == PairOutcome::kWrong);
  CHECK(judge_pair(said(DiagnosisVerdict::kClass, {match({"c", "d"}), match({"a", "b"})}), bug("a"),
                   bug("b")) == PairOutcome::kBoth);
  CHECK(judge_pair(said(DiagnosisVerdict::kPartial, {match({"c"})}), bug("a"), bug("b")) ==
        PairOutcome::kUnknown);
}

TEST_CASE("a bug that is planted twice is a pair only if it is named twice") {
  const Diagnosis d = said(DiagnosisVerdict::kNamed, {match({"a", "a"})});
  CHECK(judge_pair(d, bug("a"), bug("b")) == PairOutcome::kOne);
  CHECK(judge_pair(d, bug("a"), bug("a")) == PairOutcome::kBoth);
}

}  // namespace
}  // namespace attn_diag::diagnosis_matrix
