#include "harness/lines/fault.h"

namespace attn_diag {

const char* name(LineFault fault) {
  switch (fault) {
    case LineFault::kNotKnown:
      return "not_known";
    case LineFault::kScores:
      return "scores";
    case LineFault::kKeys:
      return "keys";
    case LineFault::kFrames:
      return "frames";
    case LineFault::kRows:
      return "rows";
    case LineFault::kOperands:
      return "operands";
    case LineFault::kDivision:
      return "division";
    case LineFault::kPlace:
      return "place";
    case LineFault::kNoNumbers:
      return "no_numbers";
    case LineFault::kRounding:
      return "rounding";
  }
  return "";
}

namespace lines {

namespace {

// Whether a number without meaning was made of weights: else of q, k and scores.
bool of_weights(const Terms& terms, std::uint32_t n) {
  const host::ValueGraph& graph = terms.graph();
  const host::ValueNode& node = graph.nodes[n];
  const auto is_weight = [&](std::uint32_t operand) {
    const TermKind kind = terms[operand].kind;
    return kind == TermKind::kWeight || kind == TermKind::kInverse || kind == TermKind::kLog;
  };
  if (graph.sites[node.site].op == host::ValueOp::kProduct) {
    for (const auto& [left, right] : graph.pairs_of(node))
      if (is_weight(left) || is_weight(right)) return true;
    return is_weight(node.operand[0]);
  }
  for (const std::uint32_t operand : node.operand)
    if (operand != 0 && operand < n && is_weight(operand)) return true;
  return false;
}

}  // namespace

LineFault fault_of(const Terms& terms, const Cause& cause) {
  switch (cause.what) {
    case What::kUnstored:
    case What::kOtherColumn:
      return LineFault::kPlace;
    case What::kNothing:
      return LineFault::kNoNumbers;
    case What::kOtherRow:
      return LineFault::kRows;
    case What::kMissing:
    case What::kExtra:
      return LineFault::kKeys;
    case What::kFrame:
      return LineFault::kDivision;
    case What::kOther:
      return LineFault::kRounding;
    case What::kIll:
      break;
  }
  const bool weights = of_weights(terms, cause.node);
  switch (cause.ill) {
    case Ill::kColumns:
    case Ill::kHeads:
      return weights ? LineFault::kOperands : LineFault::kScores;
    case Ill::kKeys:
      return LineFault::kOperands;
    case Ill::kRows:
      return LineFault::kRows;
    case Ill::kTwice:
      return weights ? LineFault::kKeys : LineFault::kScores;
    case Ill::kFactors:
    case Ill::kPartial:
    case Ill::kScale:
    case Ill::kSumOfScores:
      return LineFault::kScores;
    case Ill::kOffset:
      return weights ? LineFault::kNoNumbers : LineFault::kScores;
    case Ill::kFrames:
      return LineFault::kFrames;
    case Ill::kNot:
    case Ill::kNoScore:  // a key too many, or a score that was lost
    case Ill::kUnwritten:
    case Ill::kSign:
    case Ill::kMeaningless:
    case Ill::kUnknown:
    case Ill::kUnwatched:
      break;
  }
  return LineFault::kNoNumbers;
}

}  // namespace lines

}  // namespace attn_diag
