#include "harness/schedule_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <optional>
#include <vector>

#include "attn_diag/harness/error.h"

namespace attn_diag {
namespace {

// Lockstep switches threads at every memory access: run it unasked only where that takes well under
// a second.
constexpr double kLockstepMultiplyAdds = 1 << 22;

struct Trial {
  std::string schedule;
  bool completed = false;
  std::int64_t differing = 0;  // cells of o and lse, from the run it is compared with
  bool right = false;
  std::string error;
};

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

  Trial run(const std::string& schedule, bool right_if_same) {
    Trial trial;
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

bool has_lockstep_build(const Kernel& kernel) {
  try {
    Kernel::load(kernel.spec(), kernel.build().backend, true);
    return true;
  } catch (const Error&) {
    return false;
  }
}

double multiply_adds(const Problem& p) {
  return static_cast<double>(p.batch) * p.heads * p.seqlen_q * p.seqlen_k *
         (static_cast<double>(p.head_dim) + p.head_dim_v);
}

std::string sentence(const Trial& trial) {
  if (!trial.completed)
    return fmt::format("Under {} it did not complete: {}", trial.schedule, trial.error);
  if (trial.differing == 0) return fmt::format("Under {} it gives the same bits.", trial.schedule);
  return fmt::format("Under {} {} cells of o and lse differ, and it is {}.", trial.schedule,
                     trial.differing, trial.right ? "right" : "wrong");
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
  Trials trials(kernel, problem, inputs, options, tolerance, production);
  const std::string opposite = options.schedule == "reverse" ? "forward" : "reverse";
  const std::string shuffled = options.schedule == "seed:1" ? "seed:2" : "seed:1";
  const Trial again = trials.run(options.schedule, right);
  std::vector<Trial> runs = {again, trials.run(opposite, right), trials.run(shuffled, right)};

  bool differs = false, wrong = !right;
  for (const Trial& trial : runs) {
    differs |= !trial.completed || trial.differing > 0;
    wrong |= !trial.right;
  }
  bool right_in_lockstep = false;
  const bool small = multiply_adds(problem) <= kLockstepMultiplyAdds;
  if ((differs || wrong || small) && options.schedule != "lockstep" && has_lockstep_build(kernel)) {
    runs.push_back(trials.run("lockstep", right));
    right_in_lockstep = runs.back().right;
    differs |= !runs.back().completed || runs.back().differing > 0;
  }

  ScheduleCheck check;
  for (const Trial& trial : runs) {
    if (check.wrong_under.empty() && trial.completed && !trial.right && trial.differing > 0 &&
        trial.schedule != options.schedule)
      check.wrong_under = trial.schedule;
  }
  if (!differs) {
    check.finding = ScheduleFinding::kSame;
    std::vector<std::string> names;
    for (std::size_t i = 1; i < runs.size(); ++i) names.push_back(runs[i].schedule);
    check.detail = fmt::format("Bit-identical when run twice under {} and under {}.",
                               options.schedule, fmt::join(names, ", "));
    return check;
  }
  check.finding = wrong && right_in_lockstep ? ScheduleFinding::kRightIfConverged
                                             : ScheduleFinding::kOrderDependent;
  check.detail = fmt::format("Under {} the production kernel is {}.", options.schedule,
                             right ? "right" : "wrong");
  if (!again.completed || again.differing > 0)
    check.detail += " Two runs under the same schedule differ.";
  for (std::size_t i = 1; i < runs.size(); ++i) {
    check.detail += ' ';
    check.detail += sentence(runs[i]);
  }
  return check;
}

}  // namespace attn_diag
