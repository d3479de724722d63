#include "harness/report/summary.h"

#include <algorithm>

namespace attn_diag::report {
namespace {

std::string with_underscores(std::string_view text) {
  std::string s(text);
  std::replace(s.begin(), s.end(), ' ', '_');
  return s;
}

}  // namespace

Summary summarise(const Comparison& comparison, std::optional<Stage> stage) {
  Summary s;
  for (const TensorComparison& t : comparison.tensors) {
    if (stage && stage_of(t.tensor) != *stage) continue;
    s.compared += t.compared;
    s.mismatched += t.mismatched;
    s.unjudged += t.unjudged;
    s.max_err_over_bound = std::max(s.max_err_over_bound, t.max_err_over_bound);
    s.max_abs_err = std::max(s.max_abs_err, t.max_abs_err);
    s.max_ulp = std::max(s.max_ulp, t.max_ulp);
    s.zeros_err_over_bound = std::max(s.zeros_err_over_bound, t.zeros_err_over_bound);
    if (s.first_wrong == nullptr && t.mismatched > 0) s.first_wrong = &t;
  }
  return s;
}

std::int64_t coverage_faults(const Capture& capture, std::optional<Stage> stage) {
  std::int64_t n = 0;
  for (const TensorInfo& t : kTensors) {
    if (stage && t.stage != *stage) continue;
    const Coverage& c = capture.coverage[static_cast<std::size_t>(t.id)];
    n += c.never + c.repeatedly;
  }
  return n;
}

std::string_view name(Answer a) {
  return a == Answer::kAgrees     ? "agrees"
         : a == Answer::kDiverges ? "diverges"
                                  : "could not compare";
}

std::string_view name(Verdict v) {
  switch (v) {
    case Verdict::kAgrees:
      return "agrees";
    case Verdict::kDiverges:
      return "diverges";
    case Verdict::kExempt:
      return "exempt";
    case Verdict::kNotReached:
      return "not reached";
    case Verdict::kNotRun:
      return "not run";
    case Verdict::kNotJudged:
      return "not judged";
  }
  return "?";
}

std::string_view name(ScheduleFinding f) {
  switch (f) {
    case ScheduleFinding::kNotChecked:
      return "not checked";
    case ScheduleFinding::kSame:
      return "same";
    case ScheduleFinding::kOrderDependent:
      return "order dependent";
    case ScheduleFinding::kRightIfConverged:
      return "right if converged";
  }
  return "?";
}

std::string json_name(Answer a) { return with_underscores(name(a)); }
std::string json_name(Verdict v) { return with_underscores(name(v)); }
std::string json_name(ScheduleFinding f) { return with_underscores(name(f)); }

}  // namespace attn_diag::report
