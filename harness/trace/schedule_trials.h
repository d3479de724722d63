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
  // No cell is further from the first run's than rounding can take two runs.
  bool near = false;
  std::string error;     // where it did not complete
  Repetition moved{};    // the cells that differ
  std::size_t bits = 0;  // a hash of those of o and lse

  bool same() const { return completed && differing == 0; }
};

class ScheduleTrials {
 public:
  // `production` is the production kernel's run, `right` says whether it agrees with the reference. It must outlive
  // this.
  ScheduleTrials(Experiment experiment, const Capture& production, bool right);

  // When asynchronous copies land: as in the experiment, or at the other end of the time that they have.
  enum class Copies { kAsGiven, kOtherwise };
  ScheduleTrial run(const std::string& schedule, const MemoryFill& fill = {},
                    Copies copies = Copies::kAsGiven);
  int runs() const { return x_runs; }
  // All ran to the end, are as near to the first as rounding lets two runs be, and are right or wrong like it.
  bool within_bounds() const { return x_within_bounds; }
  const Kernel& kernel() const { return x_experiment.kernel; }

 private:
  Experiment x_experiment;
  const Capture& x_production;
  std::string x_async_copies;
  bool x_right, x_within_bounds = true;
  int x_runs = 0;
};

}  // namespace attn_diag
