// Kernels with planted faults: does a trace on the GPU find what their finding.toml states?
#include <fmt/format.h>

#include "attn_diag/harness/error.h"
#include "harness/report/text.h"
#include "tools/gpu_check/child.h"
#include "tools/gpu_check/finding.h"
#include "tools/gpu_check/sections.h"

namespace attn_diag::gpu_check {
namespace {

constexpr double kTraceSeconds = 120;

Check run_fault(const Setup& setup, const std::string& name) {
  Check check;
  check.name = name;
  const std::size_t at = name.find('@');
  const StatedFinding finding = read_finding(
      setup.fixtures + "/faults/" + name.substr(at + 1) + "/finding.toml", name.substr(0, at));
  std::vector<std::string> words = {setup.attn_diag, "trace", "--kernel", name,
                                    "--backend",     "cuda"};
  words.insert(words.end(), finding.flags.begin(), finding.flags.end());
  check.reproduce = setup.shown(words);
  words.emplace_back("--json");
  const ProcessResult result = run_child(words, kTraceSeconds);
  check.why = trouble_of(result, {0, 1});
  if (!check.why.empty()) return check;
  if (result.exit_code == 0) {
    check.verdict = finding.race ? Verdict::kNotSeen : Verdict::kFailed;
    if (finding.race) check.reproduce.clear();
    check.why = finding.race ? "a race, which this GPU's order of threads does not show"
                             : "not detected: the trace agrees";
    return check;
  }
  check.why = difference(finding, Json::parse(result.out));
  if (check.why.empty() || finding.race) {
    check.verdict = Verdict::kPassed;
    check.reproduce.clear();
    if (!check.why.empty())
      check.why = "detected; where a race shows first is chance: " + check.why;
  } else {
    check.why = "detected, but not where it is: " + check.why;
  }
  return check;
}

}  // namespace

Section faults_section(const Setup& setup) {
  Section section;
  const std::vector<std::string> names = setup.cuda_kernels(true);
  if (names.empty()) {
    section.skipped =
        "no fault kernels here (a bundle made without --faults, or target fault_kernels_cuda not "
        "built)";
    return section;
  }
  section.checks.resize(names.size());
  const int n = static_cast<int>(names.size());
  parallel(
      n, default_jobs(),
      [&](int i) {
        const auto at = static_cast<std::size_t>(i);
        try {
          section.checks[at] = run_fault(setup, names[at]);
        } catch (const std::exception& e) {
          section.checks[at] = {names[at], Verdict::kFailed, e.what(), ""};
        }
      },
      [&](int done) { setup.progress(done, n, "faults"); });
  return section;
}

}  // namespace attn_diag::gpu_check
