// attn-diag diagnose: the name of the bug.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "attn_diag/harness/diagnose.h"
#include "attn_diag/harness/diagnose_kernel.h"
#include "attn_diag/harness/files.h"
#include "harness/diagnose/key_lengths.h"
#include "harness/report/diagnosis.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/run_history.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

DiagnoseOptions options_of(const Flags& flags) {
  DiagnoseOptions options;
  options.tolerance = parse_tolerance(flags);
  options.pairs = !flags.diagnose.no_pairs;
  if (!flags.threads.empty())
    options.threads = static_cast<int>(parse_int("--threads", flags.threads, 1, 1024));
  return options;
}

// Where the first wrong tensor is recorded.
std::vector<TapLine> taps_of(const Capture& capture, const Diagnosis& diagnosis,
                             const TraceResult* trace) {
  if (trace != nullptr && trace->first)
    return find_tap_lines(capture.provenance, trace->first->tensor);
  return diagnosis.tensors.empty() ? std::vector<TapLine>{}
                                   : find_tap_lines(capture.provenance, diagnosis.tensors.front());
}

CommandResult report_of(const report::DiagnosisView& view, const Session& session) {
  CommandResult outcome;
  outcome.code = verdict_code(view.answer());
  outcome.out = session.flags.json
                    ? report::dump_json(report::diagnosis_json(
                          view, {"diagnose", view.reproduce, ATTN_DIAG_VERSION, view.check}))
                    : report::diagnosis_text(view, {session.style, session.flags.quiet});
  return outcome;
}

std::vector<WhyNot> why_nots(const Capture& capture, const DiagnoseOptions& options,
                             const Flags& flags) {
  std::vector<WhyNot> all;
  for (const std::string& id : flags.diagnose.why_not) all.push_back(why_not(capture, options, id));
  return all;
}

CommandResult diagnose_file(const Session& session) {
  const Flags& flags = session.flags;
  refuse_case_flags(flags);
  DiagnoseOptions options = options_of(flags);
  Progress progress(!flags.quiet);
  options.on_step = [&](int i, int n, const std::string& what) { progress.step(i, n, what); };
  auto [read, note] = case_to_diagnose(read_foreign(flags.files, foreign_hints(flags)),
                                       options.tolerance, options.threads);
  options.geometries = cuts_of(flags, read);
  options.extras = read.extras;
  const std::string subject =
      flags.files.empty() ? read.capture.provenance.inputs : report::join(flags.files, ", ");
  if (flags.diagnose.active)
    throw Error("--active runs a kernel: it is for --kernel, not for files.");
  if (flags.no_lines)
    throw Error("--no-lines is about running a kernel: lines of files are not looked for.");
  Diagnosis diagnosis = diagnose(read.capture, options);
  if (!note.empty()) diagnosis.notes.push_back(note);
  for (const std::string& phrase : read.assumed)
    diagnosis.notes.push_back("Assumed: " + phrase + '.');
  const std::vector<WhyNot> failed = why_nots(read.capture, options, flags);
  report::DiagnosisView view;
  view.diagnosis = &diagnosis;
  view.capture = &read.capture;
  view.why_not = &failed;
  view.taps = taps_of(read.capture, diagnosis, nullptr);
  view.subject = subject;
  view.reproduce = session.this_command();
  return report_of(view, session);
}

CommandResult diagnose_a_kernel(const Session& session) {
  const Flags& flags = session.flags;
  RequestedCase one = expand_cases(flags, false).front();
  DiagnoseOptions options = options_of(flags);
  TraceOptions tracing;
  tracing.sanity_runs = parse_sanity_runs(flags.sanity);
  if (flags.no_lines) tracing.lines = LinesWanted::kNever;
  const Kernel kernel = load_kernel(one);
  const Geometry geometry = plan(kernel, one);

  Progress progress(!flags.quiet);
  tracing.on_step = [&](int i, int n, const std::string& what) { progress.step(i, n, what); };
  options.on_step = tracing.on_step;
  Experiment experiment{kernel, one.problem, inputs_of(one, kernel, geometry), one.run,
                        options.tolerance};
  KernelDiagnosis found = diagnose_kernel(experiment, tracing, options);
  found.capture.provenance.command_line = session.this_command();
  History(flags).note(found.capture, found.answer());
  const std::vector<WhyNot> failed = why_nots(found.capture, options, flags);
  std::optional<TileFinding> tiles;
  if (!found.trace.calmly.empty()) {
    experiment.run.schedule = found.trace.sanity.calm->schedule;
    experiment.run.fill = found.trace.sanity.calm->fill;
  }
  const bool formula = found.diagnosis.verdict != DiagnosisVerdict::kNotAFormula;
  if (flags.diagnose.active && formula && found.answer() == Answer::kDiverges) {
    run_experiments(experiment, found, options);
    constexpr int kTrials = 8;
    if (found.capture.has(Tensor::kO))  // by which tiles are judged
      tiles =
          try_tiles(experiment, kTrials, [&](int i, int n) { progress.step(i, n, "other tiles"); });
  }

  report::DiagnosisView view;
  view.diagnosis = &found.diagnosis;
  view.capture = &found.capture;
  view.trace = &found.trace;
  view.why_not = &failed;
  view.taps = taps_of(found.capture, found.diagnosis, &found.trace);
  view.subject = fmt::format("{} on {}", one.kernel, one.backend);
  view.reproduce = session.shell(reproduce("diagnose", one, flags));
  view.check = session.shell(reproduce("check", one, flags));
  view.experiments = &found.experiments;
  if (tiles) view.tiles = &*tiles;
  for (const TellingRun& telling : found.diagnosis.experiments) {
    RequestedCase other = one;
    if (!telling.inputs.empty()) other.inputs = telling.inputs;
    if (telling.cut) {
      other.run.tile = telling.cut->tile;
      if (kernel.info().takes_num_splits) other.run.num_splits = telling.cut->num_splits;
    }
    const bool runs = telling.cut || (!telling.inputs.empty() && !one.inputs_from_file);
    view.experiment_commands.push_back(runs ? session.shell(reproduce("diagnose", other, flags))
                                            : "");
  }
  // Other numbers should get the same name.
  if (!one.inputs_from_file && found.answer() == Answer::kDiverges) {
    RequestedCase other = one;
    other.seed = one.seed + 1;
    view.confirm = session.shell(reproduce("diagnose", other, flags));
  }
  view.kernel_answer = found.answer();
  return report_of(view, session);
}

}  // namespace

CommandResult diagnose_command(const Session& session) {
  const Flags& flags = session.flags;
  const bool files = !flags.files.empty() || flags.foreign.name_arrays();
  if (files && !flags.kernel.empty()) throw Error("diagnose takes a file or --kernel, not both.");
  if (!files && flags.kernel.empty())
    throw Error("diagnose needs --kernel or a file; attn-diag list shows which kernels there are.");
  return files ? diagnose_file(session) : diagnose_a_kernel(session);
}

}  // namespace attn_diag::cli
