// attn-diag sweep: a run over many cases, of which this process may have a part.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "attn_diag/harness/host/executor.h"
#include "harness/backends/cuda/run_on_gpu.h"
#include "harness/base/parallel_for.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/session.h"
#include "tools/attn_diag/sweep.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

sweep::ShardChoice choose_shard(const Flags& flags) {
  const auto told = flags.sweep.shards.empty()
                        ? std::nullopt
                        : std::optional(parse_int("--shards", flags.sweep.shards, 1, 1'000'000));
  if (flags.sweep.shard.empty())
    return sweep::shard_of_environment([](const char* name) { return std::getenv(name); }, told);
  const sweep::Shard shard = sweep::parse_shard(flags.sweep.shard);
  if (told && *told != shard.count)
    throw Error(fmt::format("--shard {} and --shards {} contradict one another.", flags.sweep.shard,
                            *told));
  return {shard, ""};
}

// Without --kernel the sweep is the one that the folder holds.
void take_flags_of_folder(Flags& flags) {
  if (!flags.kernel.empty()) return;
  if (flags.output.empty())
    throw Error(
        "sweep needs --kernel, or -o with the folder of a sweep that is to go on; attn-diag list "
        "shows which kernels there are.");
  const auto plan = sweep::read_plan(flags.output);
  if (!plan)
    throw Error(
        fmt::format("{} holds no sweep that could go on: sweep needs --kernel.", flags.output));
  if (const auto given = plan_flags(flags); !given.empty())
    throw Error(
        fmt::format("{} is part of what {} says the sweep is: leave it out, or give --kernel and "
                    "all the rest, too.",
                    given.begin()->first, flags.output));
  take_plan_flags(plan->flags, flags);
  flags.sweep.random = plan->random > 0 ? std::to_string(plan->random) : "";
}

// Cases at a time share the cores.
void share_threads(Flags& flags) {
  if (flags.sweep.jobs.empty() || !flags.threads.empty()) return;
  const std::int64_t jobs = parse_int("--jobs", flags.sweep.jobs, 1, 1024);
  flags.threads = std::to_string(std::max<std::int64_t>(1, resolve_threads(0) / jobs));
}

std::vector<std::string> notes_of(const std::vector<sweep::Plan::Kernel>& kernels) {
  std::vector<std::string> notes;
  for (const auto& kernel : kernels)
    for (const std::string& note :
         {std::string(kernel.backend == "cuda" ? cuda::limits_in_one_line()
                                               : host::limits_in_one_line()),
          kernel.note})
      if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end())
        notes.push_back(note);
  return notes;
}

// The lines of a shard, as they come to be: on the disk, if there is a folder.
class Collected {
 public:
  Collected(const std::string& folder, const sweep::Shard& shard, const sweep::Plan& plan) {
    if (folder.empty()) return;
    x_file = std::make_unique<sweep::ShardFile>(folder, shard, plan);
    for (const report::Json& line : x_file->before()) add(line);
    // Begun in other parts: what those have done is done.
    if (plan.shards != shard.count)
      for (const auto& [number, line] : sweep::read_results(folder, plan).cases) add(line);
  }

  bool has(std::int64_t number) const { return x_lines.contains(number); }
  void take(const std::vector<report::Json>& lines) {
    if (x_file) x_file->append(lines);
    for (const report::Json& line : lines) add(line);
  }
  bool dropped_a_line() const { return x_file && x_file->dropped_a_line(); }
  std::map<std::int64_t, report::Json>& lines() { return x_lines; }

 private:
  void add(const report::Json& line) {
    x_lines.try_emplace(line["case"].get<std::int64_t>(), line);
  }

  std::unique_ptr<sweep::ShardFile> x_file;
  std::map<std::int64_t, report::Json> x_lines;
};

CommandResult result_of(const report::SweepView& view, bool alone, const Session& session,
                        TextFile* junit) {
  // A shard's code says whether it has done its part: engines take anything else for an accident, and end the rest.
  const int code = alone ? report::sweep_code(view) : 0;
  if (junit != nullptr)
    junit->finish(report::junit_xml("attn-diag sweep", report::junit_of_sweep(view)));
  CommandResult outcome;
  outcome.code = static_cast<ExitCode>(code);
  if (session.flags.json) {
    outcome.out = report::dump_json(
        report::sweep_json(view, code, {"sweep", session.this_command(), ATTN_DIAG_VERSION}));
    return outcome;
  }
  outcome.out = report::sweep_text(view, session.style, session.flags.quiet);
  if (session.flags.quiet) return outcome;
  if (!alone)
    outcome.out +=
        "  The verdict is that of all shards: " + session.shell({"sweep", "merge", view.folder}) +
        '\n';
  outcome.out += "  Reproduce: " + session.this_command() + '\n';
  return outcome;
}

CommandResult run_sweep(Session session) {
  Flags& flags = session.flags;
  take_flags_of_folder(flags);
  share_threads(flags);
  const SweepGrid grid(flags);
  const sweep::ShardChoice choice = choose_shard(flags);
  const bool alone = choice.shard.alone();
  if (!alone && flags.output.empty())
    throw Error(
        fmt::format("This is shard {} of the sweep{}: it needs -o DIR, a folder that all shards "
                    "see. (--shard 1/1 does the "
                    "whole sweep here.)",
                    sweep::text(choice.shard), choice.from.empty() ? "" : ", says " + choice.from));
  std::unique_ptr<TextFile> junit;
  if (!flags.junit.empty()) junit = std::make_unique<TextFile>(flags.junit);

  sweep::Plan plan;
  plan.flags = plan_flags(flags);
  plan.random = random_cases(flags);
  plan.cases = grid.numbering().size();
  plan.shards = choice.shard.count;
  plan.version = ATTN_DIAG_VERSION;
  plan.kernels = kernels_of(session, grid);
  if (!flags.output.empty()) plan = sweep::agree_on_plan(flags.output, plan);

  Collected collected(flags.output, choice.shard, plan);
  SweepRun run{session, grid, plan.kernels, {}, grid.costs(), {}};
  const std::vector<std::int64_t> mine = sweep::cases_of(choice.shard, run.costs);
  for (const std::int64_t number : mine)
    if (!collected.has(number)) run.cases.push_back(number);
  const std::size_t before = mine.size() - run.cases.size();
  run.take = [&](const std::vector<report::Json>& lines) { collected.take(lines); };
  run_cases(run);

  report::SweepView view;
  view.cases = std::ssize(mine);
  view.folder = flags.output;
  if (!alone) view.shard = sweep::text(choice.shard);
  for (const std::int64_t number : mine)
    if (auto line = collected.lines().extract(number)) view.lines.insert(std::move(line));
  if (!choice.from.empty())
    view.notes.push_back(fmt::format("Shard {}, says {}.", view.shard, choice.from));
  if (before > 0)
    view.notes.push_back(fmt::format("{} had been run before.",
                                     report::plural(static_cast<std::int64_t>(before), "case")));
  if (collected.dropped_a_line())
    view.notes.emplace_back(
        "Half a line of a process that was stopped was dropped, and its case run again.");
  for (const std::string& note : notes_of(plan.kernels)) view.notes.push_back(note);
  return result_of(view, alone, session, junit.get());
}

}  // namespace

CommandResult sweep_command(const Session& session) {
  const Flags& flags = session.flags;
  if (!flags.files.empty()) {
    if (flags.files.front() != "merge" || flags.files.size() != 2)
      throw Error(fmt::format("sweep takes flags, or the words merge DIR, but was given '{}'.",
                              fmt::join(flags.files, " ")));
    return merge_sweep(session, flags.files[1]);
  }
  if (!flags.sweep.print.empty()) {
    CommandResult outcome;
    outcome.out = job_file(session);
    outcome.is_source = true;
    return outcome;
  }
  return run_sweep(session);
}

}  // namespace attn_diag::cli
