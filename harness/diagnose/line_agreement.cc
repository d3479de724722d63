#include "harness/diagnose/line_agreement.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace attn_diag::matching {
namespace {

using reference::Family;

constexpr unsigned bits(std::initializer_list<LineFault> faults) {
  unsigned all = 0;
  for (const LineFault fault : faults) all |= 1U << static_cast<unsigned>(fault);
  return all;
}

// Where numbers can go wrong first, by the family of the bug. Any of them may make NaN, or numbers from no input.
constexpr std::array<unsigned, reference::kNumFamilies> kCanBe = {
    // kLogits: a bias is no factor, it puts weights into other frames; S in a fragment changes rows and keys
    bits({LineFault::kScores, LineFault::kFrames, LineFault::kRows, LineFault::kOperands,
          LineFault::kKeys}),
    // kMask: a key past the end is one of the next head
    bits({LineFault::kKeys, LineFault::kFrames, LineFault::kScores, LineFault::kOperands}),
    // kFetch
    bits({LineFault::kScores, LineFault::kKeys, LineFault::kRows, LineFault::kOperands,
          LineFault::kPlace}),
    // kSoftmax: what lanes do not share lacks in l, or is in another frame
    bits({LineFault::kScores, LineFault::kKeys, LineFault::kFrames, LineFault::kRows,
          LineFault::kDivision}),
    // kPv: a product that several warps add is o times their number
    bits({LineFault::kKeys, LineFault::kFrames, LineFault::kRows, LineFault::kOperands,
          LineFault::kPlace, LineFault::kDivision}),
    // kRecurrence
    bits({LineFault::kKeys, LineFault::kFrames, LineFault::kRows, LineFault::kDivision}),
    // kCombine: partials of another row or column may be read
    bits({LineFault::kKeys, LineFault::kFrames, LineFault::kRows, LineFault::kDivision,
          LineFault::kPlace}),
    // kFinish
    bits({LineFault::kKeys, LineFault::kFrames, LineFault::kRows, LineFault::kDivision}),
    // kStore
    bits({LineFault::kRows, LineFault::kPlace}),
};

// Bugs with fewer line faults than their family.
struct Narrower {
  std::string_view id;
  unsigned can_be;
};
constexpr Narrower kNarrower[] = {
    {"temperature", bits({LineFault::kScores})},
    {"exp-base", bits({LineFault::kScores})},
    {"columns-missing", bits({LineFault::kScores})},
    {"gain", bits({LineFault::kDivision, LineFault::kFrames})},
    {"l-missing", bits({LineFault::kDivision, LineFault::kFrames})},
    {"l-twice", bits({LineFault::kDivision, LineFault::kFrames})},
};

unsigned can_be(const reference::HypothesisInfo& info) {
  for (const Narrower& one : kNarrower)
    if (one.id == info.id) return one.can_be;
  return kCanBe[static_cast<std::size_t>(info.family)];
}

// Whether a bug of the catalogue only rounds: all values are computed as attention asks for.
bool is_rounding(std::string_view id) { return id.ends_with("-narrow"); }

}  // namespace

LineSays line_says(const Match& match, const LineDivergence& lines) {
  const auto of_every_part = [&](const auto& is_so) {
    return std::all_of(match.parts.begin(), match.parts.end(), is_so);
  };
  if (lines.fault == LineFault::kRounding)
    return !match.parts.empty() &&
                   of_every_part([](const Match::Part& part) { return is_rounding(part.id); })
               ? LineSays::kAgrees
               : LineSays::kNothing;
  if (!lines.fault_is_firm || lines.fault == LineFault::kNotKnown ||
      lines.fault == LineFault::kNoNumbers || match.parts.empty())
    return LineSays::kNothing;
  const unsigned found = bits({lines.fault});
  const bool none = of_every_part([&](const Match::Part& part) {
    const reference::Hypothesis* hypothesis = reference::find_hypothesis(part.id);
    return hypothesis != nullptr && !is_rounding(part.id) &&
           (can_be(hypothesis->info()) & found) == 0;
  });
  const bool rounds = of_every_part([](const Match::Part& part) { return is_rounding(part.id); });
  return none || rounds ? LineSays::kOtherwise : LineSays::kAgrees;
}

void confirm_by_line(Diagnosis& diagnosis, const LineDivergence& lines) {
  bool all_otherwise = !diagnosis.best.empty();
  for (Match& match : diagnosis.best) {
    match.line = line_says(match, lines);
    all_otherwise = all_otherwise && match.line == LineSays::kOtherwise;
  }
  const bool named = diagnosis.verdict == DiagnosisVerdict::kNamed ||
                     diagnosis.verdict == DiagnosisVerdict::kClass;
  if (named && all_otherwise) diagnosis.verdict = DiagnosisVerdict::kDisputed;
}

}  // namespace attn_diag::matching
