#include "harness/schedule_trials.h"

#include "attn_diag/harness/error.h"
#include "harness/repetition.h"

namespace attn_diag {

ScheduleTrials::ScheduleTrials(const Kernel& kernel, const Problem& problem,
                               const InputData& inputs, const RunOptions& options,
                               const Tolerance& tolerance, const Capture& production, bool right)
    : x_kernel(kernel),
      x_problem(problem),
      x_inputs(inputs),
      x_options(options),
      x_tolerance(tolerance),
      x_production(production),
      x_right(right),
      x_every_run_right(right) {
  x_options.taps = false;
  x_options.isolate = false;
  x_options.replace = 0;
}

ScheduleTrial ScheduleTrials::run(const std::string& schedule, const MemoryFill& fill) {
  ScheduleTrial trial;
  trial.schedule = schedule;
  x_options.schedule = schedule;
  x_options.fill = fill;
  ++x_runs;
  try {
    const Capture capture = run_kernel(x_kernel, x_problem, x_inputs, x_options);
    trial.completed = true;
    // Filled outputs do not tell what was not written, which is found elsewhere.
    trial.moved =
        moved_outputs(x_production, capture, fill[GivenMemory::kOutput] == MemoryFill::kNaN);
    // On a GPU a run is two, which may differ from one another.
    if (!trial.moved.moved()) trial.moved = capture.repetition;
    trial.differing = trial.moved.moved_cells();
    trial.right =
        trial.differing == 0
            ? x_right
            : every_run_agrees(capture,
                               compare_with_reference(capture, x_tolerance, x_options.threads),
                               x_tolerance, x_options.threads);
  } catch (const Error& e) {
    trial.error = e.what();
  }
  x_every_run_right &= trial.right;
  return trial;
}

}  // namespace attn_diag
