// attn-diag compare: a dump against the reference, or against another dump.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "attn_diag/harness/dump.h"
#include "harness/report/comparison_text.h"
#include "harness/report/json.h"
#include "harness/report/junit.h"
#include "harness/report/summary.h"
#include "harness/run/repetition.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

// Whether two dumps come from one and the same binary: then no edit between them is in either.
struct Binaries {
  std::string actual, expected;  // build ids
  bool same() const { return !actual.empty() && actual == expected; }
};

struct Compared {
  Comparison comparison;
  std::optional<Binaries> binaries;  // two files only
  std::optional<Capture> capture;    // one file only
  std::string against;
  std::string rule;  // what "agrees" means here
  bool exact = false;
};

Compared compare_files(const Flags& f) {
  Compared c;
  Tolerance tolerance = parse_tolerance(f);
  const int threads =
      f.threads.empty() ? 0 : static_cast<int>(parse_int("--threads", f.threads, 1, 1024));
  c.rule = fmt::format("|a - r| <= {} + {}*|r|", tolerance.atol, tolerance.rtol);
  if (f.files.size() == 1) {
    if (f.bound) throw Error("--bound is for two files; one file is judged by its bound anyway.");
    if (tolerance.use_bound) c.rule = "the rounding bound";
    c.against = "the reference";
    c.capture = read_dump(f.files[0]);
    c.comparison = compare_with_reference(*c.capture, tolerance, threads);
    return c;
  }
  c.against = f.files[1];
  if (f.bound) {
    if (!tolerance.use_bound) throw Error("Give --bound, or --atol and --rtol, not both.");
    c.rule = "the rounding bound";
  } else if (tolerance.use_bound) {
    tolerance.use_bound = false;  // atol = rtol = 0
    c.exact = true;
    c.rule = "equal values";
  }
  c.comparison = compare_dumps(f.files[0], f.files[1], tolerance);
  c.binaries = Binaries{read_dump_header(f.files[0]).provenance.build_id,
                        read_dump_header(f.files[1]).provenance.build_id};
  return c;
}

std::string binaries_text(const Compared& c, bool agrees, const report::Style& style) {
  if (!c.binaries) return "";
  const Binaries& b = *c.binaries;
  if (b.same())
    return "  " +
           report::wrap(fmt::format("Both come from the same binary, build id {}: no edit made "
                                    "between the two runs is in either.",
                                    b.actual),
                        style.width - 2, 4) +
           '\n';
  std::string s =
      fmt::format("From different binaries, build ids {} and {}.", b.actual, b.expected);
  if (agrees && c.exact)
    s += " Whatever changed between them makes no difference to any value stored here.";
  return "  " + report::wrap(s, style.width - 2, 4) + '\n';
}

std::string headline(const Compared& c, Answer answer, const Flags& flags,
                     const report::Style& style) {
  const report::Summary s = report::summarise(c.comparison);
  if (answer == Answer::kNotJudged)
    return report::paint(style, report::colour_of(answer),
                         report::could_not_compare_text(c.comparison));
  if (answer == Answer::kAgrees)
    return report::paint(
        style, report::colour_of(answer),
        fmt::format("AGREES: {} {} {}{} in {}", flags.files[0], c.exact ? "and" : "with", c.against,
                    c.exact ? " are identical" : "", report::judged_text(s.compared, s.unjudged)));
  if (c.comparison.agrees() && c.capture && c.capture->repetition.unsound())
    return report::paint(
        style, report::Colour::kRed,
        fmt::format("DIVERGES: two runs of the case in {} differ by more than rounding: a race",
                    flags.files[0]));
  std::string where;
  if (s.first_wrong != nullptr && s.first_wrong->first)
    where = fmt::format(", first in {} at {}{}", name(stage_of(s.first_wrong->tensor)),
                        name(s.first_wrong->tensor),
                        report::index_text(s.first_wrong->tensor, s.first_wrong->first->index));
  return report::paint(
      style, report::Colour::kRed,
      fmt::format("DIVERGES: {} differs from {} in {} elements{}", flags.files[0], c.against,
                  report::mismatched_text(s.mismatched, s.compared), where));
}

std::vector<report::JunitCase> junit_of_tensors(const Compared& c, const Session& session) {
  std::vector<report::JunitCase> cases;
  for (const TensorComparison& t : c.comparison.tensors) {
    report::JunitCase one;
    one.class_name = "attn-diag.compare." + session.flags.files[0];
    one.name = fmt::format("{} {} against {}", name(stage_of(t.tensor)), name(t.tensor), c.against);
    if (t.compared == 0) {
      one.kind = c.comparison.answer() == Answer::kNotJudged ? report::JunitCase::Kind::kError
                                                             : report::JunitCase::Kind::kSkipped;
      one.message = fmt::format("none of {} elements can be judged, having no bound", t.unjudged);
    } else if (!t.agrees()) {
      one.kind = report::JunitCase::Kind::kFailed;
      one.message = fmt::format("{} of {} elements wrong", t.mismatched, t.compared);
      one.detail = session.this_command();
    }
    cases.push_back(one);
  }
  return cases;
}

}  // namespace

CommandResult compare_command(const Session& session) {
  const Flags& flags = session.flags;
  if (flags.files.empty() || flags.files.size() > 2)
    throw Error(
        fmt::format("compare takes one file or two, but was given {}.", flags.files.size()));
  std::unique_ptr<TextFile> junit;
  if (!flags.junit.empty()) junit = std::make_unique<TextFile>(flags.junit);
  Compared c;
  {
    Progress progress(!flags.quiet);
    progress.step(1, 1, "comparing " + flags.files[0]);
    c = compare_files(flags);
  }
  const report::Summary summary = report::summarise(c.comparison);
  if (summary.compared + summary.unjudged == 0)
    throw Error(fmt::format("Nothing was compared: {} and {} have no tensor in common.",
                            flags.files[0], c.against));
  const bool moved = c.capture && c.capture->repetition.moved();
  const Answer answer = c.capture ? answer_of(*c.capture, c.comparison) : c.comparison.answer();
  const bool agrees = answer == Answer::kAgrees;
  const bool stale = c.capture && c.capture->provenance.stale();

  if (junit) junit->finish(report::junit_xml("attn-diag compare", junit_of_tensors(c, session)));
  CommandResult outcome;
  outcome.code = verdict_code(answer);
  const report::Style& style = session.style;
  if (flags.json) {
    report::Json j =
        report::json_head({"compare", session.this_command(), ATTN_DIAG_VERSION}, answer, stale);
    j["actual"] = flags.files[0];
    j["expected"] = flags.files.size() > 1 ? report::Json(flags.files[1]) : report::Json(nullptr);
    j["rule"] = c.rule;
    if (c.binaries) j["same_binary"] = c.binaries->same();
    j["judged"] = c.comparison.judged();
    j["cells"] = c.comparison.judged() + c.comparison.unjudged();
    j["stages"] = report::stages_json(c.comparison);
    if (c.capture) {
      j["problem"] = report::to_json(c.capture->problem);
      j["region"] = report::to_json(c.capture->region);
      j["coverage"] = report::coverage_json(*c.capture);
      j["runs"] = c.capture->repetition.runs;
      j["moved_cells"] = c.capture->repetition.moved_cells();
      j["provenance"] = report::to_json(c.capture->provenance);
    }
    outcome.out = report::dump_json(j);
    return outcome;
  }
  if (c.capture) outcome.out += report::stale_text(c.capture->provenance, style);
  outcome.out += headline(c, answer, flags, style) + '\n';
  if (flags.quiet) return outcome;
  if (c.capture)
    outcome.out += fmt::format(
        "  {} on {}: {}, {}{}\n", c.capture->provenance.kernel, c.capture->provenance.backend,
        report::problem_text(c.capture->problem), report::geometry_text(c.capture->geometry),
        c.capture->isolated ? ", every stage fed the reference's inputs" : "");
  outcome.out += binaries_text(c, agrees, style);
  outcome.out += fmt::format("  Judged by {}.\n\n", c.rule);
  outcome.out += report::tensor_table(c.comparison, style);
  if (c.capture)
    outcome.out += report::exempt_text(*c.capture) + report::coverage_text(*c.capture, style);
  if (moved)
    outcome.out +=
        "  " + report::wrap(repetition_text(c.capture->repetition), style.width - 2, 4) + '\n';
  if (summary.first_wrong != nullptr)
    outcome.out += '\n' + report::difference_lines(*summary.first_wrong);
  for (const std::string& note : c.comparison.notes)
    outcome.out += "  " + report::wrap("Note: " + note, style.width - 2, 4) + '\n';
  outcome.out += "\n  Reproduce: " + session.this_command() + '\n';
  if (answer == Answer::kDiverges && c.capture)
    outcome.out += "  Look at it: " + session.shell({"show", flags.files[0]}) + '\n';
  return outcome;
}

}  // namespace attn_diag::cli
