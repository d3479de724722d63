#include "tools/diagnosis_matrix/outcome.h"

#include <fmt/format.h>

#include <algorithm>

namespace attn_diag::diagnosis_matrix {
namespace {

bool has(const std::vector<std::string>& ids, const std::string& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool is_pair(const Match& match, const Bug& first, const Bug& second) {
  if (match.parts.size() != 2) return false;
  const std::string &a = match.parts[0].id, &b = match.parts[1].id;
  return (has(first.hypotheses, a) && has(second.hypotheses, b)) ||
         (has(first.hypotheses, b) && has(second.hypotheses, a));
}

}  // namespace

bool names(const Match& match, const Bug& bug) {
  return !match.parts.empty() &&
         std::all_of(match.parts.begin(), match.parts.end(),
                     [&](const Match::Part& part) { return has(bug.hypotheses, part.id); });
}

const char* name(Outcome outcome) {
  constexpr const char* names[] = {"hidden",  "name",      "class", "partial",
                                   "unknown", "not known", "moves", "wrong"};
  return names[static_cast<std::size_t>(outcome)];
}
const char* name(PairOutcome outcome) {
  constexpr const char* names[] = {"both", "one", "unknown", "wrong"};
  return names[static_cast<std::size_t>(outcome)];
}

Outcome judge(const Diagnosis& diagnosis, const Bug& bug) {
  const auto& best = diagnosis.best;
  const Outcome no_claim = bug.hypotheses.empty() ? Outcome::kNotKnown : Outcome::kUnknown;
  const bool in_class =
      std::any_of(best.begin(), best.end(), [&](const Match& match) { return names(match, bug); });
  switch (diagnosis.verdict) {
    case DiagnosisVerdict::kNothingWrong:
      return Outcome::kHidden;
    case DiagnosisVerdict::kNamed:
      return in_class ? Outcome::kName : Outcome::kWrong;
    case DiagnosisVerdict::kClass:
      return in_class ? Outcome::kClass : Outcome::kWrong;
    case DiagnosisVerdict::kPartial:
      return !best.empty() && names(best.front(), bug) ? Outcome::kPartial : no_claim;
    case DiagnosisVerdict::kNotAFormula:
      return Outcome::kMoves;
    case DiagnosisVerdict::kNotJudged:
    case DiagnosisVerdict::kUnknown:
    case DiagnosisVerdict::kDisputed:
      break;
  }
  return no_claim;
}

PairOutcome judge_pair(const Diagnosis& diagnosis, const Bug& first, const Bug& second) {
  const auto& best = diagnosis.best;
  const auto any = [&](const auto& holds) { return std::any_of(best.begin(), best.end(), holds); };
  const bool claims = diagnosis.verdict == DiagnosisVerdict::kNamed ||
                      diagnosis.verdict == DiagnosisVerdict::kClass;
  const bool partial = diagnosis.verdict == DiagnosisVerdict::kPartial;
  const auto both = [&](const Match& match) { return is_pair(match, first, second); };
  const auto one = [&](const Match& match) { return names(match, first) || names(match, second); };
  if (claims && any(both)) return PairOutcome::kBoth;
  if (partial && !best.empty() && both(best.front())) return PairOutcome::kBoth;
  if (claims && any(one)) return PairOutcome::kOne;
  if (partial && !best.empty() && one(best.front())) return PairOutcome::kOne;
  return claims ? PairOutcome::kWrong : PairOutcome::kUnknown;
}

std::string words_of(const Diagnosis& diagnosis) {
  constexpr const char* verdicts[] = {"nothing wrong", "named",         "class",      "partial",
                                      "unknown",       "not a formula", "not judged", "disputed"};
  std::string text = verdicts[static_cast<std::size_t>(diagnosis.verdict)];
  const std::size_t shown = std::min<std::size_t>(diagnosis.best.size(), 4);
  for (std::size_t i = 0; i < shown; ++i) {
    const Match& match = diagnosis.best[i];
    text += fmt::format("{}{} ({}/{} wrong rows, {:.2g}x)", i == 0 ? ": " : " | ", match.label,
                        match.wrong_rows_explained, match.wrong_rows, match.residual_over_bound);
  }
  if (diagnosis.best.size() > shown)
    text += fmt::format(" | and {} more", diagnosis.best.size() - shown);
  return text;
}

}  // namespace attn_diag::diagnosis_matrix
