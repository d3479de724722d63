#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "attn_diag/harness/diagnose_kernel.h"
#include "harness/diagnose/line_agreement.h"

namespace attn_diag {
namespace {

std::set<std::string> ids_of(const Match& match) {
  std::set<std::string> ids;
  for (const Match::Part& part : match.parts) ids.insert(part.id);
  return ids;
}

// Whether a member predicts what this run gave too.
bool accounts_for(const Match& member, const Capture& capture, const Diagnosis& again,
                  const DiagnoseOptions& options) {
  for (const Match& match : again.best)
    if (ids_of(match) == ids_of(member)) return true;
  if (member.parts.size() > 1) return false;
  const WhyNot alone = why_not(capture, options, member.parts.front().id);
  return alone.possible && !alone.worst;
}

}  // namespace

void run_experiments(const Experiment& experiment, KernelDiagnosis& found,
                     const DiagnoseOptions& options) {
  const KernelInfo& kernel = experiment.kernel.info();
  constexpr std::uint64_t kSeed = 1;
  Diagnosis& d = found.diagnosis;
  for (const TellingRun& telling : d.experiments) {
    if (d.verdict != DiagnosisVerdict::kClass) break;
    if (telling.inputs.empty() && !telling.cut) continue;
    Experiment other =
        telling.inputs.empty()
            ? experiment
            : experiment.with(experiment.problem,
                              make_inputs(experiment.problem, telling.inputs, kSeed, 1));
    RunOptions& run = other.run;
    run.isolate = false;
    run.replace = 0;
    run.taps = has_gate(kernel, run.gate) && run.gate != Gate::kFull;
    if (telling.cut) {
      run.tile = telling.cut->tile;
      run.num_splits = kernel.takes_num_splits ? telling.cut->num_splits : 0;
    }
    const Capture capture = run_kernel(other);
    std::string title = telling.what;
    title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
    const Diagnosis again = diagnose(capture, options);
    if (again.verdict == DiagnosisVerdict::kNothingWrong) {
      found.experiments.push_back(
          fmt::format("{}: nothing is wrong, so that it does not show the bug.", title));
      continue;
    }
    if (again.verdict == DiagnosisVerdict::kNotJudged) {
      found.experiments.push_back(fmt::format("{}: {}.", title, again.not_judged));
      continue;
    }
    std::vector<Match> left;
    for (const Match& member : d.best)
      if (accounts_for(member, capture, again, options)) left.push_back(member);
    if (left.empty()) {
      found.experiments.push_back(fmt::format(
          "{}: none of them accounts for the result: it is none of these bugs alone.", title));
      continue;
    }
    std::string text;
    for (const Match& match : left) text += (text.empty() ? "" : ", ") + match.label;
    found.experiments.push_back(fmt::format("{}: {} of {} account for the result: {}.", title,
                                            left.size(), d.best.size(), text));
    d.best = std::move(left);
    if (d.best.size() == 1) d.verdict = DiagnosisVerdict::kNamed;
  }
  if (found.trace.lines) matching::confirm_by_line(d, *found.trace.lines);
}

}  // namespace attn_diag
