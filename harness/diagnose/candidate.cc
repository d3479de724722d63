#include "harness/diagnose/candidate.h"

#include <set>
#include <string>

namespace attn_diag::matching {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

bool better(const Candidate& a, const Candidate& b) {
  const auto differ = [](double x, double y) { return x != y; };
  const double wrong_a = share(telling_rows(a.tally), a.tally.wrong_rows);
  const double wrong_b = share(telling_rows(b.tally), b.tally.wrong_rows);
  if (differ(wrong_a, wrong_b)) return wrong_a > wrong_b;
  // A prediction that judges nothing is within its bounds everywhere.
  const double all_a = share(a.tally.within, a.tally.rows) * judged_share(a.tally);
  const double all_b = share(b.tally.within, b.tally.rows) * judged_share(b.tally);
  if (differ(all_a, all_b)) return all_a > all_b;
  if (a.generality != b.generality) return a.generality < b.generality;
  const double off_a = a.tally.median_wrong(), off_b = b.tally.median_wrong();
  // Among those that explain nothing the nearest is of interest; among those that explain all, chance.
  if (wrong_a < 1 && differ(off_a, off_b)) return off_a < off_b;
  return a.order < b.order;
}

bool accounts(const Candidate& candidate) {
  return inside(candidate.tally) && outweighs_its_freedom(candidate.tally, candidate.fitted);
}

Match to_match(const Candidate& candidate) {
  Match match;
  const reference::Variant& variant = candidate.variant;
  for (const reference::Hypothesis* hypothesis : variant.hypotheses) {
    const reference::HypothesisInfo& info = hypothesis->info();
    Match::Part part;
    part.id = std::string(info.id);
    part.statement = std::string(info.statement);
    part.formula = std::string(info.formula);
    part.citation = std::string(info.citation);
    part.remedy = std::string(info.remedy);
    part.stage = info.stage;
    for (const reference::ParameterValue& value : variant.parameters)
      for (const std::string_view name : info.parameters)
        if (value.name == name) part.parameters.push_back(value);
    if (!variant.where.empty()) part.parameters.push_back({"only in", 0, variant.where, true});
    match.parts.push_back(std::move(part));
  }
  match.label = variant.label();
  const Tally& t = candidate.tally;
  match.rows = t.rows;
  match.rows_explained = t.within;
  match.wrong_rows = t.wrong_rows;
  match.wrong_rows_explained = t.wrong_within;
  match.telling_rows = telling_rows(t);
  match.residual_over_bound = t.worst;
  match.median_residual_over_bound = t.median_wrong();
  match.confirmed = candidate.confirmed;
  match.equivalent = candidate.equivalent;
  // The same parameters under another cut of the keys do not count as others.
  std::set<std::string> said{match.label};
  for (const reference::Variant& other : candidate.alternatives)
    if (said.insert(other.label()).second) match.other_parameters.push_back(other.label());
  return match;
}

}  // namespace attn_diag::matching
