// attn-diag compare: a dump, or a case of another program, against the reference; or a dump against another.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "attn_diag/harness/dump.h"
#include "attn_diag/harness/files.h"
#include "attn_diag/harness/numerics.h"
#include "harness/diagnose/key_lengths.h"
#include "harness/report/comparison_report.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

// What the view points to.
struct Compared {
  Comparison comparison;
  ForeignCase one;  // one case only
  report::ComparisonView view;
};

bool names_rows(const Flags& f) { return !(f.batch_index + f.head + f.query).empty(); }

void compare_case(const Flags& f, const Tolerance& tolerance, Compared& c) {
  const int threads =
      f.threads.empty() ? 0 : static_cast<int>(parse_int("--threads", f.threads, 1, 1024));
  if (f.bound) throw Error("--bound is for two files; one file is judged by its bound anyway.");
  c.one = read_foreign(f.files, foreign_hints(f));
  if (!names_rows(f)) {
    c.comparison = compare_case(c.one, tolerance, threads);
  } else {
    if (!c.one.extras.bias.empty() || c.one.extras.softcap != 0 || !c.one.kv_lens.empty())
      throw Error(
          "With a bias, a softcap or kv_lens all rows are judged: leave out --batch-index, --head "
          "and --query.");
    const std::uint64_t seed = c.one.capture.provenance.seed;
    const SomeRows rows = parse_some_rows(f, c.one.capture.problem, seed);
    // Before the comparison: what that frees stays with its threads, and counts.
    std::vector<InvariantResult> invariants;
    if (rows.sampled) invariants = check_invariants(c.one.capture);
    c.comparison = compare_some_rows(c.one.capture, rows, tolerance, threads);
    c.comparison.notes.push_back(some_rows_note(rows, c.one.capture.problem));
    look_elsewhere(invariants, tolerance, c.comparison);
  }
  c.view.capture = &c.one.capture;
  if (!c.one.arithmetic_known) c.view.assumed = c.one.assumed;
}

void compare_two(const Flags& f, Tolerance tolerance, Compared& c) {
  c.view.expected = f.files[1];
  if (names_rows(f))
    throw Error(
        "--batch-index, --head and --query are about one case: two files are compared whole.");
  if (f.foreign.name_arrays() || !(f.dtype + f.mask + f.layout + f.softmax_scale).empty())
    throw Error(
        "Two files are compared as they are: leave out what is about one of another program.");
  if (f.bound) {
    if (!tolerance.use_bound) throw Error("Give --bound, or --atol and --rtol, not both.");
  } else if (tolerance.use_bound) {
    tolerance.use_bound = false;  // atol = rtol = 0
    c.view.exact = true;
    c.view.rule = "equal values";
  }
  c.comparison = compare_dumps(f.files[0], f.files[1], tolerance);
  c.view.binaries = report::Binaries{read_dump_header(f.files[0]).provenance.build_id,
                                     read_dump_header(f.files[1]).provenance.build_id};
}

void compare_files(const Flags& f, Compared& c) {
  const Tolerance tolerance = parse_tolerance(f);
  c.view.rule = report::rule_text(tolerance);
  c.view.comparison = &c.comparison;
  c.view.actual = f.files.empty() ? "o" : f.files[0];
  if (f.files.size() < 2)
    compare_case(f, tolerance, c);
  else
    compare_two(f, tolerance, c);
}

}  // namespace

CommandResult compare_command(const Session& session) {
  const Flags& flags = session.flags;
  if (flags.files.size() > 2 || (flags.files.empty() && !flags.foreign.name_arrays()))
    throw Error(
        fmt::format("compare takes one file or two, but was given {}.", flags.files.size()));
  std::unique_ptr<TextFile> junit;
  if (!flags.junit.empty()) junit = std::make_unique<TextFile>(flags.junit);
  Compared c;
  {
    Progress progress(!flags.quiet);
    progress.step(1, 1, "comparing " + (flags.files.empty() ? "arrays" : flags.files[0]));
    compare_files(flags, c);
  }
  if (c.comparison.judged() + c.comparison.unjudged() == 0)
    throw Error(fmt::format("Nothing was compared: {} and {} have no tensor in common.",
                            c.view.actual,
                            c.view.expected.empty() ? "the reference" : c.view.expected));
  c.view.reproduce = session.this_command();
  if (c.view.capture != nullptr && !c.view.assumed)
    c.view.look = session.shell({"show", flags.files[0]});

  if (junit) junit->finish(report::junit_xml("attn-diag compare", comparison_junit(c.view)));
  CommandResult outcome;
  outcome.code = verdict_code(c.view.answer());
  outcome.out = flags.json ? report::dump_json(report::comparison_json(
                                 c.view, {"compare", c.view.reproduce, ATTN_DIAG_VERSION}))
                           : report::comparison_text(c.view, session.style, flags.quiet);
  return outcome;
}

}  // namespace attn_diag::cli
