#include "harness/trace/schedule_trials.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

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

ScheduleTrials::ScheduleTrials(Experiment experiment, const Capture& production, bool right)
    : x_experiment(std::move(experiment)),
      x_production(production),
      x_async_copies(x_experiment.run.async_copies),
      x_right(right) {
  x_experiment.run.taps = false;
  x_experiment.run.isolate = false;
  x_experiment.run.replace = 0;
}

ScheduleTrial ScheduleTrials::run(const std::string& schedule, const MemoryFill& fill,
                                  Copies copies) {
  ScheduleTrial trial;
  trial.schedule = schedule;
  const Tolerance& tolerance = x_experiment.tolerance;
  const int threads = x_experiment.run.threads;
  x_experiment.run.schedule = schedule;
  x_experiment.run.fill = fill;
  x_experiment.run.async_copies = copies == Copies::kAsGiven ? x_async_copies
                                  : x_async_copies == "late" ? "early"
                                                             : "late";
  ++x_runs;
  try {
    Capture capture = run_kernel(x_experiment);
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
            : every_run_agrees(capture, compare_with_reference(capture, tolerance, threads),
                               tolerance, threads);
    if (fill[GivenMemory::kOutput] != MemoryFill::kNaN) hide_unwritten(x_production, capture);
    trial.near = trial.differing == 0 || (!capture.repetition.unsound() &&
                                          near_each_other(x_production, capture, tolerance));
  } catch (const Error& e) {
    trial.error = e.what();
  }
  x_within_bounds &= trial.near && trial.right == x_right;
  return trial;
}

}  // namespace attn_diag
