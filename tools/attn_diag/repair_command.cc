// attn-diag repair: small edits of the source, tried.
#include <fmt/format.h>

#include <charconv>

#include "harness/repair/repair.h"
#include "harness/report/repair_text.h"
#include "tools/attn_diag/repair_case.h"
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
  const Flags& flags = session.flags;
  if (!flags.child.timeout.empty())
    throw Error(
        "--timeout is of commands that run the code under test once: of repair, each edit has a "
        "limit of its own, and --time-limit is that of all.");
  repair::RepairOptions options;
  for (const std::string& line : flags.repair.lines) options.suspects.push_back(parse_place(line));
  if (!flags.repair.time_limit.empty())
    options.seconds = parse_real("--time-limit", flags.repair.time_limit, 1);
  RepairedCase repaired = [&] {
    Progress progress(!flags.quiet);
    options.on_step = [&](int tried, int edits, const std::string& what) {
      progress.step(tried, edits, what);
    };
    return repair_case(flags, std::move(options));
  }();
  report::RepairView view;
  view.kernel = repaired.requested.kernel;
  view.problem = repaired.requested.problem;
  view.reproduce = session.this_command();
  view.result = std::move(repaired.result);
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
