// attn-diag report: everything that is known of a case, on one page.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "attn_diag/harness/check_kernel.h"
#include "attn_diag/harness/diagnose_kernel.h"
#include "attn_diag/harness/files.h"
#include "attn_diag/harness/numerics.h"
#include "attn_diag/harness/pattern.h"
#include "harness/diagnose/key_lengths.h"
#include "harness/report/comparison_report.h"
#include "harness/report/lines_report.h"
#include "harness/report/map_png.h"
#include "harness/report/page.h"
#include "harness/report/trace_text.h"
#include "harness/trace/find_first_divergence.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/dump_options.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

constexpr report::Style kPlain = {false, true, 100};

// What the view points to.
struct Known {
  ForeignCase file;
  CaseToDiagnose diagnosed;  // of a file
  KernelDiagnosis kernel;
  Comparison comparison;
  std::optional<FirstDivergence> first;
  std::vector<PatternStatement> pattern;
  ErrorMaps maps;
  Diagnosis diagnosis;
  report::DiagnosisView diagnosis_view;
  std::optional<LineDivergence> lines;
  report::CheckView check;
  report::PageView view;
};

void map_case(Known& k, const Capture& capture, int threads) {
  k.view.capture = &capture;
  k.view.comparison = &k.comparison;
  k.view.first = &k.first;
  k.view.pattern = &k.pattern;
  if (k.comparison.judged() + k.comparison.unjudged() == 0) {
    k.view.no_maps = "Nothing was recorded that could be drawn.";
    return;
  }
  k.view.invariants = check_invariants(capture);
  k.maps = map_errors(capture, k.comparison, k.view.tolerance, threads);
  k.view.maps = &k.maps;
}

std::string file_headline(const Known& k, const report::ComparisonView& view) {
  if (view.answer() == Answer::kDiverges && k.first)
    return "DIVERGES: " + report::first_text(*k.first, k.file.capture.problem);
  return report::comparison_headline(view);
}

void report_file(const Session& session, Progress& progress, Known& k) {
  const Flags& flags = session.flags;
  refuse_case_flags(flags);
  const int threads =
      flags.threads.empty() ? 0 : static_cast<int>(parse_int("--threads", flags.threads, 1, 1024));
  k.file = read_foreign(flags.files, foreign_hints(flags));
  const Capture& capture = k.file.capture;
  const Tolerance& tolerance = k.view.tolerance;
  k.view.subject = report::join(flags.files, ", ");
  k.view.reproduce = session.this_command();
  progress.step(1, 3, "comparing " + k.view.subject);
  k.comparison = compare_case(k.file, tolerance, threads);
  k.first = find_first_divergence(capture, k.comparison);
  const bool plain =
      k.file.extras.bias.empty() && k.file.extras.softcap == 0 && k.file.kv_lens.empty();

  report::ComparisonView compared;
  compared.comparison = &k.comparison;
  compared.capture = &capture;
  compared.actual = k.view.subject;
  compared.rule = report::rule_text(tolerance);
  if (!k.file.arithmetic_known) compared.assumed = k.file.assumed;
  k.view.answer = compared.answer();
  k.view.headline = file_headline(k, compared);
  k.view.text = report::comparison_text(compared, kPlain, false);

  progress.step(2, 3, "mapping errors");
  if (plain) {
    if (k.first)
      k.pattern =
          describe_pattern(collect_wrong_cells(capture, k.first->tensor, tolerance, threads),
                           capture.problem, capture.geometry);
    map_case(k, capture, threads);
  } else {
    k.view.no_maps =
        "No maps are drawn of a formula with a bias, a softcap or kv_lens: o and lse were compared "
        "as a whole.";
  }
  if (k.file.arithmetic_known) k.view.show = session.shell({"show", flags.files[0]});

  progress.step(3, 3, "diagnosing");
  k.diagnosed = case_to_diagnose(k.file, k.comparison);
  DiagnoseOptions options;
  options.geometries = cuts_of(flags, k.diagnosed.one);
  options.tolerance = tolerance;
  options.threads = threads;
  options.extras = k.diagnosed.one.extras;
  k.diagnosis = diagnose(k.diagnosed.one.capture, options);
  if (!k.diagnosed.note.empty()) k.diagnosis.notes.push_back(k.diagnosed.note);
  for (const std::string& phrase : k.file.assumed)
    k.diagnosis.notes.push_back("Assumed: " + phrase + '.');
  k.diagnosis_view.diagnosis = &k.diagnosis;
  k.diagnosis_view.capture = &k.diagnosed.one.capture;
  k.diagnosis_view.subject = k.view.subject;
  k.view.diagnosis = &k.diagnosis_view;
  k.view.no_lines =
      "Not known of a file: the line is found by running the kernel. Name it: attn-diag report "
      "--kernel ...";
  k.view.no_check =
      "Not known of a file: races, bounds and unwritten reads are found by running the kernel.";
}

void check(const Session& session, Progress& progress, Known& k) {
  Flags flags = session.flags;
  flags.backend = "host";
  flags.stage = "full";
  flags.batch_index = flags.head = flags.query = flags.async_copies = "";
  RequestedCase one = std::move(expand_cases(flags, false).front());
  progress.step(1, 1, "watching memory");
  try {
    const Kernel kernel = load_instrumented(one.kernel);
    const Geometry geometry = plan(kernel, one);
    k.check.result =
        check_kernel({kernel, one.problem, inputs_of(one, kernel, geometry), one.run}, {});
  } catch (const Error& error) {
    k.view.no_check = std::string("Memory was not watched: ") + error.what();
    return;
  }
  k.check.kernel = one.kernel;
  k.check.problem = one.problem;
  k.check.schedule = one.run.schedule;
  k.check.reproduce = session.shell(reproduce("check", one, flags));
  k.view.check = &k.check;
  // Numbers that come out right do not make it right.
  if (k.view.answer != Answer::kAgrees || k.check.clean()) return;
  k.view.answer = Answer::kDiverges;
  k.view.latent = k.check.count(host::Severity::kError) == 0;
  k.view.headline =
      fmt::format("{} in what memory does, though the numbers agree", check_headline(k.check));
}

Comparison all_stages(const TraceResult& trace) {
  Comparison all;
  for (const StageReport& s : trace.stages) {
    all.tensors.insert(all.tensors.end(), s.prefix.tensors.begin(), s.prefix.tensors.end());
    all.unjudged_because = s.prefix.unjudged_because;
  }
  return all;
}

void use_trace(const Session& session, const RequestedCase& one, Known& k) {
  const TraceResult& trace = k.kernel.trace;
  k.comparison = all_stages(trace);
  k.first = trace.first;
  k.pattern = trace.pattern;
  k.view.trace = &trace;
  k.view.answer = trace.answer();
  k.view.latent = trace.latent();
  k.view.headline = report::trace_headline(trace);
  map_case(k, trace.capture, one.run.threads);
  k.lines = trace.lines;
  k.view.no_lines = session.flags.no_lines ? "It was not looked for (--no-lines)."
                                           : "It was not looked for: nothing is wrong.";
  report::TraceTextOptions text;
  text.style = kPlain;
  text.tolerance = k.view.tolerance;
  text.check = session.shell(reproduce("check", one, session.flags));
  text.repair = session.shell(reproduce("repair", one, session.flags));
  text.reproduce = session.shell(reproduce("trace", one, session.flags));
  k.view.text = report::trace_text(trace, text);

  k.diagnosis_view.diagnosis = &k.kernel.diagnosis;
  k.diagnosis_view.capture = &k.kernel.capture;
  k.diagnosis_view.trace = &trace;
  k.diagnosis_view.subject = k.view.subject;
  k.diagnosis_view.kernel_answer = k.kernel.answer();
  k.view.diagnosis = &k.diagnosis_view;
}

void report_kernel(const Session& session, Progress& progress, Known& k) {
  const Flags& flags = session.flags;
  RequestedCase one = expand_cases(flags, false).front();
  TraceOptions tracing;
  tracing.sanity_runs = parse_sanity_runs(flags.sanity);
  tracing.lines = flags.no_lines ? LinesWanted::kNever : LinesWanted::kWhereWrong;
  tracing.on_step = [&](int i, int n, const std::string& what) { progress.step(i, n, what); };
  const Kernel kernel = load_kernel(one);
  const Geometry geometry = plan(kernel, one);
  const Experiment experiment{kernel, one.problem, inputs_of(one, kernel, geometry), one.run,
                              k.view.tolerance};
  k.view.subject = one.kernel;
  k.view.reproduce = session.shell(reproduce("report", one, flags));
  try {
    DiagnoseOptions diagnosing;
    diagnosing.tolerance = experiment.tolerance;
    diagnosing.threads = one.run.threads;
    diagnosing.on_step = tracing.on_step;
    k.kernel = diagnose_traced(experiment, trace(experiment, tracing), diagnosing);
    k.kernel.trace.capture.provenance.command_line = session.this_command();
    use_trace(session, one, k);
  } catch (const RefusedTrace& refused) {
    k.view.headline = std::string("COULD NOT COMPARE: ") + refused.what();
    k.view.no_maps = "No result of this run may be taken: there is nothing to draw.";
    k.view.no_diagnosis = "No result of this run may be taken: mend that first.";
    k.lines = refused.lines;
  }
  if (k.lines) k.view.lines = &*k.lines;
  if (k.lines && !k.lines->suspects.empty())
    k.view.repair = session.shell(reproduce("repair", one, flags));
  if (flags.report.no_check)
    k.view.no_check = "Memory was not watched (--no-check).";
  else if (one.backend != "host")
    k.view.no_check = "Memory is watched on the host executor alone: " +
                      session.shell(reproduce("check", one, flags));
  else
    check(session, progress, k);
}

// The map of the tensor that is wrong first, or of o.
const ErrorMap* main_map(const Known& k) {
  const Tensor wanted = k.first ? k.first->tensor : Tensor::kO;
  for (const ErrorMap& map : k.maps.maps)
    if (map.tensor == wanted) return &map;
  return k.maps.maps.empty() ? nullptr : &k.maps.maps.front();
}

void write_png(const Known& k, const std::string& path) {
  const ErrorMap* const map = main_map(k);
  if (map == nullptr)
    throw Error(fmt::format("There is nothing to draw in {}: {}", path, k.view.no_maps));
  report::write_map_png(*map,
                        fmt::format("{}: {} of {}, head {}", k.view.subject,
                                    k.view.headline.substr(0, k.view.headline.find(':')),
                                    name(map->tensor), map->head),
                        path);
}

std::string written_text(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error
             ? ""
             : fmt::format("  Written: {} ({})\n", path, report::bytes(static_cast<double>(size)));
}

}  // namespace

CommandResult report_command(const Session& session) {
  const Flags& flags = session.flags;
  const bool files = !flags.files.empty() || flags.foreign.name_arrays();
  if (files == !flags.kernel.empty())
    throw Error("report takes a file, or --kernel, and one of the two.");
  // What cannot be written shows before long work.
  const bool page = !flags.output.empty(), png = !flags.report.png.empty();
  std::string library;
  if (page) library = report::plotting_library();
  if (png) report::require_gnuplot();
  if (page) require_writable(flags.output, flags.force);
  if (png) require_writable(flags.report.png, flags.force);
  if (flags.force && !page && !png)
    throw Error("--force is about the files of -o and --png, which are not given.");

  Known k;
  k.view.version = ATTN_DIAG_VERSION;
  k.view.tolerance = parse_tolerance(flags);
  {
    Progress progress(!flags.quiet);
    if (files)
      report_file(session, progress, k);
    else
      report_kernel(session, progress, k);
  }
  if (page) TextFile(flags.output).finish(report::page_html(k.view, library));
  if (png) write_png(k, flags.report.png);

  CommandResult outcome;
  outcome.code = verdict_code(k.view.answer);
  if (flags.json) {
    report::Json j = report::page_json(k.view, {"report", k.view.reproduce, ATTN_DIAG_VERSION});
    j["page"] = page ? report::Json(flags.output) : report::Json(nullptr);
    j["png"] = png ? report::Json(flags.report.png) : report::Json(nullptr);
    outcome.out = report::dump_json(j);
  } else if (flags.quiet) {
    outcome.out = k.view.headline + '\n';
  } else {
    outcome.out = report::page_text(k.view, session.style);
    if (page) outcome.out += written_text(flags.output);
    if (png) outcome.out += written_text(flags.report.png);
  }
  return outcome;
}

}  // namespace attn_diag::cli
