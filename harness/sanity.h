// Gate 0 of a trace: runs the production kernel again, under other schedules and with other bytes in all
// memory it has not written.
#pragma once

#include <string>

#include "attn_diag/harness/sanity.h"
#include "harness/schedule_check.h"
#include "harness/schedule_trials.h"

namespace attn_diag {

struct SanityCheck {
  Sanity sanity;
  ScheduleCheck schedules;
};

// `runs` runs where nothing moves (of backend cuda each is two), and lockstep as schedule_check.h has it;
// where something does, as many again and one for each memory, to name what it is.
SanityCheck check_sanity(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                         const RunOptions& options, const Tolerance& tolerance,
                         const Capture& production, bool right, int runs);

}  // namespace attn_diag
