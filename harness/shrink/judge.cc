#include "harness/shrink/judge.h"

#include <string>
#include <utility>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/run.h"
#include "harness/run/repetition.h"

namespace attn_diag::shrink {
namespace {

Told judge(const Experiment& given, const TriedCase& one, int runs) {
  const Experiment experiment =
      given.with(one.problem, *one.inputs).with(options_for(one, given.run));
  const Tolerance& tolerance = given.tolerance;
  Told told;
  try {
    Capture capture = run_kernel(experiment);
    for (int i = 1; i < runs && !capture.repetition.moved(); ++i) {
      add_repetition(capture, run_kernel(experiment));
      if (capture.repetition.moved())
        capture.repetition.within_rounding =
            near_each_other(capture, *capture.repetition.second, tolerance);
    }
    const Comparison comparison = compare_with_reference(capture, tolerance);
    told.failure = failure_of(capture, comparison);
    if (answer_of(capture, comparison) == Answer::kNotJudged) {
      told.said = Said::kRefused;
      told.failure.what = "nothing of it can be judged";
      return told;
    }
  } catch (const Error& e) {
    told.failure = failure_of(e);
    const std::string before = given.kernel.spec() + " failed: ";
    if (told.failure.what.starts_with(before)) told.failure.what.erase(0, before.size());
  }
  told.said = told.failure.kind == FailureKind::kNone ? Said::kPasses : Said::kFails;
  return told;
}

}  // namespace

Judge judge_by_running(Experiment experiment, int runs) {
  experiment.run.taps = false;
  experiment.run.gate = Gate::kFull;
  return [experiment = std::move(experiment), now = runs,
          is_first = true](const TriedCase& one) mutable {
    Told told = judge(experiment, one, now);
    if (std::exchange(is_first, false) && !told.failure.moves) now = 1;
    return told;
  };
}

}  // namespace attn_diag::shrink
