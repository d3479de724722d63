#include "harness/trace/check_sanity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/run/repetition.h"

namespace attn_diag {
namespace {

// Nothing, and large finite numbers of every type; the first run had NaN.
constexpr std::array<std::uint8_t, 2> kBytes = {0x00, 0x77};

std::string bytes_text(std::uint8_t byte) { return byte == 0 ? "zeros" : "large finite numbers"; }

using Copies = ScheduleTrials::Copies;
// In the second of schedules_to_try(), in which the given order is turned round, they land at the other end of their
// time: in an order in which threads take turns the others have often read before they land.
Copies copies_of(std::size_t schedule) {
  return schedule == 1 ? Copies::kOtherwise : Copies::kAsGiven;
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What a GPU most likely has there: the driver clears what it gives out first; a block's shared memory, and what
// lies around a buffer, is somebody else's.
std::uint8_t found_on_gpu(GivenMemory memory) {
  const bool cleared = memory == GivenMemory::kWorkspace || memory == GivenMemory::kOutput ||
                       memory == GivenMemory::kAllocated;
  return cleared ? kBytes[0] : kBytes[1];
}

void call_steady(Sanity& sanity, int runs, bool on_gpu) {
  sanity.finding = SanityFinding::kSteady;
  sanity.runs = runs;
  sanity.detail = fmt::format(
      "The outputs have the same bits in {} more runs, whatever was in the workspace, in them, "
      "around all buffers{} before.",
      runs, on_gpu ? "" : " and in shared memory");
}

class Check {
 public:
  Check(ScheduleTrials trials, const Problem& problem, const std::string& schedule, bool right,
        const Capture& production)
      : x_trials(std::move(trials)),
        x_problem(problem),
        x_schedule(schedule),
        x_right(right),
        x_production(production),
        x_on_gpu(std::string_view(x_trials.kernel().build().backend) == "cuda") {}

  SanityCheck run(int runs) {
    // A result that moves for any reason shows it in these runs; only then is the reason looked for.
    const std::vector<std::string> schedules =
        x_on_gpu ? std::vector<std::string>(static_cast<std::size_t>(runs), x_schedule)
                 : schedules_to_try(x_schedule, runs);
    std::vector<ScheduleTrial> trials;
    for (std::size_t i = 0; i < schedules.size(); ++i)
      trials.push_back(x_trials.run(schedules[i],
                                    i < kBytes.size() ? MemoryFill::all(kBytes[i]) : MemoryFill{},
                                    x_on_gpu ? Copies::kAsGiven : copies_of(i)));
    SanityCheck out;
    const bool same =
        std::all_of(trials.begin(), trials.end(), [](const ScheduleTrial& t) { return t.same(); });
    if (!same) {
      trials.clear();
      for (const std::string& schedule : schedules) trials.push_back(x_trials.run(schedule));
      // A result that moves only now and then may have held still this once.
      if (trials.front().same()) trials.front() = x_trials.run(x_schedule);
    }
    out.schedules = x_on_gpu ? classify_repeats(trials, x_production)
                             : add_lockstep(x_trials, x_schedule, x_right, trials, x_problem);
    // Where two runs of one and the same case differ, a third with other bytes shows nothing.
    bool unsteady = !trials.front().same() || (x_on_gpu && !all_same(trials));
    if (!same && !unsteady) unsteady = !blame(out.sanity);
    if (!same && !unsteady && !x_on_gpu && out.sanity.culprits.empty() &&
        out.schedules.finding == ScheduleFinding::kSame)
      x_by_copies = !x_trials.run(x_schedule, {}, Copies::kOtherwise).same() ||
                    !x_trials
                         .run(schedules[std::min<std::size_t>(1, schedules.size() - 1)], {},
                              Copies::kOtherwise)
                         .same();
    conclude(out, same, unsteady);
    if (out.sanity.unsound()) find_calm(out);
    out.sanity.runs = x_trials.runs();
    return out;
  }

 private:
  static bool all_same(const std::vector<ScheduleTrial>& trials) {
    return std::all_of(trials.begin(), trials.end(),
                       [](const ScheduleTrial& t) { return t.same(); });
  }

  // False: there is nothing to blame, as runs on the same bytes differ.
  bool blame(Sanity& sanity) {
    for (const std::uint8_t byte : kBytes) {
      for (std::size_t m = 0; m < kNumGivenMemories; ++m) {
        const auto memory = static_cast<GivenMemory>(m);
        const bool known =
            std::any_of(sanity.culprits.begin(), sanity.culprits.end(),
                        [&](const Sanity::Culprit& c) { return c.memory == memory; });
        const bool of_host = memory == GivenMemory::kShared || memory == GivenMemory::kAllocated;
        if (known || (x_on_gpu && of_host)) continue;
        const MemoryFill fill = MemoryFill::only(memory, byte);
        const ScheduleTrial trial = x_trials.run(x_schedule, fill);
        if (trial.same()) continue;
        // Not of a result that moves without that, too.
        const ScheduleTrial again = x_trials.run(x_schedule, fill);
        if (again.completed != trial.completed || again.bits != trial.bits ||
            !x_trials.run(x_schedule).same()) {
          sanity.culprits.clear();
          return false;
        }
        sanity.culprits.push_back({memory, byte, trial.differing, trial.moved.first, trial.error});
      }
    }
    return true;
  }

  void conclude(SanityCheck& out, bool same, bool unsteady) const {
    Sanity& sanity = out.sanity;
    const bool by_order = x_by_copies || out.schedules.finding != ScheduleFinding::kSame;
    std::string culprits;
    for (const Sanity::Culprit& c : sanity.culprits) {
      if (!culprits.empty()) culprits += ' ';
      culprits += sentence(c);
    }
    if (!sanity.culprits.empty() && !by_order) {
      sanity.finding = SanityFinding::kReadsUnwritten;
      sanity.detail = culprits;
      return;
    }
    if (same && !by_order) return call_steady(sanity, x_trials.runs(), x_on_gpu);
    sanity.finding = !unsteady && by_order ? SanityFinding::kDependsOnOrder : SanityFinding::kMoves;
    sanity.by_copies = x_by_copies && out.schedules.finding == ScheduleFinding::kSame;
    sanity.within_bounds = x_trials.within_bounds();
    // A thread that reads too early reads what was there before: that the bytes matter then follows from the order.
    sanity.detail =
        unsteady      ? "Two runs of one and the same case differ."
        : x_by_copies ? "The outputs depend on when asynchronous copies land: something reads or "
                        "stores what a copy "
                        "still writes (--async-copies early, late)."
        : by_order
            ? "The outputs depend on the order in which threads run."
            : "The outputs moved once, when order and bytes in unwritten memory were changed "
              "together, and for neither alone.";
    if (culprits.empty()) return;
    sanity.detail += ' ';
    sanity.detail += culprits;
  }

  // What a GPU would most likely make of it, and where the result holds still.
  void find_calm(SanityCheck& out) {
    Sanity& sanity = out.sanity;
    const bool by_order = out.schedules.finding != ScheduleFinding::kSame;
    const bool converged = by_order && out.schedules.lockstep;
    if (by_order ? x_on_gpu : sanity.culprits.empty()) return;
    const bool likely_on_gpu = !by_order || converged;
    const auto judge_gpu = [&] {
      if (likely_on_gpu)
        sanity.on_gpu = converged && depends_on_warps(*sanity.calm) ? OnGpu::kEither
                        : sanity.calm->right                        ? OnGpu::kRight
                                                                    : OnGpu::kWrong;
    };
    const auto make = [&](bool fill, const auto& byte_of) {
      Sanity::Calm calm;
      calm.schedule = converged ? "lockstep" : x_schedule;
      std::vector<std::string> words;
      if (by_order) words.push_back(converged ? "in lockstep" : "under schedule " + calm.schedule);
      for (const Sanity::Culprit& c : sanity.culprits) {
        if (!fill) break;
        const std::uint8_t byte = byte_of(c.memory);
        calm.fill.set(c.memory, byte);
        words.push_back(fmt::format("with {} in {}", bytes_text(byte), name(c.memory)));
      }
      calm.text = fmt::format("{}", fmt::join(words, ", "));
      return calm;
    };
    const auto zeros = [](GivenMemory) { return kBytes[0]; };
    // A thread that reads too early reads what was there before: with the order mended the bytes may no longer matter.
    if (by_order && try_calm(sanity, make(false, zeros))) judge_gpu();
    if (sanity.culprits.empty() || (sanity.calm && sanity.calm->right)) return;
    if (try_calm(sanity, make(true, found_on_gpu))) judge_gpu();
    if (!sanity.calm || !sanity.calm->right) try_calm(sanity, make(true, zeros));
  }

  // Whether two runs so have the same bits.
  bool try_calm(Sanity& sanity, Sanity::Calm calm) {
    const ScheduleTrial once = x_trials.run(calm.schedule, calm.fill);
    if (!once.completed) return false;
    const ScheduleTrial again = x_trials.run(calm.schedule, calm.fill);
    if (!again.completed || again.bits != once.bits) return false;
    calm.right = once.right;
    // What is in memory is said only where it matters.
    if (!sanity.calm || once.bits != x_calm_bits) sanity.calm = std::move(calm);
    x_calm_bits = once.bits;
    return true;
  }

  // Warps of a GPU come in no order: what is right in lockstep only while they come in theirs, or only while they
  // do not, races between warps or blocks.
  bool depends_on_warps(const Sanity::Calm& calm) {
    for (const char* order : {"lockstep:reverse", "lockstep:turns"}) {
      const ScheduleTrial other = x_trials.run(order, calm.fill);
      if (other.completed && other.right != calm.right) return true;
    }
    return false;
  }

  static std::string sentence(const Sanity::Culprit& c) {
    const std::string_view memory = name(c.memory);
    if (c.differing == 0)
      return fmt::format("With {} in {} the kernel did not complete: {}", bytes_text(c.byte),
                         memory, c.error);
    const std::string first = c.first ? fmt::format("; first {}", cell_text(*c.first)) : "";
    return fmt::format("With {} instead of NaN in {}, {} of the outputs {}{}.", bytes_text(c.byte),
                       memory, c.differing == 1 ? "1 cell" : fmt::format("{} cells", c.differing),
                       c.differing == 1 ? "differs" : "differ", first);
  }

  ScheduleTrials x_trials;
  const Problem& x_problem;
  std::string x_schedule;
  bool x_right;
  const Capture& x_production;
  bool x_on_gpu;
  bool x_by_copies = false;     // the outputs depend on when asynchronous copies land
  std::size_t x_calm_bits = 0;  // of Sanity::calm
};

}  // namespace

SanityCheck check_sanity(const Experiment& experiment, const Capture& production, bool right,
                         int runs) {
  const Clock::time_point begin = Clock::now();
  SanityCheck out = Check(ScheduleTrials(experiment, production, right), experiment.problem,
                          experiment.run.schedule, right, production)
                        .run(runs);
  out.sanity.seconds = seconds_since(begin);
  return out;
}

bool worth_running_again(const Problem& p) {
  constexpr double kMultiplyAdds = 0x1p34;  // some seconds of the kernels here
  return multiply_adds(p) <= kMultiplyAdds;
}

RunCheck check_run(const Experiment& experiment, const Capture& capture, bool right, int runs) {
  const RunOptions& options = experiment.run;
  const Clock::time_point begin = Clock::now();
  RunCheck out;
  if (runs <= 0) {
    ScheduleTrials trials(experiment, capture, right);
    // The given order is that of the run.
    const std::vector<std::string> schedules = schedules_to_try(options.schedule, 3);
    bool same = true;
    for (std::size_t i = 0; i < kBytes.size() && same; ++i)
      same = trials.run(schedules[i + 1], MemoryFill::all(kBytes[i]), copies_of(i + 1)).same();
    const bool lockstep =
        !right && worth_lockstep(experiment.kernel, experiment.problem, options.schedule);
    if (same && lockstep) same = trials.run("lockstep").same();
    if (same) {
      call_steady(out.check.sanity, trials.runs(), false);
      if (!right && !lockstep && options.schedule != "lockstep")
        out.check.sanity.detail +=
            " It was not run in lockstep, where a missing __syncwarp does not show: trace does "
            "that.";
      out.check.schedules.finding = ScheduleFinding::kSame;
      out.check.sanity.seconds = seconds_since(begin);
      return out;
    }
  }
  Experiment production = experiment;
  production.run.taps = false;
  const Capture first = run_kernel(production);
  out.production = compare_with_reference(first, experiment.tolerance, options.threads);
  const bool whole =
      std::all_of(first.coverage.begin(), first.coverage.end(),
                  [](const Coverage& c) { return c.never == 0 && c.repeatedly == 0; });
  constexpr int kRuns = 3;
  out.check =
      check_sanity(production, first, whole && out.production->agrees(), runs > 0 ? runs : kRuns);
  out.check.sanity.seconds = seconds_since(begin);
  return out;
}

}  // namespace attn_diag
