#include "attn_diag/harness/diagnose_kernel.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "harness/diagnose/line_agreement.h"
#include "harness/diagnose/outcome.h"

namespace attn_diag {
namespace {

// Other splits and other tiles than those of a run, as far as the kernel takes the problem in them.
std::vector<Geometry> other_cuts(const Experiment& experiment, const Geometry& own) {
  std::vector<Geometry> cuts;
  const auto add = [&](TileShape tile, int num_splits) {
    RunOptions other = experiment.run;
    other.tile = tile;
    other.num_splits = num_splits;
    try {
      cuts.push_back(plan_geometry(experiment.kernel, experiment.problem, other));
    } catch (const Error&) {
      // Not a cut that the kernel has.
    }
  };
  const KernelInfo& info = experiment.kernel.info();
  if (info.takes_num_splits)
    for (const int splits : {1, own.num_splits + 1, own.num_splits - 1})
      if (splits > 0 && splits != own.num_splits) add(own.tile, splits);
  for (std::int32_t i = 0; i < info.num_tiles; ++i)
    add(info.tiles[i], info.takes_num_splits ? own.num_splits : 0);
  return cuts;
}

// For a result that moves and is wrong where it holds still as well: whether another bug must be the cause of that.
// A race may go on in lockstep, where it reads what nobody wrote; what a read of such bytes makes of zeros may look
// like a formula, unless more cells are wrong than such reads reach.
bool is_another_bug(const TraceResult& trace) {
  const Sanity& sanity = trace.sanity;
  bool filled = false;  // other bytes make another result of it
  for (const Sanity::Culprit& c : sanity.culprits)
    filled |= sanity.calm->fill[c.memory] != MemoryFill::kNaN;
  if (!filled) return true;
  std::int64_t wrong = 0, reached = 0;
  for (const TensorComparison& t : trace.production.tensors) wrong += t.mismatched;
  for (const Sanity::Culprit& c : sanity.culprits) reached += c.differing;
  return sanity.finding == SanityFinding::kReadsUnwritten && wrong > reached;
}

}  // namespace

KernelDiagnosis diagnose_kernel(const Experiment& experiment, const TraceOptions& given,
                                const DiagnoseOptions& options) {
  TraceOptions tracing = given;
  tracing.isolate = false;
  tracing.closure = false;
  return diagnose_traced(experiment, trace(experiment, tracing), options);
}

KernelDiagnosis diagnose_traced(const Experiment& experiment, TraceResult traced,
                                const DiagnoseOptions& options) {
  KernelDiagnosis out;
  out.trace = std::move(traced);
  out.capture = out.trace.capture;
  const Sanity& sanity = out.trace.sanity;
  if (sanity.unsound()) {
    out.diagnosis.verdict = DiagnosisVerdict::kNotAFormula;
    out.diagnosis.notes.push_back(sanity.detail);
    if (!out.trace.schedules_detail.empty() && out.trace.schedules_detail != sanity.detail)
      out.diagnosis.notes.push_back(out.trace.schedules_detail);
    if (out.trace.calmly.empty() || !is_another_bug(out.trace)) {
      out.diagnosis.residual = matching::where_it_is_wrong(out.capture, options);
      return out;
    }
  }
  RunOptions as_traced = experiment.run;
  if (sanity.unsound()) {
    as_traced.schedule = sanity.calm->schedule;
    as_traced.fill = sanity.calm->fill;
  }
  const bool taps_hide =
      out.trace.observer_checked && !out.trace.observer_identical && !out.trace.production.agrees();
  if (taps_hide) {
    RunOptions run = as_traced;
    run.isolate = false;
    run.replace = 0;
    run.taps = false;
    out.capture = run_kernel(experiment.with(run));
  }
  DiagnoseOptions diagnosing = options;
  diagnosing.other_cuts = other_cuts(experiment.with(as_traced), out.capture.geometry);
  Diagnosis found = diagnose(out.capture, diagnosing);
  if (sanity.unsound()) {
    // Only a name that accounts for everything is another bug's.
    if (found.verdict != DiagnosisVerdict::kNamed && found.verdict != DiagnosisVerdict::kClass) {
      out.diagnosis.notes.push_back(fmt::format(
          "Where the result holds still, {}, none of the known bugs accounts for what is wrong.",
          out.trace.calmly));
      out.diagnosis.residual = std::move(found.residual);
      return out;
    }
    found.notes.insert(found.notes.begin(), out.diagnosis.notes.begin(), out.diagnosis.notes.end());
  }
  out.diagnosis = std::move(found);
  if (taps_hide)
    out.diagnosis.notes.emplace_back(
        "The production kernel was diagnosed, by o and lse alone: the taps change its result.");
  if (out.trace.lines) matching::confirm_by_line(out.diagnosis, *out.trace.lines);
  return out;
}

}  // namespace attn_diag
