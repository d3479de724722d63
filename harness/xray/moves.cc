#include "harness/xray/moves.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "attn_diag/harness/error.h"
#include "harness/run/repetition.h"

namespace attn_diag::xraying {

Experiment of_production(Experiment experiment) {
  experiment.run.gate = Gate::kFull;
  experiment.run.taps = false;
  experiment.run.region = whole(experiment.problem);
  return experiment;
}

Moves find_moves(const Experiment& given, const Capture* first) {
  Experiment experiment = of_production(given);
  const Tolerance& tolerance = experiment.tolerance;
  RunOptions& run = experiment.run;
  std::optional<Capture> own;
  if (first == nullptr) {
    own = run_kernel(experiment);
    first = &*own;
  }
  Moves out;
  out.repetition = first->repetition;
  out.moved = out.repetition.moved();
  if (out.moved) {
    out.beyond_rounding = !near_each_other(*first, *first->repetition.second, tolerance);
    out.text = "two runs of the same case differ: " + cell_text(*out.repetition.first);
    return out;
  }
  const bool on_host = first->provenance.backend == "host";
  if (!on_host && first->provenance.backend != "caller") return out;
  if (on_host) run.schedule = run.schedule == "reverse" ? "forward" : "reverse";
  try {
    const Capture second = run_kernel(experiment);
    const Repetition moved = moved_outputs(*first, second);
    if (!moved.moved()) return out;
    out.repetition = moved;
    out.repetition.runs = 2;
    out.moved = true;
    out.beyond_rounding = !near_each_other(*first, second, tolerance);
    out.text =
        on_host
            ? fmt::format(
                  "{} cells of the outputs change with the order in which threads run ({}, {}): {}",
                  moved.moved_cells(), given.run.schedule, run.schedule, cell_text(*moved.first))
            : "two runs of the same case differ: " + cell_text(*moved.first);
  } catch (const Error& e) {
    if (!on_host) throw;
    out.moved = out.beyond_rounding = true;
    out.text = fmt::format("with threads in another order ({}) it does not run to its end: {}",
                           run.schedule, e.what());
  }
  return out;
}

}  // namespace attn_diag::xraying
