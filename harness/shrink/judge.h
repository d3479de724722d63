// A judge of cases that runs the kernel in this process: for what cannot be run in a fork, or is no library.
#pragma once

#include "attn_diag/harness/experiment.h"
#include "harness/shrink/trials.h"

namespace attn_diag::shrink {

// Runs a case once, without taps, and holds it against the reference. The first case is run `runs` times; if its
// results differ, so are the others. The experiment's problem and inputs are not used. Exceptions that are no Error
// pass through.
Judge judge_by_running(Experiment experiment, int runs);

}  // namespace attn_diag::shrink
