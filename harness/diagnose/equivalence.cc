#include "harness/diagnose/equivalence.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/diagnose/experiments.h"

namespace attn_diag::matching {
namespace {

// Simplest first: a bug before a pair, the least general, then the order of the catalogue.
bool simpler(const Candidate& a, const Candidate& b) {
  const std::size_t bugs_a = a.variant.hypotheses.size(), bugs_b = b.variant.hypotheses.size();
  if (bugs_a != bugs_b) return bugs_a < bugs_b;
  if (a.generality != b.generality) return a.generality < b.generality;
  if (a.tally.within != b.tally.within) return a.tally.within > b.tally.within;
  return a.order < b.order;
}

// One of each set of hypotheses, with the others as its alternatives.
std::vector<Candidate> one_of_each(std::vector<Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), simpler);
  std::vector<Candidate> kept;
  for (Candidate& candidate : candidates) {
    const auto it = std::find_if(kept.begin(), kept.end(), [&](const Candidate& k) {
      return k.variant.hypotheses == candidate.variant.hypotheses;
    });
    if (it == kept.end())
      kept.push_back(std::move(candidate));
    else
      it->alternatives.push_back(std::move(candidate.variant));
  }
  return kept;
}

}  // namespace

EquivalenceClass resolve(const Search& search, std::vector<Candidate> candidates,
                         const std::vector<Geometry>& other_cuts) {
  EquivalenceClass out;
  std::vector<Candidate> members = one_of_each(std::move(candidates));
  // A bug that shows by values goes before one that only says where nothing is known.
  const auto by_place = [](const Candidate& m) { return 2 * m.tally.by_place > m.tally.telling; };
  if (!std::all_of(members.begin(), members.end(), by_place)) std::erase_if(members, by_place);
  if (members.size() < 2) {
    out.members = std::move(members);
    return out;
  }
  const Elsewhere elsewhere(search, members, other_cuts);
  // A general member that is, at its parameters, the same function as a simpler one.
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto simpler_one = std::find_if(kept.begin(), kept.end(), [&](std::size_t k) {
      return members[k].generality < members[i].generality && elsewhere.same(k, i);
    });
    if (simpler_one == kept.end()) {
      kept.push_back(i);
      continue;
    }
    Candidate& into = members[*simpler_one];
    into.equivalent.push_back(members[i].variant.label());
    out.notes.push_back(fmt::format("{} is the same as {} here: the general form of it.",
                                    members[i].variant.label(), into.variant.label()));
  }
  if (kept.size() > 1) {
    for (std::size_t a = 0; a < kept.size(); ++a)
      for (std::size_t b = a + 1; b < kept.size(); ++b)
        if (elsewhere.same(kept[a], kept[b]))
          out.notes.push_back(
              fmt::format("{} and {} are the same function of every input tried: o and lse cannot "
                          "tell them apart.",
                          members[kept[a]].variant.label(), members[kept[b]].variant.label()));
    out.experiments = elsewhere.experiments(kept);
  }
  for (const std::size_t i : kept) out.members.push_back(std::move(members[i]));
  return out;
}

}  // namespace attn_diag::matching
