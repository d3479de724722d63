#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>

#include "reference/counterfactual/entry.h"
#include "reference/counterfactual/unite.h"

namespace attn_diag::reference {
namespace {

class EntryHypothesis final : public Hypothesis {
 public:
  explicit EntryHypothesis(const Entry& entry) : x_entry(entry) {}

  const HypothesisInfo& info() const override { return x_entry.info; }

  std::vector<Variant> variants(const PredictionInputs& c) const override {
    Variants list(*this);
    x_entry.enumerate(c, list);
    return list.take();
  }

  void set(Deviation& deviation, double value) const override {
    if (x_entry.set == nullptr)
      throw std::invalid_argument("counterfactual: " + std::string(info().id) +
                                  " has no free parameter");
    x_entry.set(deviation, value);
  }

 private:
  const Entry& x_entry;
};

bool has_parameter(const Hypothesis& hypothesis, std::string_view name) {
  for (const std::string_view parameter : hypothesis.info().parameters)
    if (parameter == name) return true;
  return false;
}

}  // namespace

std::int32_t longest_split(const PredictionInputs& c) {
  return std::min(num_kv_tiles(c.problem(), c.geometry()), c.geometry().tiles_per_split);
}

std::set<std::int32_t> rows_by_warps(std::int32_t rows) {
  std::set<std::int32_t> numbers{rows / 2, rows - rows / 4};
  for (std::int32_t n = 16; n < rows; n += 16) numbers.insert(n);
  for (std::int32_t warps = 1; warps <= 16; ++warps) numbers.insert((rows - 1) / warps * warps);
  return numbers;
}

std::int32_t used_splits(const PredictionInputs& c) {
  return ceil_div(num_kv_tiles(c.problem(), c.geometry()), c.geometry().tiles_per_split);
}

std::string_view name(Family family) {
  static constexpr std::string_view kNames[kNumFamilies] = {
      "logits", "mask", "fetch", "softmax", "pv", "recurrence", "combine", "finish", "store"};
  return kNames[static_cast<std::size_t>(family)];
}

const std::vector<const Hypothesis*>& catalogue() {
  static const std::vector<std::unique_ptr<const Hypothesis>> owned = [] {
    std::vector<std::unique_ptr<const Hypothesis>> all;
    for (const auto entries :
         {logits_entries(), unasked_entries(), mask_entries(), visit_entries(), fetch_entries(),
          tile_entries(), softmax_entries(), pv_entries(), recurrence_entries(), rescale_entries(),
          combine_entries(), partial_entries(), finish_entries(), store_entries()})
      for (const Entry& entry : entries) all.push_back(std::make_unique<EntryHypothesis>(entry));
    return all;
  }();
  static const std::vector<const Hypothesis*> list = [] {
    std::vector<const Hypothesis*> pointers;
    for (const auto& hypothesis : owned) pointers.push_back(hypothesis.get());
    return pointers;
  }();
  return list;
}

const Hypothesis* find_hypothesis(std::string_view id) {
  for (const Hypothesis* hypothesis : catalogue())
    if (hypothesis->info().id == id) return hypothesis;
  return nullptr;
}

Variant Variant::at(double value, std::string named) const {
  Variant fixed = *this;
  if (!free) return fixed;
  for (const Hypothesis* hypothesis : hypotheses) {
    if (!has_parameter(*hypothesis, free->name)) continue;
    hypothesis->set(fixed.deviation, value);
    break;
  }
  fixed.parameters.push_back({free->name, value, std::move(named)});
  fixed.free.reset();
  return fixed;
}

std::string Variant::label() const {
  std::string text;
  for (const Hypothesis* hypothesis : hypotheses) {
    if (!text.empty()) text += " + ";
    text += hypothesis->info().id;
    std::string values;
    for (const ParameterValue& p : parameters) {
      if (!has_parameter(*hypothesis, p.name)) continue;
      if (!values.empty()) values += ", ";
      values += p.name;
      values += " = ";
      values += p.named.empty() ? number_text(p.value) : p.named;
    }
    if (free && has_parameter(*hypothesis, free->name)) {
      if (!values.empty()) values += ", ";
      values += free->name;
      values += " = ?";
    }
    if (!where.empty()) values += (values.empty() ? "only in = " : ", only in = ") + where;
    if (!values.empty()) text += "(" + values + ")";
  }
  return text;
}

std::optional<Variant> in_place(const Variant& variant, const NamedPlace& place) {
  if (variant.deviation.place != Place{}) return std::nullopt;
  if (place.place.tiles != TilePlace::kAll) {
    Deviation rest = variant.deviation;
    rest.q = rest.k = rest.v = {};
    rest.logits = {};
    rest.mask = {};
    rest.pv = {};
    if (rest != Deviation{} || variant.deviation.logits.accumulates ||
        variant.deviation.pv.accumulates || variant.deviation.pv.probs_late)
      return std::nullopt;
  }
  Variant placed = variant;
  placed.deviation.place = place.place;
  placed.where = place.name;
  return placed;
}

std::optional<Variant> combine(const Variant& a, const Variant& b) {
  if (a.free && b.free) return std::nullopt;
  for (const Hypothesis* hypothesis : a.hypotheses)
    if (std::find(b.hypotheses.begin(), b.hypotheses.end(), hypothesis) != b.hypotheses.end())
      return std::nullopt;
  // What a free parameter will set must be free in the other as well: any odd value shows it.
  constexpr double kProbe = 1.2345678;
  const Deviation da = a.at(kProbe).deviation, db = b.at(kProbe).deviation;
  if (!unite(da, db)) return std::nullopt;
  const std::optional<Deviation> both = unite(a.deviation, b.deviation);
  if (!both) return std::nullopt;
  Variant pair = a;
  pair.hypotheses.insert(pair.hypotheses.end(), b.hypotheses.begin(), b.hypotheses.end());
  pair.parameters.insert(pair.parameters.end(), b.parameters.begin(), b.parameters.end());
  pair.deviation = *both;
  if (b.free) pair.free = b.free;
  return pair;
}

}  // namespace attn_diag::reference
