// attn-diag repair: small edits of the source, tried.
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "harness/repair/repair.h"
#include "harness/report/repair_text.h"
#include "harness/toolchain/build/settings.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

repair::SourcePlace parse_place(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  repair::SourcePlace place;
  bool ok = colon != std::string::npos && colon > 0;
  if (ok) {
    place.file = text.substr(0, colon);
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + colon + 1, end, place.line);
    ok = read.ec == std::errc() && read.ptr == end && place.line > 0;
  }
  if (!ok)
    throw Error(fmt::format("--line was given '{}': expected FILE:LINE, as mine.cu:42.", text));
  return place;
}

}  // namespace

CommandResult repair_command(const Session& session) {
  Flags flags = session.flags;
  if (!flags.backend.empty() && flags.backend != "auto" && flags.backend != "host")
    throw Error(
        fmt::format("repair runs edited copies on the host executor: --backend takes host, but was "
                    "given '{}'.",
                    flags.backend));
  if (!flags.child.timeout.empty())
    throw Error(
        "--timeout is of commands that run the code under test once: of repair, each edit has a "
        "limit of its own, and --time-limit is that of all.");
  flags.backend = "host";
  flags.stage = "full";  // the production kernel
  RequestedCase one = std::move(expand_cases(flags, false).front());
  repair::RepairOptions options;
  const Tolerance tolerance = parse_tolerance(flags);
  for (const std::string& line : flags.repair.lines) options.suspects.push_back(parse_place(line));
  if (!flags.repair.time_limit.empty())
    options.seconds = parse_real("--time-limit", flags.repair.time_limit, 1);
  const Kernel kernel = load_kernel(one);
  const Geometry geometry = plan(kernel, one);
  options.processes = one.run.threads;
  const Experiment experiment{kernel, one.problem, inputs_of(one, kernel, geometry), one.run,
                              tolerance};
  const build::Settings settings = build::load_settings(build::settings_file_of_program());

  report::RepairView view;
  view.kernel = one.kernel;
  view.problem = one.problem;
  view.reproduce = session.this_command();
  {
    Progress progress(!flags.quiet);
    options.on_step = [&](int tried, int edits, const std::string& what) {
      progress.step(tried, edits, what);
    };
    view.result = repair::repair(experiment, options, settings);
  }
  using repair::RepairVerdict;
  if (flags.repair.apply && view.result.verdict == RepairVerdict::kFound) {
    repair::apply_edit(view.result.edits.front());
    view.applied = true;
  }
  CommandResult outcome;
  outcome.code =
      view.result.verdict == RepairVerdict::kNothing ? ExitCode::kDiverges : ExitCode::kAgrees;
  outcome.out = flags.json ? report::dump_json(report::repair_json(
                                 view, {"repair", session.this_command(), ATTN_DIAG_VERSION}))
                           : report::repair_text(view, session.style, flags.quiet);
  return outcome;
}

}  // namespace attn_diag::cli
