// The bug hunt: first divergent stage, exact coordinates, isolation, closure, observer check.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/first_divergence.h"
#include "attn_diag/harness/lines.h"
#include "attn_diag/harness/pattern.h"
#include "attn_diag/harness/run.h"
#include "attn_diag/harness/sanity.h"

namespace attn_diag {

enum class Verdict : std::uint8_t { kAgrees, kDiverges, kExempt, kNotReached, kNotRun, kNotJudged };

struct StageReport {
  Stage stage = Stage::kQk;
  Verdict verdict = Verdict::kNotRun;
  Verdict isolated = Verdict::kNotRun;  // fed the reference's inputs
  std::string exempt_reason;
  Comparison prefix, isolation;
};

// How a divergence depends on the order in which threads run.
enum class ScheduleFinding : std::uint8_t {
  kNotChecked,
  kSame,              // bit-identical on every schedule tried, or, on a GPU, in every run
  kOrderDependent,    // results differ between schedules or runs; see Sanity::within_bounds
  kRightIfConverged,  // wrong on free schedules, right in lockstep: a missing __syncwarp or the
                      // like
};

struct TraceResult {
  Sanity sanity;                    // of the production kernel, before anything else
  Capture capture;                  // prefix run through reduce, taps on
  std::vector<StageReport> stages;  // four
  std::optional<FirstDivergence> first;
  std::vector<PatternStatement> pattern;  // of the tensor that diverges first
  // Injecting the correct output of the first bad stage and running on: does something later
  // diverge too?
  std::optional<Comparison> closure;
  bool second_fault = false;
  // The production kernel (gate full, no taps) against the tapped one: o and lse bit for bit.
  bool observer_checked = false, observer_identical = false;
  std::int64_t observer_differing = 0;
  Comparison production;                // o, lse of the production kernel against the reference
  std::optional<LineDivergence> lines;  // of what diverges, where that was asked for
  // Of what agrees: the errors that attn-diag check finds all the same, as reads out of bounds whose values nobody uses.
  // `lines` then says where. Without a value: that was not looked at.
  std::optional<std::int64_t> memory_errors;
  ScheduleFinding schedules = ScheduleFinding::kNotChecked;
  std::string schedules_detail;
  std::vector<std::string> notes;
  // For a result that moves: how the kernel was run, so that it holds still and is wrong all the same, when the stages
  // were looked at. Empty: as asked for.
  std::string calmly;

  // Right where the result holds still, as a GPU most likely has it; wrong otherwise.
  bool latent() const { return sanity.latent() && calmly.empty(); }

  // kAgrees: every stage that can be judged agrees, fed by the stages before it and (where that was looked at) by the
  // reference; so does the production kernel; every cell was written once, q, k and v were not, and the order of
  // threads makes no difference beyond rounding. A tapped kernel that differs from the production kernel within
  // rounding is worth saying, but is no divergence. kNotJudged: none of that is wrong, but o was not judged, or
  // nothing was.
  Answer answer() const;
  bool agrees() const { return answer() == Answer::kAgrees; }
  // Cells of the stages: the judged ones, and all.
  std::int64_t judged() const, cells() const;
};

enum class LinesWanted : std::uint8_t { kNever, kWhereWrong, kAlways };

struct TraceOptions {
  bool closure = true, isolate = true, observer = true, schedules = true;
  LinesWanted lines = LinesWanted::kWhereWrong;  // of kernels on the host
  // Runs of gate 0 (with `schedules`), after the first: -1 is 3, on a GPU 4 of two each; 0 is none.
  int sanity_runs = -1;
  // Called as step `step` of `steps` (from 1) begins, so that a long trace can say where it is.
  std::function<void(int step, int steps, const std::string& what)> on_step;
};

// The run ended with a KernelFault. `lines`: those that may be why; empty: lines were not asked for.
class RefusedTrace : public KernelFault {
 public:
  RefusedTrace(const KernelFault& fault, LineDivergence found)
      : KernelFault(fault), lines(std::move(found)) {}
  LineDivergence lines;
};

// Throws RefusedTrace, and Error for what could not be run at all.
TraceResult trace(const Experiment& experiment, const TraceOptions& options);

}  // namespace attn_diag
