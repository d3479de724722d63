// Whether the order in which threads run changes what a kernel computes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/harness/trace.h"

namespace attn_diag {

struct ScheduleCheck {
  ScheduleFinding finding = ScheduleFinding::kNotChecked;
  std::string detail;  // what was run and what came out, complete sentences
  // A schedule other than options.schedule under which the production kernel ran to the end and is
  // wrong; empty if there is none.
  std::string wrong_under;
};

// One more run of the production kernel.
struct ScheduleTrial {
  std::string schedule;
  bool completed = false;
  std::int64_t differing = 0;  // cells of o and lse, from the first run
  bool right = false;          // agrees with the reference
  std::string error;           // where it did not complete
};

// What the trials say about a kernel whose first run was made under `schedule` and is `right` or
// not. The first trial is under the same schedule.
ScheduleCheck classify_schedules(const std::string& schedule, bool right,
                                 const std::vector<ScheduleTrial>& trials);

// Backend cuda: runs the production kernel again several times, since a GPU orders threads as it likes.
// Backend host: runs the production kernel again under the same schedule, in the opposite and in a shuffled order,
// and, where its library has a lockstep build and the problem is small or something is amiss,
// converged. `production` is the production kernel's run under options.schedule and `right` says
// whether it agrees with the reference.
ScheduleCheck check_schedules(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                              const RunOptions& options, const Tolerance& tolerance,
                              const Capture& production, bool right);

// Cells of o and lse that differ, bit for bit.
std::int64_t differing_output_cells(const Capture& a, const Capture& b);

}  // namespace attn_diag
