#include "harness/diagnose/experiments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace attn_diag::matching {
namespace {

constexpr int kContrastRows = 48;
constexpr std::size_t kMostExperiments = 3;
constexpr std::size_t kMostCuts = 8;  // tried
constexpr std::uint32_t kOutputs = tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse);

// Whether a deviation says the same of a kernel in other tiles: places within a tile do not.
bool holds_in_other_tiles(const reference::Deviation& d) {
  const reference::TileRead natural;
  return d.q.tile == natural && d.k.tile == natural && d.v.tile == natural &&
         d.softmax.lanes == reference::LaneMap::kNone && !d.softmax.mixed.present() &&
         d.store.rows_owned == 0;
}

std::string text_of(const Geometry& to, const Geometry& from) {
  std::string text;
  if (to.tile.block_m != from.tile.block_m || to.tile.block_n != from.tile.block_n)
    text += fmt::format(" --tile {}x{}", to.tile.block_m, to.tile.block_n);
  if (to.num_splits != from.num_splits) text += fmt::format(" --num-splits {}", to.num_splits);
  return "run with" + text;
}

// Where nothing is known of the kernel, what every kernel with a merge can do.
std::vector<Geometry> other_splits(const Problem& p, const Geometry& g) {
  std::vector<Geometry> cuts;
  if (!g.has_split_merge) return cuts;
  for (const std::int32_t splits : {1, g.num_splits + 1}) {
    if (splits == g.num_splits || splits > num_kv_tiles(p, g)) continue;
    Geometry cut = g;
    cut.num_splits = splits;
    cut.tiles_per_split = ceil_div(num_kv_tiles(p, g), splits);
    cuts.push_back(cut);
  }
  return cuts;
}

}  // namespace

Elsewhere::Elsewhere(const Search& search, const std::vector<Candidate>& members,
                     const std::vector<Geometry>& other_cuts)
    : x_search(search),
      x_members(members),
      x_rows(rows_of(search.cuts().front().problem(), kContrastRows)) {
  for (const Candidate& member : members) {
    x_first.push_back(x_forms.size());
    x_forms.push_back(member.variant.deviation);
    for (const reference::Variant& other : member.alternatives) x_forms.push_back(other.deviation);
  }
  x_first.push_back(x_forms.size());
  try_inputs();
  const reference::PredictionInputs& own = search.cuts()[members.front().cut];
  try_cuts(other_cuts.empty() ? other_splits(own.problem(), own.geometry()) : other_cuts);
}

void Elsewhere::try_inputs() {
  for (const OtherInputs& inputs : other_inputs(x_search.cuts()[x_members.front().cut])) {
    TellingRun change;
    change.what = "run with --inputs " + inputs.kind;
    change.inputs = inputs.kind;
    x_inputs.push_back(
        {std::move(change), {inputs.data, x_rows, x_forms, kOutputs, x_search.threads()}});
  }
}

void Elsewhere::try_cuts(const std::vector<Geometry>& cuts) {
  const reference::PredictionInputs& own = x_search.cuts()[x_members.front().cut];
  const Geometry& from = own.geometry();
  const bool any_tile = std::all_of(x_forms.begin(), x_forms.end(), holds_in_other_tiles);
  for (const Geometry& cut : cuts) {
    const bool other_tile =
        cut.tile.block_m != from.tile.block_m || cut.tile.block_n != from.tile.block_n;
    if (x_cuts.size() == kMostCuts || (other_tile && !any_tile)) continue;
    if (!other_tile && cut.num_splits == from.num_splits) continue;
    TellingRun change;
    change.what = text_of(cut, from);
    change.cut = cut;
    x_cuts.push_back({std::move(change),
                      {own.with_geometry(cut), x_rows, x_forms, kOutputs, x_search.threads()}});
  }
}

bool Elsewhere::same(std::size_t a, std::size_t b) const {
  return std::all_of(x_inputs.begin(), x_inputs.end(),
                     [&](const Setting& s) { return s.contrast.same(x_first[a], x_first[b]); });
}

Contrast::Gap Elsewhere::gap(const Contrast& contrast, std::size_t a, std::size_t b) const {
  Contrast::Gap least = contrast.gap(x_first[a], x_first[b]);
  for (std::size_t i = x_first[a]; i < x_first[a + 1]; ++i)
    for (std::size_t k = x_first[b]; k < x_first[b + 1]; ++k)
      if (const Contrast::Gap gap = contrast.gap(i, k); gap.over_bound < least.over_bound)
        least = gap;
  return least;
}

std::vector<TellingRun> Elsewhere::experiments(const std::vector<std::size_t>& which) const {
  struct Pair {
    std::size_t a, b;
    bool apart = false;
  };
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < which.size(); ++i)
    for (std::size_t k = i + 1; k < which.size(); ++k) pairs.push_back({which[i], which[k]});
  // What a setting makes of each pair.
  struct Trial {
    const TellingRun* change;
    std::vector<Contrast::Gap> gaps;
  };
  const auto trial_of = [&](const TellingRun& change, const Contrast& contrast) {
    Trial trial{&change, {}};
    for (const Pair& pair : pairs) trial.gaps.push_back(gap(contrast, pair.a, pair.b));
    return trial;
  };
  const auto told = [&](const Trial& trial) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i)
      n += !pairs[i].apart && trial.gaps[i].over_bound > 1;
    return n;
  };
  std::vector<TellingRun> proposed;
  const auto propose = [&](const Trial& trial) {
    const std::size_t n = told(trial);
    if (n == 0) return;
    std::size_t widest = pairs.size();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].apart) continue;
      pairs[i].apart = trial.gaps[i].over_bound > 1;
      if (widest == pairs.size() || trial.gaps[i].over_bound > trial.gaps[widest].over_bound)
        widest = i;
    }
    const Contrast::Gap& gap = trial.gaps[widest];
    TellingRun experiment = *trial.change;
    experiment.why = fmt::format(
        "it tells {} of {} pairs apart: {} differs from {} there by {:.3g} in {}, {:.3g} times "
        "what rounding can make",
        n, pairs.size(), x_members[pairs[widest].a].variant.label(),
        x_members[pairs[widest].b].variant.label(), std::abs(gap.a - gap.b), name(gap.tensor),
        gap.over_bound);
    proposed.push_back(std::move(experiment));
  };
  if (!x_search.evidence().capture().has(Tensor::kLse)) {
    TellingRun record;
    record.what = "record lse of the same case";
    propose(trial_of(record, {x_search.cuts()[x_members.front().cut], x_search.sample().row,
                              x_forms, tensor_bit(Tensor::kLse), x_search.threads()}));
  }
  std::vector<Trial> trials;
  for (const std::vector<Setting>* list : {&x_inputs, &x_cuts})
    for (const Setting& setting : *list)
      trials.push_back(trial_of(setting.change, setting.contrast));
  while (!trials.empty() && proposed.size() < kMostExperiments) {
    const auto best =
        std::max_element(trials.begin(), trials.end(),
                         [&](const Trial& x, const Trial& y) { return told(x) < told(y); });
    if (told(*best) == 0) break;
    propose(*best);
    trials.erase(best);
  }
  return proposed;
}

}  // namespace attn_diag::matching
