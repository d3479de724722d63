// Runs of the production kernel that are compared with its first.
#pragma once

#include <cstdint>
#include <string>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/run.h"

namespace attn_diag {

// One more run of the production kernel.
struct ScheduleTrial {
  std::string schedule;
  bool completed = false;
  std::int64_t differing = 0;  // cells of o and lse, from the first run
  bool right = false;          // agrees with the reference
  std::string error;           // where it did not complete
  Repetition moved{};          // the cells that differ

  bool same() const { return completed && differing == 0; }
};

class ScheduleTrials {
 public:
  // `production` is the production kernel's run under these options, `right` says whether it agrees with
  // the reference. All must outlive this.
  ScheduleTrials(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                 const RunOptions& options, const Tolerance& tolerance, const Capture& production,
                 bool right);

  ScheduleTrial run(const std::string& schedule, const MemoryFill& fill = {});
  int runs() const { return x_runs; }
  // Each of them, and the first, ran to its end and agrees with the reference.
  bool every_run_right() const { return x_every_run_right; }
  const Kernel& kernel() const { return x_kernel; }

 private:
  const Kernel& x_kernel;
  const Problem& x_problem;
  const InputData& x_inputs;
  RunOptions x_options;
  const Tolerance& x_tolerance;
  const Capture& x_production;
  bool x_right, x_every_run_right;
  int x_runs = 0;
};

}  // namespace attn_diag
