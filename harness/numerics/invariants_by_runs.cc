#include <algorithm>
#include <utility>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/harness/xray.h"
#include "harness/numerics/invariants.h"
#include "harness/xray/trial.h"

namespace attn_diag {
namespace {

using xraying::Operands;
using xraying::Trial;
using xraying::TrialOutcome;
using Verdict = InvariantResult::Verdict;

constexpr Invariant kByRuns[] = {Invariant::kConstantV, Invariant::kPermutedKeys,
                                 Invariant::kPermutedHeads, Invariant::kSplits};

InvariantResult of_property(Invariant invariant, const PropertyResult& p) {
  InvariantResult r;
  r.invariant = invariant;
  r.why_not = p.why_not;
  r.verdict = p.verdict == PropertyResult::Verdict::kHolds    ? Verdict::kHolds
              : p.verdict == PropertyResult::Verdict::kBroken ? Verdict::kBroken
                                                              : Verdict::kNotTried;
  r.checked = p.compared;
  r.broken = p.broken;
  r.tensor = p.tensor;
  std::copy(p.index.begin(), p.index.end(), r.index.begin());
  r.actual = p.actual;
  r.expected = p.expected;
  r.max_err_over_limit = p.max_err_over_bound;
  return r;
}

// Entries in reverse order.
struct Reversed {
  Problem p;
  xraying::RowIndex operator()(const xraying::RowIndex& row) const {
    return {p.batch - 1 - row[0], p.heads - 1 - row[1], row[2]};
  }
};

Operands permuted(const Operands& from, const Problem& p) {
  Operands source = from, out(p);
  xraying::for_each_row(p, [&](const xraying::RowIndex& row) {
    const xraying::RowIndex other = Reversed{p}(row);
    for (std::int64_t d = 0; d < p.head_dim; ++d)
      out.q(row[0], row[1], row[2], d) = source.q(other[0], other[1], other[2], d);
  });
  out.for_each_key([&](std::int64_t b, std::int64_t h, std::int64_t j) {
    for (std::int64_t d = 0; d < p.head_dim; ++d)
      out.k(b, h, j, d) = source.k(p.batch - 1 - b, p.kv_heads - 1 - h, j, d);
    for (std::int64_t d = 0; d < p.head_dim_v; ++d)
      out.v(b, h, j, d) = source.v(p.batch - 1 - b, p.kv_heads - 1 - h, j, d);
  });
  return out;
}

PropertyResult heads(const Trial& run, const Operands& operands, const TrialOutcome& base) {
  const Problem& p = operands.problem();
  xraying::Judge judge(Property::kOtherHeads);
  if (p.batch == 1 && p.heads == 1) return judge.not_tried("there is one head and one batch entry");
  const TrialOutcome moved = run(permuted(operands, p));
  xraying::for_each_row(p, [&](const xraying::RowIndex& row) {
    const xraying::RowIndex other = Reversed{p}(row);
    const auto at = base.flat(other);
    judge.o_of(
        moved, row, [&](std::int64_t d) { return base.o[base.flat(other, d)]; },
        [&](std::int64_t d) {
          return base.o_bound[base.flat(other, d)] + moved.o_bound[moved.flat(row, d)];
        });
    if (!base.lse.empty())
      judge.lse_of(moved, row, base.lse[at], base.lse_bound[at] + moved.lse_bound[moved.flat(row)]);
  });
  return judge.finish();
}

PropertyResult splits(const Experiment& experiment, const Operands& operands,
                      const TrialOutcome& base) {
  xraying::Judge judge(Property::kPermutedKeys);
  if (!experiment.kernel.info().takes_num_splits)
    return judge.not_tried("the kernel takes no number of splits");
  const Problem& p = operands.problem();
  Experiment other = experiment;
  other.run.num_splits =
      plan_geometry(experiment.kernel, p, experiment.run).num_splits == 1 ? 2 : 1;
  try {
    const TrialOutcome outcome = Trial(other, true, true)(operands);
    xraying::for_each_row(
        p, [&](const xraying::RowIndex& row) { judge.same_within_bounds(outcome, base, row); });
    return judge.finish();
  } catch (const KernelFault&) {
    throw;
  } catch (const Error& e) {
    return judge.not_tried(e.what());
  }
}

std::vector<InvariantResult> none(const std::string& why) {
  std::vector<InvariantResult> out;
  for (const Invariant i : kByRuns) out.push_back(not_tried(i, why));
  return out;
}

// Whatever is broken after another invariant, those of the stages first, follows from that one.
void explain(std::vector<InvariantResult>& results, const std::vector<InvariantResult>& known) {
  std::vector<InvariantResult> before = known;
  for (InvariantResult& r : results) {
    const auto root = std::find_if(before.begin(), before.end(), [](const InvariantResult& b) {
      return b.verdict == Verdict::kBroken;
    });
    if (r.verdict == Verdict::kBroken && root != before.end()) {
      r.verdict = Verdict::kFollows;
      r.follows_from = root->invariant;
    }
    before.push_back(r);
  }
}

}  // namespace

std::vector<InvariantResult> check_invariants_by_runs(
    const Experiment& experiment, const std::vector<InvariantResult>& known,
    const std::function<void(int step, int steps, const std::string& what)>& on_step) {
  if (experiment.kernel.info().part != Part::kAttention)
    return none("the kernel computes a part of attention alone");
  if (experiment.inputs.has_nonfinite) return none("q, k or v holds NaN or infinity");
  XrayOptions xray;
  xray.coarse = true;
  xray.on_step = on_step;
  xray.properties = 1u << static_cast<unsigned>(Property::kConstantV) |
                    1u << static_cast<unsigned>(Property::kPermutedKeys);
  const std::vector<PropertyResult> properties = check_properties(experiment, xray);
  const auto found = [&](Property p) {
    return *std::find_if(properties.begin(), properties.end(),
                         [&](const PropertyResult& r) { return r.property == p; });
  };
  const PropertyResult constant = found(Property::kConstantV),
                       keys = found(Property::kPermutedKeys);
  using Tried = PropertyResult::Verdict;
  if (constant.verdict == Tried::kNotTried && keys.verdict == Tried::kNotTried)
    return none(constant.why_not);
  const Operands operands(experiment.problem, experiment.inputs);
  const Trial trial(experiment, true, true);
  const TrialOutcome base = trial(operands);
  std::vector<InvariantResult> out = {
      of_property(Invariant::kConstantV, constant),
      of_property(Invariant::kPermutedKeys, keys),
      of_property(Invariant::kPermutedHeads, heads(trial, operands, base)),
      of_property(Invariant::kSplits, splits(experiment, operands, base)),
  };
  explain(out, known);
  return out;
}

}  // namespace attn_diag
