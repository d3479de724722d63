#include "harness/trace/schedule_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"

namespace attn_diag {
namespace {

// Lockstep switches threads at every memory access: run it unasked only where that takes well under
// a second.
constexpr double kLockstepMultiplyAdds = 1 << 22;
// A wrong result may be right in lockstep: run it unless that takes many seconds.
constexpr double kLockstepOfWrong = 1 << 28;

// Why the kernel has no build that can run in lockstep; empty if it has one.
std::string no_lockstep_build(const Kernel& kernel) {
  try {
    Kernel::load(kernel.spec(), kernel.build().backend, true);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

std::string sentence(const ScheduleTrial& trial) {
  if (!trial.completed)
    return fmt::format("Under {} it did not complete: {}", trial.schedule, trial.error);
  if (trial.differing == 0) return fmt::format("Under {} it gives the same bits.", trial.schedule);
  return fmt::format("Under {} {} cells of the outputs differ, and it is {}.", trial.schedule,
                     trial.differing, trial.right ? "right" : "wrong");
}

}  // namespace

double multiply_adds(const Problem& p) {
  return static_cast<double>(p.batch) * p.heads * p.seqlen_q * p.seqlen_k *
         (static_cast<double>(p.head_dim) + p.head_dim_v);
}

std::vector<std::string> schedules_to_try(const std::string& schedule, int runs) {
  std::vector<std::string> schedules = {schedule, schedule == "reverse" ? "forward" : "reverse"};
  for (int seed = 1; static_cast<int>(schedules.size()) < runs; ++seed)
    if (const std::string seeded = fmt::format("seed:{}", seed); seeded != schedule)
      schedules.push_back(seeded);
  schedules.resize(static_cast<std::size_t>(runs));
  return schedules;
}

bool worth_lockstep(const Kernel& kernel, const Problem& problem, const std::string& schedule) {
  return !host::is_lockstep(schedule) && multiply_adds(problem) <= kLockstepOfWrong &&
         no_lockstep_build(kernel).empty();
}

ScheduleCheck add_lockstep(ScheduleTrials& trials, const std::string& schedule, bool right,
                           std::vector<ScheduleTrial> runs, const Problem& problem) {
  const bool suspicious =
      !right || std::any_of(runs.begin(), runs.end(), [](const ScheduleTrial& trial) {
        return !trial.completed || trial.differing > 0;
      });
  std::string not_run;
  if (!suspicious && multiply_adds(problem) > kLockstepMultiplyAdds) {
    not_run = "the problem is large and nothing is amiss.";
  } else if (!host::is_lockstep(schedule)) {
    not_run = no_lockstep_build(trials.kernel());
    if (not_run.empty()) runs.push_back(trials.run("lockstep"));
  }
  ScheduleCheck check = classify_schedules(schedule, right, runs);
  check.lockstep = not_run.empty();
  if (!not_run.empty()) check.detail += " Lockstep was not run: " + not_run;
  return check;
}

ScheduleCheck classify_repeats(const std::vector<ScheduleTrial>& trials,
                               const Capture& production) {
  const std::string& device = production.provenance.device;
  int runs = production.repetition.runs;
  std::int64_t differing = production.repetition.moved_cells();
  std::string failed;
  for (const ScheduleTrial& trial : trials) {
    runs += production.repetition.runs;
    differing = std::max(differing, trial.differing);
    if (!trial.completed && failed.empty())
      failed = " One of them did not complete: " + trial.error;
  }
  ScheduleCheck check;
  const bool same = differing == 0 && failed.empty();
  check.finding = same ? ScheduleFinding::kSame : ScheduleFinding::kOrderDependent;
  check.detail = same ? fmt::format("Bit-identical in {} runs on {}.", runs, device)
                      : fmt::format("In {} runs on {}, up to {} cells of the outputs differ.", runs,
                                    device, differing) +
                            failed;
  check.detail += " The schedules forward, reverse, seed:N and lockstep are of backend host.";
  return check;
}

ScheduleCheck classify_schedules(const std::string& schedule, bool right,
                                 const std::vector<ScheduleTrial>& trials) {
  ScheduleCheck check;
  bool differs = false, wrong = !right, right_in_lockstep = false;
  for (const ScheduleTrial& trial : trials) {
    const bool differs_here = !trial.completed || trial.differing > 0;
    differs |= differs_here;
    if (trial.schedule == "lockstep") {
      right_in_lockstep |= trial.right;
    } else {
      wrong |= !trial.right;
    }
    if (check.wrong_under.empty() && trial.completed && differs_here && !trial.right &&
        trial.schedule != schedule)
      check.wrong_under = trial.schedule;
  }
  const bool unsteady = !trials.front().completed || trials.front().differing > 0;
  if (!differs) {
    check.finding = ScheduleFinding::kSame;
    std::vector<std::string> names;
    for (std::size_t i = 1; i < trials.size(); ++i) names.push_back(trials[i].schedule);
    check.detail = fmt::format("Bit-identical when run twice under {}", schedule) +
                   (names.empty() ? "." : fmt::format(" and under {}.", fmt::join(names, ", ")));
    return check;
  }
  check.finding = wrong && right_in_lockstep && !unsteady ? ScheduleFinding::kRightIfConverged
                                                          : ScheduleFinding::kOrderDependent;
  check.detail =
      fmt::format("Under {} the production kernel is {}.", schedule, right ? "right" : "wrong");
  if (unsteady) check.detail += " Two runs under the same schedule differ.";
  for (std::size_t i = 1; i < trials.size(); ++i) {
    check.detail += ' ';
    check.detail += sentence(trials[i]);
  }
  return check;
}

}  // namespace attn_diag
