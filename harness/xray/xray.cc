#include "attn_diag/harness/xray.h"

#include <fmt/format.h>

#include "attn_diag/harness/error.h"
#include "harness/library/support.h"
#include "harness/run/run_plan.h"
#include "harness/xray/moves.h"
#include "harness/xray/scores.h"
#include "harness/xray/weights.h"

namespace attn_diag {
namespace {

void add_notes(XrayResult& to) {
  std::vector<std::string>& notes = to.capture.notes;
  const std::int64_t cells = to.seen + to.without_weight + to.unknown;
  notes.push_back(
      fmt::format("S, m, l and P were reconstructed from {} launches with one-hot v, from o's "
                  "rounding: S to about "
                  "{:.1g}.",
                  to.launches, to.median_uncertainty));
  if (to.unknown > 0)
    notes.push_back(
        fmt::format("{} of {} cells of S have weights too small for o's type: they are not known "
                    "and not judged.",
                    to.unknown, cells));
  if (!to.capture.has(Tensor::kLse))
    notes.emplace_back(
        "The kernel has no lse: S is known up to a constant a row, which was taken from the "
        "reference.");
  else if (to.rows_without_lse > 0)
    notes.push_back(
        fmt::format("In {} rows the weights are those of S up to a factor, but lse does not go "
                    "with them: S was "
                    "fixed by the reference there. The fault is in l, in lse, or in the division.",
                    to.rows_without_lse));
}

}  // namespace

XrayResult xray(const Experiment& given, const XrayOptions& options) {
  const Experiment experiment = xraying::of_production(given);
  const auto& [kernel, problem, inputs, run, tolerance, oracle] = experiment;
  // Scores are read from o by inputs of its own, which a part or codes would change.
  if (const std::vector<std::string> words = part_words(kernel.info()); !words.empty())
    throw Error(
        fmt::format("{} {}: an x-ray is of kernels that compute o of q, k and v as they are. Use "
                    "trace and diagnose.",
                    kernel.spec(), words.front()));
  XrayResult result;
  result.capture = run_kernel(experiment);
  const xraying::Moves moves = xraying::find_moves(experiment, &result.capture);
  if (moves.beyond_rounding) result.capture.repetition = moves.repetition;
  const xraying::Weights weights = xraying::read_weights(experiment, options);
  result.launches = weights.launches;
  if (options.on_step) {
    const std::int32_t steps = ceil_div(problem.seqlen_k, problem.head_dim_v) + 1;
    options.on_step(steps, steps, "scores from weights");
  }
  xraying::reconstruct(weights, result, run.threads);
  for (const TensorInfo& t : kTensors)
    if (defined_for(t.id, result.capture.geometry) && !result.capture.has(t.id) &&
        result.capture.exempt[static_cast<std::size_t>(t.id)].empty())
      result.capture.exempt[static_cast<std::size_t>(t.id)] =
          "an x-ray sees weights, not sums within the kernel";
  add_notes(result);
  if (moves.moved)
    result.capture.notes.push_back(fmt::format("The result moves: {}.{}", moves.text,
                                               moves.beyond_rounding
                                                   ? " The weights are those of single runs."
                                                   : " Rounding can take two runs as far."));
  result.comparison = compare_with_reference(result.capture, tolerance, run.threads);
  return result;
}

}  // namespace attn_diag
