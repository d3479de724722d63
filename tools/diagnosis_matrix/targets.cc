#include <algorithm>

#include "tools/diagnosis_matrix/report.h"

namespace attn_diag::diagnosis_matrix {
namespace {

struct Counted {
  std::int64_t all = 0, shown = 0, right = 0, wrong = 0;
};

template <class Takes>
Counted count(const std::vector<SingleResult>& results, const Takes& takes) {
  Counted c;
  for (const SingleResult& result : results) {
    if (!takes(result)) continue;
    ++c.all;
    c.shown += result.outcome != Outcome::kHidden;
    c.right += result.outcome == Outcome::kName || result.outcome == Outcome::kClass;
    c.wrong += result.outcome == Outcome::kWrong;
  }
  return c;
}

Target share(std::string what, std::int64_t count, std::int64_t of, double wanted) {
  const double reached = of > 0 ? static_cast<double>(count) / static_cast<double>(of) : 0.0;
  return {std::move(what), reached, wanted, count, of, false, false};
}
Target none(std::string what, std::int64_t count, std::int64_t of) {
  return {std::move(what), static_cast<double>(count), 0.0, count, of, true, false};
}

void of_singles(const std::vector<SingleResult>& results, const std::string& whose,
                std::vector<Target>& all) {
  const auto with = [&](const char* inputs) {
    return count(results, [&](const SingleResult& r) { return r.setting.inputs.name == inputs; });
  };
  const Counted probe = with("probe"), randn = with("randn");
  const Counted any = count(results, [](const SingleResult&) { return true; });
  all.push_back(share("probe: detected" + whose, probe.shown, probe.all, 1.0));
  all.push_back(share("probe: right name or class" + whose, probe.right, probe.all, 0.98));
  all.push_back(none("probe: wrong name" + whose, probe.wrong, probe.all));
  all.push_back(share("randn: right name or class" + whose, randn.right, randn.all, 0.9));
  all.push_back(none("all inputs: wrong name" + whose, any.wrong, any.all));
}

}  // namespace

std::vector<Target> targets(const Evidence& evidence) {
  std::vector<Target> all;
  // Results for bugs that the catalogue has a statement of by now.
  const auto today = [&](const std::string& frozen_at) {
    std::vector<SingleResult> results;
    for (const SingleResult& r : evidence.singles)
      if (r.bug->frozen_at == frozen_at && !r.bug->hypotheses.empty()) results.push_back(r);
    return results;
  };
  of_singles(today(""), "", all);
  for (const std::string& commit : freezes(evidence)) {
    const std::string whose = ", bugs written after " + commit;
    const std::size_t past = all.size();
    for (const FirstAnswers& first : evidence.first_answers)
      if (first.commit == commit) of_singles(first.answers, whose + ", when first asked", all);
    for (std::size_t i = past; i < all.size(); ++i) all[i].is_past = true;
    of_singles(today(commit), whose + ", today", all);
  }
  // For a bug without a statement in the catalogue the right answer is "none of the known bugs".
  std::int64_t strange = 0, given_a_name = 0;
  for (const SingleResult& result : evidence.singles) {
    if (!result.bug->hypotheses.empty()) continue;
    ++strange;
    given_a_name += result.outcome == Outcome::kWrong;
  }
  all.push_back(none("bugs that are not in the catalogue: given a name", given_a_name, strange));
  std::int64_t pairs = 0, both = 0;
  for (const PairResult& pair : evidence.pairs) {
    if (pair.is_masked) continue;
    ++pairs;
    both += pair.outcome == PairOutcome::kBoth;
  }
  all.push_back(share("two bugs: both named", both, pairs, 0.8));
  const auto moves = std::count_if(evidence.unsteady.begin(), evidence.unsteady.end(),
                                   [](const UnsteadyResult& result) {
                                     return result.finding != SanityFinding::kNotChecked &&
                                            result.finding != SanityFinding::kSteady;
                                   });
  all.push_back(share("no formula: gate 0 says that the result moves", moves,
                      static_cast<std::int64_t>(evidence.unsteady.size()), 1.0));
  all.push_back(none("right kernels: detections",
                     static_cast<std::int64_t>(evidence.right.detections.size()),
                     evidence.right.cases));
  std::erase_if(all, [](const Target& target) { return target.of == 0; });
  return all;
}

}  // namespace attn_diag::diagnosis_matrix
