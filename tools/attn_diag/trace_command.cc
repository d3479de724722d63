// attn-diag trace: the bug hunt.
#include <fmt/format.h>

#include <memory>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/numerics.h"
#include "attn_diag/harness/trace.h"
#include "harness/report/comparison_text.h"
#include "harness/report/json.h"
#include "harness/report/junit.h"
#include "harness/report/lines_report.h"
#include "harness/report/same_output.h"
#include "harness/report/sanity_report.h"
#include "harness/report/summary.h"
#include "harness/report/trace_text.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/dump_options.h"
#include "tools/attn_diag/forecast.h"
#include "tools/attn_diag/located_output.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/repair_case.h"
#include "tools/attn_diag/run_history.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/taken_case.h"
#include "tools/attn_diag/variable_command.h"

namespace attn_diag::cli {
namespace {

std::vector<report::JunitCase> junit_of_trace(const TraceResult& r, const std::string& again) {
  std::vector<report::JunitCase> cases;
  const auto add = [&](const std::string& what, report::JunitCase::Kind kind,
                       const std::string& message) {
    report::JunitCase c;
    c.class_name = "attn-diag.trace." + r.capture.provenance.kernel;
    c.name = fmt::format("{} [{}]", what, report::problem_text(r.capture.problem));
    c.kind = kind;
    c.message = message;
    c.detail = again;
    cases.push_back(c);
  };
  using Kind = report::JunitCase::Kind;
  if (r.sanity.finding != SanityFinding::kNotChecked)
    add("the result does not move", r.sanity.unsound() ? Kind::kFailed : Kind::kPassed,
        r.sanity.unsound() ? (r.latent() ? "LATENT: " : "") + report::sanity_headline(r.sanity) +
                                 report::standing_text(r.sanity) + ". " + r.sanity.detail
                           : "");
  if (!r.capture.input_writes.empty())
    add("q, k and v are as they were", Kind::kFailed, report::input_writes_headline(r.capture));
  for (const StageReport& s : r.stages) {
    const bool first = r.first && r.first->stage == s.stage;
    const std::string what(name(s.stage));
    if (s.verdict == Verdict::kAgrees) {
      add(what, Kind::kPassed, "");
    } else if (s.verdict == Verdict::kDiverges) {
      const report::Summary sum = report::summarise(s.prefix);
      add(what, Kind::kFailed,
          first ? report::first_text(*r.first, r.capture.problem)
                : fmt::format("{} of {} elements wrong", sum.mismatched, sum.compared));
    } else {
      add(what, Kind::kSkipped,
          s.exempt_reason.empty() ? std::string(report::name(s.verdict)) : s.exempt_reason);
    }
  }
  if (r.memory_errors)
    add("loads and stores are sound", *r.memory_errors == 0 ? Kind::kPassed : Kind::kSkipped,
        *r.memory_errors == 0 ? ""
                              : "attn-diag check finds errors: " + report::lines_line(*r.lines));
  // Lines of what agrees and is unsound are of that.
  if (r.lines && r.memory_errors.value_or(0) == 0)
    add("every number is what attention asks for",
        r.lines->answer == LineAnswer::kNone        ? Kind::kPassed
        : r.lines->answer == LineAnswer::kNotLooked ? Kind::kSkipped
                                                    : Kind::kFailed,
        report::lines_line(*r.lines));
  if (r.capture.provenance.stale())
    add("binary is up to date", Kind::kFailed, "STALE: the sources have changed since the build");
  if (const auto& same = r.capture.same_output)
    add("the edit changed something", Kind::kFailed,
        report::same_output_line(*same) + ". " + report::same_output_proof(*same));
  // Whatever else makes a trace diverge must fail here too.
  add("whole kernel",
      r.agrees()                         ? Kind::kPassed
      : r.answer() == Answer::kNotJudged ? Kind::kError
                                         : Kind::kFailed,
      r.agrees() ? "" : report::trace_headline(r));
  return cases;
}

// Nothing was judged, but lines may be known.
CommandResult result_of(const RefusedTrace& refused, const Session& session,
                        const Provenance& library, LocatedOutput& located) {
  CommandResult outcome;
  outcome.code = ExitCode::kCouldNotCompare;
  outcome.error = refused.what();
  if (session.flags.json) {
    report::Json j = report::json_head({"trace", session.this_command(), ATTN_DIAG_VERSION},
                                       Answer::kNotJudged, library.stale());
    j["refused"] = refused.what();
    j["line_divergence"] = report::to_json(refused.lines);
    outcome.out = report::dump_json(j);
  } else if (!session.flags.quiet) {
    outcome.out = report::lines_text(refused.lines, session.style, session.flags.lines);
  }
  located.finish(report::located(refused.lines, refused.what(), library), outcome);
  return outcome;
}

}  // namespace

CommandResult trace_command(const Session& session) {
  const Flags& flags = session.flags;
  RequestedCase one = expand_cases(flags, false).front();
  const bool dumps = !flags.output.empty();
  DumpOptions dump_options = parse_dump_options(flags);
  if (dumps) {
    require_writable(flags.output, flags.force);
  } else if (flags.force || flags.with_reference || !flags.deflate.empty()) {
    throw Error(
        "--force, --deflate and --with-reference are about the file of -o, which is not "
        "given.");
  }
  TraceOptions options;
  options.sanity_runs = parse_sanity_runs(flags.sanity);
  const Tolerance tolerance = parse_tolerance(flags);
  options.lines = flags.no_lines ? LinesWanted::kNever
                  : flags.lines  ? LinesWanted::kAlways
                                 : LinesWanted::kWhereWrong;
  const double seconds = edit_seconds(flags);
  std::unique_ptr<TextFile> junit;
  if (!flags.junit.empty()) junit = std::make_unique<TextFile>(flags.junit);
  LocatedOutput located(session);
  const Kernel kernel = load_kernel(one);
  if (!flags.variable.empty()) return variable_command(session, one, kernel);
  const Geometry geometry = plan(kernel, one);
  if (!flags.quiet) say_forecast(kernel, one, true);

  TraceResult result;
  try {
    Progress progress(!flags.quiet);
    options.on_step = [&](int i, int n, const std::string& what) { progress.step(i, n, what); };
    result =
        trace({kernel, one.problem, inputs_of(one, kernel, geometry), one.run, tolerance}, options);
    result.capture.provenance.command_line = session.this_command();
    result.capture.notes.insert(result.capture.notes.end(), one.notes.begin(), one.notes.end());
    for (std::string& broken : broken_invariants(check_invariants(result.capture)))
      result.notes.push_back(std::move(broken));
    // Only the tapped run's bits are at hand: they must be the production kernel's.
    if (!result.observer_checked || result.observer_identical)
      History(flags).note(result.capture, result.answer());
    if (seconds > 0 && result.lines && result.lines->answer != LineAnswer::kNone)
      try_edits(flags, seconds, progress, *result.lines);
    if (dumps) {
      progress.step(1, 1, "writing " + flags.output);
      if (result.lines) dump_options.lines = report::dump_json(report::to_json(*result.lines));
      write_dump(flags.output, result.capture, dump_options);
    }
  } catch (RefusedTrace& refused) {
    if (seconds > 0) {
      Progress progress(!flags.quiet);
      try_edits(flags, seconds, progress, refused.lines);
    }
    return result_of(refused, session, kernel.provenance(), located);
  } catch (const RefusedCall& refused) {
    throw Error(refused.what() + taken_beside(kernel, one));
  }

  const std::string again = session.shell(reproduce("trace", one, flags));
  const std::string check = session.shell(reproduce("check", one, flags));
  if (junit) junit->finish(report::junit_xml("attn-diag trace", junit_of_trace(result, again)));
  CommandResult outcome;
  outcome.code = verdict_code(result.answer());
  if (flags.json) {
    report::Json j = report::trace_json(result, {"trace", again, ATTN_DIAG_VERSION, check});
    if (dumps) j["dump"] = flags.output;
    outcome.out = report::dump_json(j);
    located.finish(report::located(result), outcome);
    return outcome;
  }
  report::TraceTextOptions text;
  text.style = session.style;
  text.tolerance = tolerance;
  text.check = check;
  text.repair = session.shell(reproduce("repair", one, flags));
  text.reproduce = again;
  text.tables = flags.lines;
  text.verdict_only = flags.quiet;
  outcome.out = report::trace_text(result, text);
  if (dumps && !flags.quiet)
    outcome.out += fmt::format("  Look at it: {}\n", session.shell({"show", flags.output}));
  located.finish(report::located(result), outcome);
  return outcome;
}

}  // namespace attn_diag::cli
