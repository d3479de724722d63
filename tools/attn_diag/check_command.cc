// attn-diag check: one watched run.
#include <fmt/format.h>

#include <utility>

#include "attn_diag/harness/check_kernel.h"
#include "harness/report/check_report.h"
#include "harness/report/check_suppressions.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/located_output.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/taken_case.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

constexpr std::int64_t kMostFindings = 1000000;

}  // namespace

CommandResult check_command(const Session& session) {
  Flags flags = session.flags;
  if (flags.backend == "cuda")
    throw Error(
        "check watches memory on the host executor: --backend takes host. On a GPU, "
        "compute-sanitizer does that.");
  if (!flags.backend.empty() && flags.backend != "auto" && flags.backend != "host")
    throw Error(fmt::format("--backend takes host, but was given '{}'.", flags.backend));
  flags.backend = "host";
  // The production kernel runs: no taps.
  flags.stage = "full";
  RequestedCase one = std::move(expand_cases(flags, false).front());
  host::CheckOptions options;
  if (!flags.check.max.empty())
    options.max_findings = static_cast<int>(parse_int("--max", flags.check.max, 1, kMostFindings));
  // What cannot be read shows before long work.
  std::vector<report::Suppression> suppressions;
  if (!flags.check.suppressions.empty())
    suppressions = report::read_suppressions(flags.check.suppressions);
  LocatedOutput located(session);
  const Kernel kernel = load_instrumented(one.kernel);
  const Geometry geometry = plan(kernel, one);
  const InputData inputs = inputs_of(one, kernel, geometry);

  report::CheckView view;
  try {
    view.result = check_kernel({kernel, one.problem, inputs, one.run}, options);
  } catch (const RefusedCall& refused) {
    throw Error(refused.what() + taken_beside(kernel, one));
  }
  view.kernel = one.kernel;
  view.problem = one.problem;
  view.schedule = one.run.schedule;
  view.reproduce = session.this_command();
  report::apply_suppressions(suppressions, flags.check.suppressions, view);
  CommandResult outcome;
  outcome.code = view.clean() ? ExitCode::kAgrees : ExitCode::kDiverges;
  outcome.out = flags.json ? report::dump_json(report::check_json(
                                 view, {"check", session.this_command(), ATTN_DIAG_VERSION}))
                           : report::check_text(view, {session.style, flags.quiet});
  located.finish(report::located(view), outcome);
  return outcome;
}

}  // namespace attn_diag::cli
