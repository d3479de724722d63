#include "attn_diag/harness/diagnose_kernel.h"

#include <algorithm>
#include <string>

#include "harness/testing/catch_for_tests.h"
#include "harness/testing/fake_kernels.h"

namespace attn_diag {
namespace {

KernelDiagnosis diagnose_fake(const std::string& kernel, const RunOptions& run = {}) {
  const Problem problem = fake_problem();
  return diagnose_kernel({fake_kernel(kernel), problem, make_inputs(problem, "randn", 1, 1.0), run},
                         {}, {});
}

bool holds(const Diagnosis& d, const std::string& id) {
  return std::any_of(d.best.begin(), d.best.end(), [&](const Match& m) {
    return std::any_of(m.parts.begin(), m.parts.end(),
                       [&](const Match::Part& part) { return part.id == id; });
  });
}

}  // namespace

TEST_CASE("a right kernel has no bug, and a wrong one its name") {
  const KernelDiagnosis right = diagnose_fake("right");
  CHECK(right.agrees());
  CHECK(right.diagnosis.verdict == DiagnosisVerdict::kNothingWrong);
  const KernelDiagnosis wrong = diagnose_fake("divides-twice");
  CHECK_FALSE(wrong.agrees());
  CHECK(wrong.diagnosis.verdict == DiagnosisVerdict::kNamed);
  CHECK(holds(wrong.diagnosis, "l-twice"));
  CHECK(wrong.diagnosis.stage == Stage::kReduce);
  CHECK(wrong.trace.first.has_value());
}

TEST_CASE("a result that moves gets no name") {
  const KernelDiagnosis r = diagnose_fake("reads-workspace");
  CHECK_FALSE(r.agrees());
  CHECK(r.diagnosis.verdict == DiagnosisVerdict::kNotAFormula);
  CHECK(r.diagnosis.best.empty());
  REQUIRE_FALSE(r.diagnosis.notes.empty());
  CHECK_THAT(r.diagnosis.notes.front(), contains("workspace"));
}

TEST_CASE("a bug with a name is named although the result moves, where it holds still") {
  const KernelDiagnosis r = diagnose_fake("reads-workspace-and-divides-twice");
  CHECK_FALSE(r.agrees());
  CHECK(r.diagnosis.verdict == DiagnosisVerdict::kNamed);
  CHECK(holds(r.diagnosis, "l-twice"));
  CHECK(r.trace.calmly == "with zeros in the workspace");
  REQUIRE_FALSE(r.diagnosis.notes.empty());
  CHECK_THAT(r.diagnosis.notes.front(), contains("workspace"));
}

TEST_CASE(
    "bits that move by less than rounding end no diagnosis, of a wrong kernel or a right one") {
  const KernelDiagnosis wrong = diagnose_fake("unsteady-rounding-and-divides-twice");
  CHECK(wrong.diagnosis.verdict == DiagnosisVerdict::kNamed);
  CHECK(holds(wrong.diagnosis, "l-twice"));
  const KernelDiagnosis right = diagnose_fake("unsteady-rounding");
  CHECK(right.agrees());
  CHECK(right.diagnosis.verdict == DiagnosisVerdict::kNothingWrong);
}

TEST_CASE("a kernel without taps, or asked for its outputs alone, is diagnosed by o and lse") {
  RunOptions run;
  run.gate = Gate::kFull;
  run.taps = false;
  const KernelDiagnosis r = diagnose_fake("divides-twice", run);
  CHECK(r.diagnosis.tensors == std::vector{Tensor::kLse, Tensor::kO});
  CHECK(holds(r.diagnosis, "l-twice"));
}

TEST_CASE("where the taps change the result, the production kernel is diagnosed") {
  const KernelDiagnosis r = diagnose_fake("disturbed-by-taps");
  CHECK_FALSE(r.agrees());
  CHECK_FALSE(r.capture.has(Tensor::kS));
  REQUIRE_FALSE(r.diagnosis.notes.empty());
  CHECK_THAT(r.diagnosis.notes.back(), contains("the taps change its result"));
}

TEST_CASE("of two stages at fault the one with a name gets it, the other its description") {
  const KernelDiagnosis r = diagnose_fake("two-faults");  // one cell of S, and l twice
  CHECK_FALSE(r.agrees());
  CHECK(r.diagnosis.verdict == DiagnosisVerdict::kPartial);
  CHECK(r.diagnosis.stage == Stage::kQk);
  CHECK(holds(r.diagnosis, "l-twice"));
  CHECK_FALSE(r.diagnosis.residual.empty());
  CHECK(std::any_of(r.diagnosis.notes.begin(), r.diagnosis.notes.end(), [](const std::string& n) {
    return n.find("qk, and reduce, which is wrong for the inputs it got too") != n.npos;
  }));
}

TEST_CASE("experiments leave of a class what accounts for the new results too") {
  const Problem problem = fake_problem();
  KernelDiagnosis found = diagnose_fake("divides-twice");
  REQUIRE(found.diagnosis.best.size() == 1);
  Match other = found.diagnosis.best.front();
  other.parts.front().id = "temperature";
  other.label = "temperature";
  found.diagnosis.best.push_back(other);
  found.diagnosis.verdict = DiagnosisVerdict::kClass;
  found.diagnosis.experiments = {
      {"run with --inputs rising", "it tells them apart", "rising", std::nullopt}};
  run_experiments({fake_kernel("divides-twice"), problem, make_inputs(problem, "randn", 1, 1.0)},
                  found, {});
  CHECK(found.diagnosis.verdict == DiagnosisVerdict::kNamed);
  REQUIRE(found.diagnosis.best.size() == 1);
  CHECK(holds(found.diagnosis, "l-twice"));
  REQUIRE(found.experiments.size() == 1);
  CHECK_THAT(found.experiments.front(), contains("1 of 2 account for the result"));
}

}  // namespace attn_diag
