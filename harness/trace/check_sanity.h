// Gate 0: runs the production kernel again, under other schedules and with other bytes in all memory it has
// not written.
#pragma once

#include <optional>

#include "attn_diag/harness/sanity.h"
#include "harness/trace/schedule_check.h"
#include "harness/trace/schedule_trials.h"

namespace attn_diag {

struct SanityCheck {
  Sanity sanity;
  ScheduleCheck schedules;
};

// Makes `runs` runs (on backend cuda each is two), and lockstep as schedule_check.h has it. Where something moves, it
// makes that many again and one for each memory, to name the cause.
SanityCheck check_sanity(const Experiment& experiment, const Capture& production, bool right,
                         int runs);

// Gate 0 of a run of backend host, whose capture has o and lse. Unless `runs` are asked for (0 or less: none
// are), it is the cheap part: two runs that change order and bytes together, and only where one of them has
// other bits everything.
struct RunCheck {
  SanityCheck check;
  // The comparison of the production kernel, where it was run as the case has it: taps may disturb.
  std::optional<Comparison> production;
};
// Whether a case is small enough for that unasked.
bool worth_running_again(const Problem& problem);
RunCheck check_run(const Experiment& experiment, const Capture& capture, bool right, int runs);

}  // namespace attn_diag
