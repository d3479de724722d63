// Checking a kernel for races, uninitialised reads, bounds and the like on the host executor.
#pragma once

#include "attn_diag/harness/host/check.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/run.h"

namespace attn_diag {

struct CheckResult {
  host::CheckReport report;
  Geometry geometry;
  std::vector<std::string> notes;      // legal but worth knowing
  std::vector<std::string> schedules;  // under which the kernel was run
  Provenance provenance;               // of the instrumented library
};

// Whether threads read or store before others have done so: waiting may be all that is missing.
bool is_of_order(host::CheckKind kind);

// Runs the production kernel (no taps), watched, in the instrumented build of its library: once, or, under schedule
// "forward" and with atomics in the kernel, under "reverse" too. From experiment.run it takes the schedule, the tile,
// the splits, the order of products and the step limit.
// Throws Error for what the kernel does not support, a library without an instrumented build, and a
// kernel that was not built for the host executor.
CheckResult check_kernel(const Experiment& experiment, const host::CheckOptions& check);

}  // namespace attn_diag
