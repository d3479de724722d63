#include "attn_diag/harness/diagnose_kernel.h"

#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"

namespace attn_diag {
namespace {

// Other splits and other tiles than those of a run, as far as the kernel takes the problem in them.
std::vector<Geometry> other_cuts(const Kernel& kernel, const Problem& problem,
                                 const RunOptions& run, const Geometry& own) {
  std::vector<Geometry> cuts;
  const auto add = [&](TileShape tile, int num_splits) {
    RunOptions other = run;
    other.tile = tile;
    other.num_splits = num_splits;
    try {
      cuts.push_back(plan_geometry(kernel, problem, other));
    } catch (const Error&) {
      // Not a cut that the kernel has.
    }
  };
  const KernelInfo& info = kernel.info();
  if (info.takes_num_splits)
    for (const int splits : {1, own.num_splits + 1, own.num_splits - 1})
      if (splits > 0 && splits != own.num_splits) add(own.tile, splits);
  for (std::int32_t i = 0; i < info.num_tiles; ++i)
    add(info.tiles[i], info.takes_num_splits ? own.num_splits : 0);
  return cuts;
}

}  // namespace

KernelDiagnosis diagnose_kernel(const Kernel& kernel, const Problem& problem,
                                const InputData& inputs, const TraceOptions& trace_options,
                                const DiagnoseOptions& options) {
  KernelDiagnosis out;
  TraceOptions tracing = trace_options;
  tracing.isolate = false;
  tracing.closure = false;
  out.trace = trace(kernel, problem, inputs, tracing);
  out.capture = out.trace.capture;
  const bool converged_only = out.trace.schedules == ScheduleFinding::kRightIfConverged;
  if (out.trace.sanity.moved() || converged_only ||
      out.trace.schedules == ScheduleFinding::kOrderDependent) {
    out.diagnosis.verdict = DiagnosisVerdict::kNotAFormula;
    if (out.trace.sanity.moved()) out.diagnosis.notes.push_back(out.trace.sanity.detail);
    if (!out.trace.schedules_detail.empty() &&
        out.trace.schedules_detail != out.trace.sanity.detail)
      out.diagnosis.notes.push_back(out.trace.schedules_detail);
    return out;
  }
  const bool taps_hide =
      out.trace.observer_checked && !out.trace.observer_identical && !out.trace.production.agrees();
  if (taps_hide) {
    RunOptions run = trace_options.run;
    run.isolate = false;
    run.replace = 0;
    run.taps = false;
    out.capture = run_kernel(kernel, problem, inputs, run);
  }
  DiagnoseOptions diagnosing = options;
  diagnosing.other_cuts = other_cuts(kernel, problem, trace_options.run, out.capture.geometry);
  out.diagnosis = diagnose(out.capture, diagnosing);
  if (taps_hide)
    out.diagnosis.notes.emplace_back(
        "The production kernel was diagnosed, by o and lse alone: the taps change its result.");
  return out;
}

}  // namespace attn_diag
