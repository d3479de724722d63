// attn-diag sweep merge: the lines of all shards together, each case counted once.
#include <fmt/format.h>

#include <memory>

#include "tools/attn_diag/output.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/sweep.h"

namespace attn_diag::cli {

std::vector<report::MissingShard> missing_shards(
    const std::vector<float>& costs, std::int64_t shards,
    const std::map<std::int64_t, report::Json>& lines) {
  const std::vector<std::int32_t> owner = sweep::deal(costs, shards);
  std::vector<report::MissingShard> all(static_cast<std::size_t>(shards));
  for (std::size_t i = 0; i < owner.size(); ++i) {
    report::MissingShard& shard = all[static_cast<std::size_t>(owner[i])];
    ++shard.cases;
    shard.missing += !lines.contains(static_cast<std::int64_t>(i));
  }
  std::vector<report::MissingShard> missing;
  for (std::int64_t i = 0; i < shards; ++i) {
    report::MissingShard& shard = all[static_cast<std::size_t>(i)];
    shard.shard = sweep::text({i, shards});
    if (shard.missing > 0) missing.push_back(shard);
  }
  return missing;
}

CommandResult merge_sweep(const Session& session, const std::string& folder) {
  const auto plan = sweep::read_plan(folder);
  if (!plan)
    throw Error(fmt::format(
        "{} is no folder of a sweep: it has no sweep.json. attn-diag sweep -o DIR makes one.",
        folder));
  Flags flags = session.flags;
  take_plan_flags(plan->flags, flags);
  flags.sweep.random = plan->random > 0 ? std::to_string(plan->random) : "";
  const SweepGrid grid(flags);
  if (grid.numbering().size() != plan->cases)
    throw Error(fmt::format("{}/sweep.json says {} cases, but its flags make {}: it was changed.",
                            folder, plan->cases, grid.numbering().size()));
  sweep::Results results = sweep::read_results(folder, *plan);
  std::unique_ptr<TextFile> junit, lines;
  if (!flags.junit.empty()) junit = std::make_unique<TextFile>(flags.junit);
  if (!flags.output.empty()) lines = std::make_unique<TextFile>(flags.output);

  report::SweepView view;
  view.cases = plan->cases;
  view.folder = folder;
  view.missing = missing_shards(grid.costs(), plan->shards, results.cases);
  view.lines = std::move(results.cases);
  view.cut_short = results.torn;
  view.repeated = results.repeated;
  view.contradicted = results.contradicted;
  view.finish = session.shell({"sweep", "-o", folder, "--shard"}) + " @";
  if (lines) {
    std::string all;
    for (const auto& [number, line] : view.lines) all += line.dump() + '\n';
    lines->finish(all);
  }
  if (junit) junit->finish(report::junit_xml("attn-diag sweep", report::junit_of_sweep(view)));
  CommandResult outcome;
  const int code = report::sweep_code(view);
  outcome.code = static_cast<ExitCode>(code);
  outcome.out = session.flags.json
                    ? report::dump_json(report::sweep_json(
                          view, code, {"sweep", session.this_command(), ATTN_DIAG_VERSION}))
                    : report::sweep_text(view, session.style, session.flags.quiet);
  return outcome;
}

}  // namespace attn_diag::cli
