#include "harness/sanity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/repetition.h"

namespace attn_diag {
namespace {

// Nothing, and large finite numbers of every type; the first run had NaN.
constexpr std::array<std::uint8_t, 2> kBytes = {0x00, 0x77};

std::string bytes_text(std::uint8_t byte) { return byte == 0 ? "zeros" : "large finite numbers"; }

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
    // What moves for any reason shows in these; what the reason is, is asked only then.
    const std::vector<std::string> schedules =
        x_on_gpu ? std::vector<std::string>(static_cast<std::size_t>(runs), x_schedule)
                 : schedules_to_try(x_schedule, runs);
    std::vector<ScheduleTrial> trials;
    for (std::size_t i = 0; i < schedules.size(); ++i)
      trials.push_back(x_trials.run(schedules[i],
                                    i < kBytes.size() ? MemoryFill::all(kBytes[i]) : MemoryFill{}));
    SanityCheck out;
    const bool same =
        std::all_of(trials.begin(), trials.end(), [](const ScheduleTrial& t) { return t.same(); });
    if (!same) {
      trials.clear();
      for (const std::string& schedule : schedules) trials.push_back(x_trials.run(schedule));
      // What moves now and then may have held still this once.
      if (trials.front().same()) trials.front() = x_trials.run(x_schedule);
    }
    out.schedules = x_on_gpu ? classify_repeats(trials, x_production)
                             : add_lockstep(x_trials, x_schedule, x_right, trials, x_problem);
    // Where two runs of one and the same case differ, a third with other bytes shows nothing.
    const bool unsteady = !trials.front().same() || (x_on_gpu && !all_same(trials));
    if (!same && !unsteady) blame(out.sanity);
    conclude(out, same, unsteady);
    out.sanity.runs = x_trials.runs();
    return out;
  }

 private:
  static bool all_same(const std::vector<ScheduleTrial>& trials) {
    return std::all_of(trials.begin(), trials.end(),
                       [](const ScheduleTrial& t) { return t.same(); });
  }

  void blame(Sanity& sanity) {
    for (const std::uint8_t byte : kBytes) {
      for (std::size_t m = 0; m < kNumGivenMemories; ++m) {
        const auto memory = static_cast<GivenMemory>(m);
        const bool known =
            std::any_of(sanity.culprits.begin(), sanity.culprits.end(),
                        [&](const Sanity::Culprit& c) { return c.memory == memory; });
        if (known || (x_on_gpu && memory == GivenMemory::kShared)) continue;
        const ScheduleTrial trial = x_trials.run(x_schedule, MemoryFill::only(memory, byte));
        if (trial.same()) continue;
        sanity.culprits.push_back({memory, byte, trial.differing, trial.moved.first, trial.error});
      }
    }
  }

  void conclude(SanityCheck& out, bool same, bool unsteady) const {
    Sanity& sanity = out.sanity;
    const bool by_order = out.schedules.finding != ScheduleFinding::kSame;
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
    if (same && !by_order) {
      sanity.finding = SanityFinding::kSteady;
      sanity.detail = fmt::format(
          "o and lse have the same bits in {} more runs, whatever was in the workspace, in the "
          "outputs, around all buffers{} before.",
          x_trials.runs(), x_on_gpu ? "" : " and in shared memory");
      return;
    }
    sanity.finding = !unsteady && by_order ? SanityFinding::kDependsOnOrder : SanityFinding::kMoves;
    sanity.within_bounds = x_trials.every_run_right();
    // Who reads too early reads what was there before: that the bytes matter then follows from the order.
    sanity.detail =
        unsteady   ? "Two runs of one and the same case differ."
        : by_order ? "o and lse depend on the order in which threads run."
                   : "o and lse moved once, when order and bytes in unwritten memory were changed "
                     "together, and for neither alone.";
    if (culprits.empty()) return;
    sanity.detail += ' ';
    sanity.detail += culprits;
  }

  static std::string sentence(const Sanity::Culprit& c) {
    const std::string_view memory = name(c.memory);
    if (c.differing == 0)
      return fmt::format("With {} in {} the kernel did not complete: {}", bytes_text(c.byte),
                         memory, c.error);
    const std::string first = c.first ? fmt::format("; first {}", cell_text(*c.first)) : "";
    return fmt::format("With {} instead of NaN in {}, {} of o and lse {}{}.", bytes_text(c.byte),
                       memory, c.differing == 1 ? "1 cell" : fmt::format("{} cells", c.differing),
                       c.differing == 1 ? "differs" : "differ", first);
  }

  ScheduleTrials x_trials;
  const Problem& x_problem;
  std::string x_schedule;
  bool x_right;
  const Capture& x_production;
  bool x_on_gpu;
};

}  // namespace

std::string_view name(GivenMemory memory) {
  static constexpr std::array<std::string_view, kNumGivenMemories> kNames = {
      "the workspace",
      "o and lse",
      "shared memory",
      "the bytes around q",
      "the bytes around k",
      "the bytes around v",
      "the bytes around o and lse",
      "the bytes around the workspace"};
  return kNames[static_cast<std::size_t>(memory)];
}

SanityCheck check_sanity(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                         const RunOptions& options, const Tolerance& tolerance,
                         const Capture& production, bool right, int runs) {
  return Check(ScheduleTrials(kernel, problem, inputs, options, tolerance, production, right),
               problem, options.schedule, right, production)
      .run(runs);
}

}  // namespace attn_diag
