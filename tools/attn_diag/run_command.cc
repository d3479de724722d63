// attn-diag run: one run or a matrix of runs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/host/faults.h"
#include "attn_diag/harness/numerics.h"
#include "harness/backends/cuda/run_on_gpu.h"
#include "harness/compare/looser_declaration.h"
#include "harness/library/draft_note.h"
#include "harness/report/comparison_text.h"
#include "harness/report/json.h"
#include "harness/report/junit.h"
#include "harness/report/matrix.h"
#include "harness/report/same_output.h"
#include "harness/report/sanity_report.h"
#include "harness/report/summary.h"
#include "harness/run/input_writes.h"
#include "harness/run/repetition.h"
#include "harness/trace/check_sanity.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/crash_page.h"
#include "tools/attn_diag/forecast.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/run_case.h"
#include "tools/attn_diag/run_history.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/taken_case.h"

namespace attn_diag::cli {
namespace {

using report::JunitCase;
using report::MatrixRow;
using report::RowVerdict;

// Gate 0, the cheap part of it unless more is asked for: is the verdict the same in other orders of threads and on
// other bytes that nobody wrote?
void run_again(const Experiment& experiment, const RequestedCase& c, const Flags& flags,
               Capture& capture, MatrixRow& row) {
  // A GPU orders threads as it likes, and runs each case twice. Inputs of stages are not a kernel's own.
  if (c.backend != "host" || c.run.isolate || last_stage(c.run.gate) != Stage::kReduce) return;
  // Without a judgement it cannot be told whether the result moves by more than rounding.
  if (row.verdict == RowVerdict::kNotJudged) return;
  const int runs = parse_sanity_runs(flags.sanity);
  if (runs == 0) return;
  if (runs < 0 && !worth_running_again(c.problem)) {
    row.not_checked =
        "Other orders of threads were not tried: the case is large. --sanity 3 tries them.";
    capture.notes.push_back(row.not_checked);
    return;
  }
  const bool right = row.verdict == RowVerdict::kAgrees;
  RunCheck again = check_run(experiment, capture, right, runs);
  row.sanity = std::move(again.check.sanity);
  if (row.sanity.unsound()) {
    row.verdict = row.sanity.latent() ? RowVerdict::kLatent : RowVerdict::kDiverges;
  } else if (right && again.production && again.production->answer() == Answer::kDiverges) {
    row.verdict = RowVerdict::kDiverges;
    row.comparison = std::move(*again.production);
    capture.notes.emplace_back("Only the production kernel diverges: with taps it is right.");
  }
}

}  // namespace

const Kernel& Kernels::get(const RequestedCase& c) {
  // One backend each.
  const std::string key = c.kernel + (host::is_lockstep(c.run.schedule) ? " in lockstep" : "");
  auto it = x_loaded.find(key);
  if (it == x_loaded.end()) it = x_loaded.emplace(key, load_kernel(c)).first;
  return it->second;
}

namespace {

// After a sample, the trace is of the first wrong row.
std::vector<std::string> hunt_words(const RequestedCase& c, const MatrixRow& row,
                                    const Flags& flags) {
  const report::Summary s = report::summarise(row.comparison);
  if (c.rows.queries.empty()) return reproduce("trace", c, flags);
  RequestedCase one = c;
  one.run.gate = Gate::kReduce;
  Flags there = flags;
  there.query.clear();
  if (s.first_wrong != nullptr && s.first_wrong->first) {
    there.batch_index = std::to_string(s.first_wrong->first->index[0]);
    there.head = std::to_string(s.first_wrong->first->index[1]);
    there.query = std::to_string(s.first_wrong->first->index[2]);
  }
  return reproduce("trace", one, there);
}

}  // namespace

Run run_one(RequestedCase c, Kernels& kernels, const Tolerance& tolerance, History& history,
            const Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  Run run;
  const Kernel& kernel = kernels.get(c);
  run.row.stale = kernel.provenance().stale();
  try {
    run.row.geometry = plan(kernel, c);
    run.row.verdict = RowVerdict::kFailed;  // until it has run
    const Experiment experiment{kernel, c.problem, inputs_of(c, kernel, run.row.geometry), c.run,
                                tolerance};
    run.row.nonfinite_inputs = experiment.inputs.has_nonfinite;
    Capture capture = run_kernel(experiment);
    capture.provenance.command_line = session.this_command();
    capture.notes.insert(capture.notes.end(), c.notes.begin(), c.notes.end());
    if (c.rows.queries.empty()) {
      run.row.comparison = compare_with_reference(capture, tolerance, c.run.threads);
    } else {
      run.row.comparison = compare_some_rows(capture, c.rows, tolerance, c.run.threads);
      run.row.comparison.notes.push_back(some_rows_note(c.rows, c.problem));
    }
    const std::vector<InvariantResult> invariants = check_invariants(capture);
    if (c.rows.sampled)
      look_elsewhere(invariants, tolerance, run.row.comparison);
    else
      for (std::string& broken : broken_invariants(invariants))
        capture.notes.push_back(std::move(broken));
    run.row.coverage_faults = report::coverage_faults(capture);
    run.row.runs = capture.repetition.runs;
    run.row.moved_cells = capture.repetition.moved_cells();
    run.row.moved_within_bounds =
        capture.repetition.moved() &&
        every_run_agrees(capture, run.row.comparison, tolerance, c.run.threads);
    run.row.input_writes = capture.input_writes;
    const bool rounding = run.row.moved_cells == 0 || run.row.moved_within_bounds;
    const Answer answer = rounding ? answer_of(capture, run.row.comparison) : Answer::kDiverges;
    run.row.verdict = report::row_verdict(answer);
    if (answer == Answer::kNotJudged) run.row.why = why_not_judged(run.row.comparison);
    if (capture.input_writes.empty()) run_again(experiment, c, session.flags, capture, run.row);
    history.note(capture, run.row.verdict == RowVerdict::kAgrees      ? "agrees"
                          : run.row.verdict == RowVerdict::kNotJudged ? ""
                                                                      : "diverges");
    run.row.same_output = capture.same_output;
    run.capture = std::move(capture);
  } catch (const Error& e) {
    run.row.why = e.what();
    run.refused = dynamic_cast<const RefusedCall*>(&e) != nullptr;
  }
  run.row.kernel = c.kernel;
  run.row.backend = c.backend;
  run.row.problem = c.problem;
  run.row.inputs = c.inputs;
  run.row.seed = c.seed;
  run.row.input_scale = c.input_scale;
  run.row.tile = c.run.tile;
  run.row.num_splits = c.run.num_splits;
  run.row.reproduce = session.shell(reproduce("run", c, session.flags));
  run.row.look_closer = session.shell(reproduce("check", c, session.flags));
  run.row.hunt = session.shell(hunt_words(c, run.row, session.flags));
  run.row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.what = std::move(c);
  return run;
}

namespace {

ExitCode code_of(RowVerdict v) {
  switch (v) {
    case RowVerdict::kAgrees:
      return ExitCode::kAgrees;
    case RowVerdict::kDiverges:
    case RowVerdict::kLatent:
      return ExitCode::kDiverges;
    default:
      return ExitCode::kCouldNotCompare;
  }
}

// The highest code of the rows. Unsupported rows do not decide, unless a kernel has no other.
ExitCode code_of(const std::vector<MatrixRow>& rows) {
  ExitCode worst = ExitCode::kAgrees;
  std::set<std::string> named, tried;
  for (const MatrixRow& row : rows) {
    named.insert(row.kernel);
    if (row.verdict == RowVerdict::kUnsupported) continue;
    tried.insert(row.kernel);
    worst = std::max(worst, code_of(row.verdict));
  }
  return tried.size() < named.size() ? ExitCode::kCouldNotCompare : worst;
}

// "0.6x"
std::string cost_text(double seconds, double all) {
  return report::ratio(seconds / std::max(all - seconds, 1e-6));
}

std::string again_text(const MatrixRow& row, const Session& session) {
  const Sanity& sanity = row.sanity;
  if (sanity.finding == SanityFinding::kNotChecked) return "";
  return report::sanity_text(sanity, sanity.moved() ? row.look_closer : "", session.style) +
         fmt::format("  That took {} the time of the run; --no-sanity leaves it out.\n",
                     cost_text(sanity.seconds, row.seconds));
}

std::string single_text(const Run& run, const Session& session) {
  const MatrixRow& row = run.row;
  const Capture& capture = *run.capture;
  const report::Style& style = session.style;
  std::string s = report::same_output_text(row.same_output, style) +
                  report::stale_text(capture.provenance, style);
  s += report::comparison_headline(row, style) + '\n';
  if (session.flags.quiet) return s;
  s += fmt::format("  {} on {}: {}, {}\n\n", row.kernel, capture.provenance.backend,
                   report::problem_text(row.problem), report::geometry_text(row.geometry));
  s += report::tensor_table(row.comparison, style);
  s += report::exempt_text(capture);
  s += report::coverage_text(capture, style);
  const report::Summary summary = report::summarise(row.comparison);
  if (summary.first_wrong != nullptr) s += '\n' + report::difference_lines(*summary.first_wrong);
  s += '\n' + report::zeros_text(row.comparison);
  s += again_text(row, session);
  s += report::sources_missing_text(capture.provenance, style);
  for (const auto* notes : {&row.comparison.notes, &capture.notes})
    for (const std::string& note : *notes)
      s += "  " + report::wrap("Note: " + note, style.width - 2, 4) + '\n';
  s += "  Reproduce: " + row.reproduce + '\n';
  if (row.verdict != RowVerdict::kAgrees) s += "  Find where: " + row.hunt + '\n';
  return s;
}

std::vector<JunitCase> junit_of_stages(const Run& run) {
  std::vector<JunitCase> cases;
  for (int i = 0; i < kNumStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    const report::Summary s = report::summarise(run.row.comparison, stage);
    const std::int64_t holes = report::coverage_faults(*run.capture, stage);
    if (s.compared + s.unjudged == 0 && holes == 0) continue;
    JunitCase c;
    c.class_name = "attn-diag.run." + run.row.kernel;
    c.name = fmt::format("{} [{}]", name(stage), report::problem_text(run.row.problem));
    c.seconds = i == 0 ? run.row.seconds : 0;
    if (s.mismatched > 0 || holes > 0) {
      c.kind = JunitCase::Kind::kFailed;
      c.message = fmt::format("{} of {} elements wrong, {} what is allowed", s.mismatched,
                              s.compared, report::ratio(s.max_err_over_bound));
      if (holes > 0) c.message += fmt::format("; {} cells never or repeatedly written", holes);
      c.detail = run.row.reproduce;
    } else if (s.compared == 0) {
      c.kind = JunitCase::Kind::kSkipped;
      c.message = fmt::format("none of {} elements can be judged, having no bound", s.unjudged);
    }
    cases.push_back(c);
  }
  if (const Sanity& sanity = run.row.sanity; sanity.finding != SanityFinding::kNotChecked) {
    JunitCase c;
    c.class_name = "attn-diag.run." + run.row.kernel;
    c.name = fmt::format("the result does not move [{}]", report::problem_text(run.row.problem));
    if (sanity.unsound()) {
      c.kind = JunitCase::Kind::kFailed;
      c.message = (sanity.latent() ? "LATENT: " : "") + report::sanity_headline(sanity) +
                  report::standing_text(sanity) + ". " + sanity.detail;
      c.detail = run.row.look_closer;
    }
    cases.push_back(c);
  }
  const auto add = [&](const char* what, JunitCase::Kind kind, const std::string& message) {
    JunitCase c;
    c.class_name = "attn-diag.run." + run.row.kernel;
    c.name = fmt::format("{} [{}]", what, report::problem_text(run.row.problem));
    c.kind = kind;
    c.message = message;
    c.detail = run.row.reproduce;
    cases.push_back(c);
  };
  if (!run.row.input_writes.empty())
    add("q, k and v are as they were", JunitCase::Kind::kFailed,
        input_writes_text(run.row.input_writes));
  if (run.row.verdict == RowVerdict::kNotJudged)
    add("the output can be judged", JunitCase::Kind::kError, run.row.why);
  if (run.row.same_output)
    add("the edit changed something", JunitCase::Kind::kFailed,
        report::same_output_line(*run.row.same_output) + ". " +
            report::same_output_proof(*run.row.same_output));
  return cases;
}

// For a matrix: what running again has cost, and where it was left out.
std::string again_text(const std::vector<MatrixRow>& rows, const report::Style& style) {
  int checked = 0, left_out = 0;
  double again = 0, all = 0;
  for (const MatrixRow& row : rows) {
    left_out += !row.not_checked.empty();
    if (row.sanity.finding == SanityFinding::kNotChecked) continue;
    ++checked;
    again += row.sanity.seconds;
    all += row.seconds;
  }
  std::string s;
  if (checked > 0)
    s = fmt::format(
        "{} run again in other orders of threads and on other bytes that nobody wrote, at {} the "
        "time of the runs; --no-sanity leaves that out.",
        report::plural(checked, "case") + (checked == 1 ? " was" : " were"), cost_text(again, all));
  if (left_out > 0)
    s += fmt::format("{}{} too large for that; --sanity 3 does it.", s.empty() ? "" : " ",
                     report::plural(left_out, "case") + (left_out == 1 ? " is" : " are"));
  return s.empty() ? "" : "  " + report::wrap(s, style.width - 2, 4) + '\n';
}

// What the backends of a matrix cannot show, why they were chosen, and which adapters are drafts; each once.
std::vector<std::string> matrix_notes(const std::vector<RequestedCase>& cases, Kernels& kernels) {
  std::vector<std::string> notes;
  const auto add = [&](const std::string& note) {
    if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(note);
  };
  for (const RequestedCase& c : cases)
    add(c.backend == "cuda" ? cuda::limits_in_one_line() : host::limits_in_one_line());
  for (const RequestedCase& c : cases)
    for (const std::string& note : c.notes) add(note);
  for (const RequestedCase& c : cases) add(draft_note(kernels.get(c)));
  return notes;
}

std::string matrix_report(const std::vector<MatrixRow>& rows, ExitCode code,
                          const Session& session) {
  if (!session.flags.json) return report::matrix_text(rows, session.style, session.flags.quiet);
  return report::dump_json(report::matrix_json(rows, static_cast<int>(code),
                                               {"run", session.this_command(), ATTN_DIAG_VERSION}));
}

}  // namespace

CommandResult run_command(const Session& session) {
  const Flags& flags = session.flags;
  const std::vector<RequestedCase> cases = expand_cases(flags, true);
  const Tolerance tolerance = parse_tolerance(flags);
  std::unique_ptr<TextFile> junit;
  if (!flags.junit.empty()) junit = std::make_unique<TextFile>(flags.junit);

  if (cases.size() > 1) host::make_faults_findings();  // one row's, not the end of all
  Kernels kernels;
  for (const RequestedCase& c : cases) kernels.get(c);  // a wrong name shows before long work
  if (cases.size() == 1 && !flags.quiet) {
    RequestedCase one = cases.front();
    const Kernel& kernel = kernels.get(one);
    plan(kernel, one);
    say_forecast(kernel, one);
  }
  std::vector<MatrixRow> rows;
  std::optional<Run> single;
  History history(flags);
  {
    Progress progress(!flags.quiet);
    for (const RequestedCase& c : cases) {
      progress.step(static_cast<int>(rows.size()) + 1, static_cast<int>(cases.size()),
                    case_text(kernels.get(c), c));
      Run run = run_one(c, kernels, tolerance, history, session);
      rows.push_back(run.row);
      if (cases.size() == 1) single = std::move(run);
      // Host code that crashes in a later row takes none of these with it.
      if (cases.size() > 1)
        keep_report({matrix_report(rows, code_of(rows), session), report::junit_of_rows(rows)});
    }
  }
  const bool alone = single.has_value();
  if (alone && !single->capture)
    throw Error(single->row.why +
                (single->refused ? taken_beside(kernels.get(single->what), single->what) : ""));
  if (alone && single->row.verdict == RowVerdict::kDiverges && single->what.rows.queries.empty())
    if (const std::string note = looser_declaration(*single->capture, single->row.comparison,
                                                    tolerance, single->what.run.threads);
        !note.empty())
      single->row.comparison.notes.push_back(note);

  CommandResult outcome;
  outcome.code = code_of(rows);
  if (junit)
    junit->finish(report::junit_xml(
        "attn-diag run", alone ? junit_of_stages(*single) : report::junit_of_rows(rows)));
  if (alone && flags.json) {
    const report::CommandContext context{"run", session.this_command(), ATTN_DIAG_VERSION};
    outcome.out = report::dump_json(report::run_json(*single->capture, single->row, context));
  } else if (alone) {
    outcome.out = single_text(*single, session);
  } else {
    outcome.out = matrix_report(rows, outcome.code, session);
    if (!flags.json && !flags.quiet) {
      outcome.out += '\n' + again_text(rows, session.style);
      for (const std::string& note : matrix_notes(cases, kernels))
        outcome.out += "  " + report::wrap(note, session.style.width - 2, 4) + '\n';
      outcome.out += "  Reproduce: " + session.this_command() + '\n';
    }
  }
  return outcome;
}

}  // namespace attn_diag::cli
