#include "attn_diag/harness/diagnose_kernel.h"

#include <utility>

namespace attn_diag {

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
  out.diagnosis = diagnose(out.capture, options);
  if (taps_hide)
    out.diagnosis.notes.emplace_back(
        "The production kernel was diagnosed, by o and lse alone: the taps change its result.");
  return out;
}

}  // namespace attn_diag
