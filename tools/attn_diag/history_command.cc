// attn-diag history: which cases were run in this directory, and what came out.
#include <fmt/format.h>
#include <sys/stat.h>

#include "harness/report/json.h"
#include "harness/report/same_output.h"
#include "tools/attn_diag/run_history.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {

CommandResult history_command(const Session& session) {
  const HistoryFlags& flags = session.flags.history;
  const std::int64_t most =
      flags.limit.empty() ? kShownRuns : parse_int("--limit", flags.limit, 1, 1 << 20);
  const HistoryFile file(kHistoryDirectory);
  std::vector<RecordedRun> runs = file.read();
  std::erase_if(runs, [&](const RecordedRun& run) {
    return !session.flags.kernel.empty() && run.kernel != session.flags.kernel;
  });
  const std::size_t found = runs.size();
  if (std::ssize(runs) > most) runs.erase(runs.begin(), runs.end() - most);

  CommandResult outcome;
  if (session.flags.json) {
    report::Json j;
    j["schema"] = report::kJsonSchema;
    j["version"] = ATTN_DIAG_VERSION;
    j["command"] = "history";
    j["file"] = file.path();
    j["found"] = found;
    j["runs"] = report::Json::array();
    for (const RecordedRun& run : runs) j["runs"].push_back(report::to_json(run));
    outcome.out = report::dump_json(j);
    return outcome;
  }
  if (runs.empty()) {
    outcome.out = fmt::format(
        "{} knows of no run{}. run, trace and dump note theirs in the directory they run in.\n",
        file.path(), session.flags.kernel.empty() ? "" : " of " + session.flags.kernel);
    return outcome;
  }
  outcome.out = fmt::format(
      "{}: {}{}\n\n", file.path(), report::plural(static_cast<std::int64_t>(found), "run"),
      found > runs.size() ? fmt::format(", the newest {} shown", runs.size()) : "");
  outcome.out += report::history_text(runs, session.style);
  return outcome;
}

}  // namespace attn_diag::cli
