// Each name held against the line, as diagnose does of kernels that attn-diag build made.
#include <fmt/format.h>

#include <algorithm>

#include "attn_diag/harness/error.h"
#include "harness/diagnose/line_agreement.h"
#include "harness/lines/watch.h"
#include "tools/diagnosis_matrix/sections.h"

namespace attn_diag::diagnosis_matrix {
namespace {

namespace fs = std::filesystem;

bool is_claim(Outcome outcome) { return outcome == Outcome::kName || outcome == Outcome::kClass; }

// What the line says about the right names: kAgrees with one, else kOtherwise where it disputes one.
LineSays said_of(const Diagnosis& diagnosis, const Bug& bug) {
  LineSays says = LineSays::kNothing;
  for (const Match& match : diagnosis.best)
    if (names(match, bug)) {
      if (match.line == LineSays::kAgrees) return LineSays::kAgrees;
      if (match.line == LineSays::kOtherwise) says = LineSays::kOtherwise;
    }
  return says;
}

}  // namespace

std::vector<LineResult> Runner::lines(const fs::path& source) const {
  const Setting setting = {input_sets().front(), DType::kFp16, true};  // randn
  const std::string base = source.stem().string();
  build::BuildRequest request;
  request.sources = {source};
  request.defines = {"ATTN_DIAG_PLANTED_FP16_ONLY"};  // the others take as long again to compile
  const lines::WatchBuild all = lines::make_watch_build(request, base);
  if (!all.kernel) throw Error(base + ": " + all.reason);
  const std::string library = all.kernel->library_path();

  std::vector<LineResult> results;
  std::size_t number = 0;
  for (const Bug& bug : x_records.bugs) {
    const ProblemCase& c = x_records.problems.at(bug.problem);
    const bool can_have =
        std::find(bug.kernels.begin(), bug.kernels.end(), base) != bug.kernels.end();
    if (!can_have || !bug.is_formula() || bug.hypotheses.empty() || c.has_extras()) continue;
    if (number++ % x_every != 0) continue;
    LineResult result{&bug, base, false, LineSays::kNothing, ""};
    x_on_step(base + "." + bug.name + " lines");
    const lines::WatchBuild watched{Kernel::load(library + ":" + base + "." + bug.name, "host"), "",
                                    all.folder};
    DiagnoseOptions options;
    options.pairs = false;
    Diagnosis diagnosis = diagnose(run_case(*watched.kernel, c, setting), options);
    result.is_named = is_claim(judge(diagnosis, bug));
    if (result.is_named) {
      Problem problem = c.problem;
      problem.dtype = setting.dtype;
      const InputData inputs = make_inputs(problem, setting.inputs.kind, 1, setting.inputs.scale);
      RunOptions run;
      run.tile = c.tile;
      const LineDivergence line =
          lines::trace_lines(watched, {*watched.kernel, problem, inputs, run}, LinesBy::kNumbers);
      matching::confirm_by_line(diagnosis, line);
      result.says = said_of(diagnosis, bug);
      result.words = fmt::format("{}; {}{}: {}", words_of(diagnosis), name(line.fault),
                                 line.fault_is_firm ? "" : ", not firm",
                                 line.what.empty() ? line.reason : line.what);
    } else {
      result.words = words_of(diagnosis);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace attn_diag::diagnosis_matrix
