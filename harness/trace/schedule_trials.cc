#include "harness/trace/schedule_trials.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "attn_diag/harness/error.h"
#include "harness/run/repetition.h"
#include "harness/run/run_memory.h"

namespace attn_diag {
namespace {

std::size_t bits_of(const Capture& capture) {
  std::size_t hash = 0;
  for (const Tensor t : outputs_of(capture.arithmetic.part))
    if (capture.has(t))
      hash = hash * 31 +
             std::hash<std::string_view>{}(
                 {reinterpret_cast<const char*>(capture[t].bytes.data()), capture[t].bytes.size()});
  return hash;
}

// Cells that the first run did not write hold in the other what that had been filled with.
void hide_unwritten(const Capture& first, Capture& other) {
  for (const Tensor t : outputs_of(first.arithmetic.part)) {
    if (!first.has(t)) continue;
    const TensorData& from = first[t];
    TensorData& to = *other.tensors[static_cast<std::size_t>(t)];
    const std::size_t size = size_of(from.dtype);
    for (std::size_t at = 0; at < from.bytes.size(); at += size)
      if (is_poison(from.bytes.data() + at, from.dtype))
        std::copy_n(from.bytes.data() + at, size, to.bytes.data() + at);
  }
}

}  // namespace

ScheduleTrials::ScheduleTrials(const Kernel& kernel, const Problem& problem,
                               const InputData& inputs, const RunOptions& options,
                               const Tolerance& tolerance, const Capture& production, bool right)
    : x_kernel(kernel),
      x_problem(problem),
      x_inputs(inputs),
      x_options(options),
      x_tolerance(tolerance),
      x_production(production),
      x_right(right) {
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
    Capture capture = run_kernel(x_kernel, x_problem, x_inputs, x_options);
    trial.completed = true;
    // Filled outputs do not tell what was not written, which is found elsewhere.
    trial.moved =
        moved_outputs(x_production, capture, fill[GivenMemory::kOutput] == MemoryFill::kNaN);
    // On a GPU a run is two, which may differ from one another.
    if (!trial.moved.moved()) trial.moved = capture.repetition;
    trial.differing = trial.moved.moved_cells();
    trial.bits = bits_of(capture);
    trial.right =
        trial.differing == 0
            ? x_right
            : every_run_agrees(capture,
                               compare_with_reference(capture, x_tolerance, x_options.threads),
                               x_tolerance, x_options.threads);
    if (fill[GivenMemory::kOutput] != MemoryFill::kNaN) hide_unwritten(x_production, capture);
    trial.near = trial.differing == 0 || (!capture.repetition.unsound() &&
                                          near_each_other(x_production, capture, x_tolerance));
  } catch (const Error& e) {
    trial.error = e.what();
  }
  x_within_bounds &= trial.near && trial.right == x_right;
  return trial;
}

}  // namespace attn_diag
