// Whether the order in which threads run changes what a kernel computes.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/trace.h"
#include "harness/trace/schedule_trials.h"

namespace attn_diag {

struct ScheduleCheck {
  ScheduleFinding finding = ScheduleFinding::kNotChecked;
  std::string detail;  // what was run and what came out, complete sentences
  // A schedule other than options.schedule under which the production kernel ran to the end and is
  // wrong; empty if there is none.
  std::string wrong_under;
  // On backend host: a build of the kernel that can run in lockstep was run, or was given.
  bool lockstep = false;
};

// What the trials say about a kernel whose first run was made under `schedule` and is `right` or
// not. The first trial is under the same schedule.
ScheduleCheck classify_schedules(const std::string& schedule, bool right,
                                 const std::vector<ScheduleTrial>& trials);

// `runs` schedules: the given one again, the opposite order, and shuffled ones.
std::vector<std::string> schedules_to_try(const std::string& schedule, int runs);

double multiply_adds(const Problem& problem);

// Whether a run in lockstep takes little time: the problem is small, and the kernel has such a build.
bool worth_lockstep(const Kernel& kernel, const Problem& problem, const std::string& schedule);

// On backend host: runs in lockstep too, where the library has such a build and the problem is small or
// something is amiss, and classifies all.
ScheduleCheck add_lockstep(ScheduleTrials& trials, const std::string& schedule, bool right,
                           std::vector<ScheduleTrial> runs, const Problem& problem);

// On backend cuda, where each run is two runs of one case: a GPU orders threads as it likes.
ScheduleCheck classify_repeats(const std::vector<ScheduleTrial>& trials, const Capture& production);

}  // namespace attn_diag
