#include "harness/schedule_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "attn_diag/harness/error.h"

namespace attn_diag {
namespace {

// Lockstep switches threads at every memory access: run it unasked only where that takes well under
// a second.
constexpr double kLockstepMultiplyAdds = 1 << 22;

class Trials {
 public:
  Trials(const Kernel& kernel, const Problem& problem, const InputData& inputs,
         const RunOptions& options, const Tolerance& tolerance, const Capture& production)
      : x_kernel(kernel),
        x_problem(problem),
        x_inputs(inputs),
        x_options(options),
        x_tolerance(tolerance),
        x_production(production) {
    x_options.taps = false;
    x_options.isolate = false;
    x_options.replace = 0;
  }

  ScheduleTrial run(const std::string& schedule, bool right_if_same) {
    ScheduleTrial trial;
    trial.schedule = schedule;
    x_options.schedule = schedule;
    try {
      const Capture capture = run_kernel(x_kernel, x_problem, x_inputs, x_options);
      trial.completed = true;
      trial.differing = differing_output_cells(capture, x_production);
      trial.right = trial.differing == 0
                        ? right_if_same
                        : compare_with_reference(capture, x_tolerance, x_options.threads).agrees();
    } catch (const Error& e) {
      trial.error = e.what();
    }
    return trial;
  }

 private:
  const Kernel& x_kernel;
  const Problem& x_problem;
  const InputData& x_inputs;
  RunOptions x_options;
  const Tolerance& x_tolerance;
  const Capture& x_production;
};

// Why the kernel has no build that can run in lockstep; empty if it has one.
std::string no_lockstep_build(const Kernel& kernel) {
  try {
    Kernel::load(kernel.spec(), kernel.build().backend, true);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

double multiply_adds(const Problem& p) {
  return static_cast<double>(p.batch) * p.heads * p.seqlen_q * p.seqlen_k *
         (static_cast<double>(p.head_dim) + p.head_dim_v);
}

std::string sentence(const ScheduleTrial& trial) {
  if (!trial.completed)
    return fmt::format("Under {} it did not complete: {}", trial.schedule, trial.error);
  if (trial.differing == 0) return fmt::format("Under {} it gives the same bits.", trial.schedule);
  return fmt::format("Under {} {} cells of o and lse differ, and it is {}.", trial.schedule,
                     trial.differing, trial.right ? "right" : "wrong");
}

ScheduleCheck check_runs(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                         RunOptions options, const Capture& production) {
  constexpr int kMore = 4;
  options.taps = false;
  options.isolate = false;
  options.replace = 0;
  int runs = production.repetition.runs;
  std::int64_t differing = production.repetition.moved_cells();
  for (int i = 0; i < kMore; ++i) {
    const Capture capture = run_kernel(kernel, problem, inputs, options);
    runs += capture.repetition.runs;
    differing = std::max(
        {differing, differing_output_cells(capture, production), capture.repetition.moved_cells()});
  }
  ScheduleCheck check;
  check.finding = differing == 0 ? ScheduleFinding::kSame : ScheduleFinding::kOrderDependent;
  check.detail =
      differing == 0
          ? fmt::format("Bit-identical in {} runs on {}.", runs, production.provenance.device)
          : fmt::format("In {} runs on {}, up to {} cells of o and lse differ.", runs,
                        production.provenance.device, differing);
  check.detail += " The schedules forward, reverse, seed:N and lockstep are of backend host.";
  return check;
}

}  // namespace

std::int64_t differing_output_cells(const Capture& a, const Capture& b) {
  std::int64_t differing = 0;
  for (const Tensor t : {Tensor::kLse, Tensor::kO}) {
    if (!a.has(t) || !b.has(t)) continue;
    const std::size_t size = size_of(a[t].dtype);
    if (a[t].bytes == b[t].bytes) continue;
    for (std::size_t i = 0; i + size <= a[t].bytes.size(); i += size)
      differing += std::memcmp(a[t].bytes.data() + i, b[t].bytes.data() + i, size) != 0;
  }
  return differing;
}

ScheduleCheck check_schedules(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                              const RunOptions& options, const Tolerance& tolerance,
                              const Capture& production, bool right) {
  if (std::string_view(kernel.build().backend) == "cuda")
    return check_runs(kernel, problem, inputs, options, production);
  Trials trials(kernel, problem, inputs, options, tolerance, production);
  const std::string opposite = options.schedule == "reverse" ? "forward" : "reverse";
  const std::string shuffled = options.schedule == "seed:1" ? "seed:2" : "seed:1";
  std::vector<ScheduleTrial> runs = {trials.run(options.schedule, right),
                                     trials.run(opposite, right), trials.run(shuffled, right)};
  const bool suspicious =
      !right || std::any_of(runs.begin(), runs.end(), [](const ScheduleTrial& trial) {
        return !trial.completed || trial.differing > 0;
      });
  std::string not_run;
  if (!suspicious && multiply_adds(problem) > kLockstepMultiplyAdds) {
    not_run = "the problem is large and nothing is amiss.";
  } else if (options.schedule != "lockstep") {
    not_run = no_lockstep_build(kernel);
    if (not_run.empty()) runs.push_back(trials.run("lockstep", right));
  }
  ScheduleCheck check = classify_schedules(options.schedule, right, runs);
  if (!not_run.empty()) check.detail += " Lockstep was not run: " + not_run;
  return check;
}

ScheduleCheck classify_schedules(const std::string& schedule, bool right,
                                 const std::vector<ScheduleTrial>& trials) {
  ScheduleCheck check;
  bool differs = false, wrong = !right, right_in_lockstep = false;
  for (const ScheduleTrial& trial : trials) {
    const bool differs_here = !trial.completed || trial.differing > 0;
    differs |= differs_here;
    if (trial.schedule == "lockstep") {
      right_in_lockstep |= trial.right;
    } else {
      wrong |= !trial.right;
    }
    if (check.wrong_under.empty() && trial.completed && differs_here && !trial.right &&
        trial.schedule != schedule)
      check.wrong_under = trial.schedule;
  }
  const bool unsteady = !trials.front().completed || trials.front().differing > 0;
  if (!differs) {
    check.finding = ScheduleFinding::kSame;
    std::vector<std::string> names;
    for (std::size_t i = 1; i < trials.size(); ++i) names.push_back(trials[i].schedule);
    check.detail = fmt::format("Bit-identical when run twice under {} and under {}.", schedule,
                               fmt::join(names, ", "));
    return check;
  }
  check.finding = wrong && right_in_lockstep && !unsteady ? ScheduleFinding::kRightIfConverged
                                                          : ScheduleFinding::kOrderDependent;
  check.detail =
      fmt::format("Under {} the production kernel is {}.", schedule, right ? "right" : "wrong");
  if (unsteady) check.detail += " Two runs under the same schedule differ.";
  for (std::size_t i = 1; i < trials.size(); ++i) {
    check.detail += ' ';
    check.detail += sentence(trials[i]);
  }
  return check;
}

}  // namespace attn_diag
