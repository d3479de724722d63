#include "harness/diagnose/equivalence.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/diagnose/contrast.h"

namespace attn_diag::matching {
namespace {

constexpr int kContrastRows = 48;
constexpr std::uint32_t kOutputs =
    1u << static_cast<unsigned>(Tensor::kO) | 1u << static_cast<unsigned>(Tensor::kLse);

// Simplest first: a bug before a pair, the least general, then the order of the catalogue.
bool simpler(const Candidate& a, const Candidate& b) {
  const std::size_t bugs_a = a.variant.hypotheses.size(), bugs_b = b.variant.hypotheses.size();
  if (bugs_a != bugs_b) return bugs_a < bugs_b;
  if (a.generality != b.generality) return a.generality < b.generality;
  if (a.tally.within != b.tally.within) return a.tally.within > b.tally.within;
  return a.order < b.order;
}

// One of each set of hypotheses; the others' labels are noted.
std::vector<Candidate> one_of_each(std::vector<Candidate> candidates,
                                   std::vector<std::string>& notes) {
  std::stable_sort(candidates.begin(), candidates.end(), simpler);
  std::vector<Candidate> kept;
  std::vector<std::string> others;
  for (Candidate& candidate : candidates) {
    const auto it = std::find_if(kept.begin(), kept.end(), [&](const Candidate& k) {
      return k.variant.hypotheses == candidate.variant.hypotheses;
    });
    if (it == kept.end()) {
      kept.push_back(std::move(candidate));
      others.emplace_back();
      continue;
    }
    std::string& text = others[static_cast<std::size_t>(it - kept.begin())];
    text += (text.empty() ? "" : ", ") + candidate.variant.label();
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (!others[i].empty())
      notes.push_back(fmt::format("Its parameters are open: {} gives the same numbers as {}.",
                                  others[i], kept[i].variant.label()));
  return kept;
}

std::vector<reference::Deviation> deviations_of(const std::vector<Candidate>& members) {
  std::vector<reference::Deviation> all;
  for (const Candidate& member : members) all.push_back(member.variant.deviation);
  return all;
}

// The members' predictions for other inputs of the same shape.
class Elsewhere {
 public:
  Elsewhere(const Search& search, const std::vector<Candidate>& members)
      : x_inputs(other_inputs(search.cuts()[members.front().cut])) {
    const std::vector<reference::Row> rows =
        rows_of(search.cuts().front().problem(), kContrastRows);
    for (const OtherInputs& inputs : x_inputs)
      x_contrasts.emplace_back(inputs.data, rows, deviations_of(members), kOutputs,
                               search.threads());
  }
  bool same(std::size_t a, std::size_t b) const {
    return std::all_of(x_contrasts.begin(), x_contrasts.end(),
                       [&](const Contrast& c) { return c.same(a, b); });
  }
  const std::vector<OtherInputs>& inputs() const { return x_inputs; }
  const std::vector<Contrast>& contrasts() const { return x_contrasts; }

 private:
  std::vector<OtherInputs> x_inputs;
  std::vector<Contrast> x_contrasts;
};

// How many pairs of members a contrast tells apart, and the widest gap among them.
struct Separation {
  std::size_t pairs = 0, of = 0;
  Contrast::Gap widest;
  std::size_t a = 0, b = 0;
};
Separation separation(const Contrast& contrast) {
  Separation s;
  for (std::size_t a = 0; a < contrast.size(); ++a)
    for (std::size_t b = a + 1; b < contrast.size(); ++b) {
      const Contrast::Gap gap = contrast.gap(a, b);
      ++s.of;
      if (gap.over_bound <= 1) continue;
      ++s.pairs;
      if (gap.over_bound > s.widest.over_bound) {
        s.widest = gap;
        s.a = a;
        s.b = b;
      }
    }
  return s;
}

std::string why(const Separation& s, const std::vector<Candidate>& members) {
  return fmt::format(
      "it tells {} of {} pairs apart: {} differs from {} there by {:.3g} in {}, "
      "{:.3g} times what rounding can make",
      s.pairs, s.of, members[s.a].variant.label(), members[s.b].variant.label(),
      std::abs(s.widest.a - s.widest.b), name(s.widest.tensor), s.widest.over_bound);
}

// lse on the very inputs, where it was not recorded.
std::optional<Experiment> experiment_with_lse(const Search& search,
                                              const std::vector<Candidate>& members) {
  if (search.evidence().capture().has(Tensor::kLse)) return std::nullopt;
  const Contrast contrast(search.cuts().front(), search.sample().row, deviations_of(members),
                          1u << static_cast<unsigned>(Tensor::kLse), search.threads());
  const Separation s = separation(contrast);
  if (s.pairs == 0) return std::nullopt;
  return Experiment{"record lse of the same case", why(s, members), ""};
}

}  // namespace

EquivalenceClass resolve(const Search& search, std::vector<Candidate> candidates) {
  EquivalenceClass out;
  std::vector<Candidate> members = one_of_each(std::move(candidates), out.notes);
  // A bug known by its values goes before one that only says where nothing is known.
  const auto by_place = [](const Candidate& m) { return 2 * m.tally.by_place > m.tally.telling; };
  if (!std::all_of(members.begin(), members.end(), by_place)) std::erase_if(members, by_place);
  if (members.size() > 1) {
    const Elsewhere elsewhere(search, members);
    // A general member that is, at its parameters, the same function as a simpler one.
    std::vector<std::uint8_t> folded(members.size(), 0);
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t k = 0; k < i && folded[i] == 0; ++k) {
        if (folded[k] != 0 || members[k].generality >= members[i].generality ||
            !elsewhere.same(k, i))
          continue;
        folded[i] = 1;
        members[k].equivalent.push_back(members[i].variant.label());
        out.notes.push_back(fmt::format("{} is the same as {} here: the general form of it.",
                                        members[i].variant.label(), members[k].variant.label()));
      }
    for (std::size_t i = 0; i < members.size(); ++i)
      if (folded[i] == 0) out.members.push_back(std::move(members[i]));
  } else {
    out.members = std::move(members);
  }
  if (out.members.size() < 2) return out;

  const Elsewhere elsewhere(search, out.members);
  for (std::size_t a = 0; a < out.members.size(); ++a)
    for (std::size_t b = a + 1; b < out.members.size(); ++b)
      if (elsewhere.same(a, b))
        out.notes.push_back(
            fmt::format("{} and {} are the same function of every input tried: o and lse cannot "
                        "tell them apart.",
                        out.members[a].variant.label(), out.members[b].variant.label()));
  if (std::optional<Experiment> lse = experiment_with_lse(search, out.members))
    out.experiments.push_back(std::move(*lse));
  std::size_t best = 0;
  std::optional<Experiment> other;
  for (std::size_t i = 0; i < elsewhere.contrasts().size(); ++i) {
    const Separation s = separation(elsewhere.contrasts()[i]);
    if (s.pairs <= best) continue;
    best = s.pairs;
    const std::string& kind = elsewhere.inputs()[i].kind;
    other = Experiment{"run with --inputs " + kind, why(s, out.members), kind};
  }
  if (other) out.experiments.push_back(std::move(*other));
  return out;
}

}  // namespace attn_diag::matching
