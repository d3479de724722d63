#include "harness/xray/properties.h"

#include <algorithm>
#include <array>
#include <bit>

#include "attn_diag/harness/error.h"
#include "harness/xray/moves.h"

namespace attn_diag {
namespace {

using xraying::Subject;

struct Entry {
  PropertyInfo info;
  PropertyResult (*check)(const Subject&);
};

// In the order of Property.
constexpr std::array<Entry, kNumProperties> kProperties = {{
    {{Property::kDoubledV, "doubled-v", "o of 2v is 2 o, to the bit",
      "something else than v enters o: an accumulator that starts at what lay in memory or at a "
      "constant, "
      "stale values, or numbers cut at a largest one"},
     xraying::doubled_v},
    {{Property::kSumOfV, "sum-of-v", "o of v1 + v2 is the sum of both o",
      "as doubled-v; or the weights depend on v: a buffer of v overwrites K, P or S"},
     xraying::sum_of_v},
    {{Property::kShiftedKeys, "shifted-keys",
      "one vector added to all keys leaves o as it is, and adds softmax_scale q.c to lse",
      "a weight is not relative to the row max: a max that starts at 0 or is cut, l that starts at "
      "something else than 0, padded keys with score 0 that are counted, scores cut at a largest "
      "one"},
     xraying::shifted_keys},
    {{Property::kPermutedKeys, "permuted-keys", "permuting the keys with v leaves o as it is",
      "a key counts by its place: the last tile, a tile's edge, a rescale between tiles or a merge "
      "of "
      "splits that is wrong, a stale tile"},
     xraying::permuted_keys},
    {{Property::kDuplicatedKeys, "duplicated-keys",
      "every key twice leaves o as it is, and adds ln 2 to lse",
      "the number of keys or tiles enters the weights: a loop bound, a tail that is dropped or "
      "padded, "
      "lse in another base"},
     xraying::duplicated_keys},
    {{Property::kConstantV, "constant-v", "where v is constant o is that constant",
      "the weights do not sum up to 1: l misses keys or counts others, is not rescaled, or o is "
      "divided by "
      "it twice or not at all"},
     xraying::constant_v},
    {{Property::kZeroQ, "zero-q",
      "q = 0 gives the mean of v over the visible keys, and the log of their number as lse",
      "other keys are counted than the mask says, or v's rows are read from another place"},
     xraying::zero_q},
    {{Property::kOtherHeads, "other-heads",
      "another head's or batch entry's q, k, v change nothing",
      "an index or stride of batch or head is wrong, or blocks share memory that each should have "
      "alone"},
     xraying::other_heads},
    {{Property::kOtherQueries, "other-queries", "another row of q changes nothing",
      "rows mix: a reduction across lanes that own other rows, a fragment layout, shared memory "
      "that is "
      "overwritten too early"},
     xraying::other_queries},
    {{Property::kMaskedKeys, "masked-keys",
      "k and v of keys that a row does not see change nothing",
      "the mask lets something through: it comes after the max or the sum, or is missing on a "
      "tile"},
     xraying::masked_keys},
}};

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& s : sentences) text += (text.empty() ? "" : "; ") + s;
  return text;
}

std::vector<PropertyResult> none_tried(const std::string& why, std::uint32_t wanted) {
  std::vector<PropertyResult> results;
  for (const Entry& entry : kProperties) {
    if ((wanted >> static_cast<unsigned>(entry.info.id) & 1u) == 0) continue;
    PropertyResult result;
    result.property = entry.info.id;
    result.why_not = why;
    results.push_back(std::move(result));
  }
  return results;
}

// A key that the mask should hide breaks what is said of weights and of v, too: where a property is broken only in
// rows in which masked-keys is, as far as both were compared, it says nothing beside that. Not of those that are
// tried without the mask, nor of zero-q, which is about the mask itself.
void explain_by_mask(std::vector<PropertyResult>& results) {
  using Verdict = PropertyResult::Verdict;
  const auto found = std::find_if(results.begin(), results.end(), [](const PropertyResult& r) {
    return r.property == Property::kMaskedKeys;
  });
  if (found == results.end()) return;
  const PropertyResult mask = *found;
  if (mask.verdict != Verdict::kBroken) return;
  for (PropertyResult& r : results) {
    if (r.verdict != Verdict::kBroken || r.property == Property::kMaskedKeys ||
        r.property == Property::kZeroQ || r.property == Property::kPermutedKeys ||
        r.property == Property::kDuplicatedKeys || r.rows.size() != mask.rows.size())
      continue;
    bool common = false, beyond = false;
    for (std::size_t row = 0; row < r.rows.size(); ++row) {
      common = common || (r.rows[row] == 2 && mask.rows[row] == 2);
      beyond = beyond || (r.rows[row] == 2 && mask.rows[row] == 1);
    }
    if (common && !beyond) r.verdict = Verdict::kExplained;
  }
}

}  // namespace

const PropertyInfo& info(Property property) {
  return kProperties[static_cast<std::size_t>(property)].info;
}

std::vector<PropertyResult> check_properties(const Experiment& experiment,
                                             const XrayOptions& options) {
  if (experiment.inputs.has_nonfinite)
    throw Error(
        "The inputs hold NaN or infinity, with which no property can be tried. Choose other "
        "--inputs.");
  const xraying::Moves moves = xraying::find_moves(experiment);
  const xraying::Trial trial(experiment, moves.moved, options.coarse);
  const xraying::Operands operands(experiment.problem, experiment.inputs);
  const xraying::TrialOutcome base = trial(operands);
  if (moves.beyond_rounding) return none_tried(moves.text, options.properties);
  if (!base.nan.empty())
    return none_tried("the result is NaN already for these inputs: " + joined(base.nan),
                      options.properties);
  const auto wanted = [&](Property p) {
    return (options.properties >> static_cast<unsigned>(p) & 1u) != 0;
  };
  const int tried = std::popcount(options.properties & ((1u << kNumProperties) - 1));
  std::vector<PropertyResult> results;
  for (const Entry& entry : kProperties) {
    if (!wanted(entry.info.id)) continue;
    if (options.on_step)
      options.on_step(static_cast<int>(results.size()) + 1, tried, entry.info.name);
    results.push_back(entry.check({trial, operands, base}));
  }
  explain_by_mask(results);
  return results;
}

}  // namespace attn_diag
