#include "harness/lines/causes.h"

#include <algorithm>
#include <cmath>

namespace attn_diag::lines {

Cause Causes::cause_of(const OutputElement& element) {
  const host::ValueOutput& output = x_graph.outputs[element.of_lse ? 1 : 0][element.index];
  Cause cause;
  if (element.of_lse)
    cause.row = static_cast<std::uint32_t>(element.index);
  else
    x_attention.locate_output(element.index, cause.row, cause.column);
  if (output.block == ~0u) {
    cause.what = What::kUnstored;
    return cause;
  }
  cause.site = store_of(output);
  cause.node = output.node;
  const Term term = output.node == 0 ? Term{} : x_terms[output.node];
  if (term.kind == TermKind::kIll) {
    cause.what = What::kIll;
    cause.ill = term.ill;
    cause.node = term.root;
    cause.site = node(term.root).site;
    return cause;
  }
  // A number was chosen, perhaps because another one that decides was ill.
  if (term.kind == TermKind::kNumber)
    for (std::uint32_t at = output.node; node(at).site != 0 && at != made_by(at);
         at = node(at).operand[0]) {
      const std::uint32_t other = op(at) == ValueOp::kPick ? node(at).operand[1] : 0;
      if (other == 0 || other >= at || x_terms[other].kind != TermKind::kIll) continue;
      cause.what = What::kIll;
      cause.ill = x_terms[other].ill;
      cause.node = x_terms[other].root;
      cause.site = node(cause.node).site;
      return cause;
    }
  if (element.of_lse) return cause_of_lse(term, cause, element.wrong);
  if (term.kind != TermKind::kWeight || term.column == kNone) {
    // In a row without keys, o is 0.
    if (term.kind == TermKind::kNumber && sees_nothing(cause.row) && !element.wrong) return cause;
    cause.what = What::kNothing;
    if (term.kind == TermKind::kNumber)
      for (unsigned j = 0; j < x_terms.keys().size(); ++j)
        if (x_attention.visible(cause.row, j)) cause.keys.push_back(j);
    return cause;
  }
  if (term.row != cause.row) {
    cause.what = What::kOtherRow;
    return cause;
  }
  if (term.column != cause.column) {
    cause.what = What::kOtherColumn;
    return cause;
  }
  if (keys_differ(term, cause)) return cause;
  if (std::fabs(term.x - x_attention.lse(cause.row)) > 0.01) {
    cause.what = What::kFrame;
    cause.undivided = is_undivided(term);
    if (!cause.undivided) frame_cause(cause);
    return cause;
  }
  return cause;
}

bool Causes::is_unseen(const OutputElement& element, const Cause& cause) const {
  if (cause.ill == Ill::kUnwatched) return true;
  const host::ValueOutput& output = x_graph.outputs[element.of_lse ? 1 : 0][element.index];
  return x_graph.full && output.node == 0 && output.block != ~0u;
}

bool Causes::is_right_by_luck(const OutputElement& element, const Cause& cause) {
  // o of a row that sees one key is v of that, whatever its score is.
  const bool of_scores = cause.ill == Ill::kScale || cause.ill == Ill::kPartial ||
                         cause.ill == Ill::kFactors || cause.ill == Ill::kColumns;
  if (of_scores && !element.of_lse && num_seen(cause.row) == 1) return true;
  if (!x_graph.whole_blocks || (cause.what != What::kMissing && cause.what != What::kExtra))
    return false;
  const double lse = x_attention.lse(cause.row);
  double moved = 0;  // at most about that: by v there, and by what all others then weigh
  for (const unsigned key : cause.keys) {
    const std::uint32_t row = key_row(cause.row, key);
    const double v = element.of_lse ? 0 : std::fabs(x_attention.element(2, row, cause.column));
    moved += std::exp(x_attention.score(cause.row, row) - lse) * (1 + v);
  }
  return moved <= 4 * element.bound;
}

bool Causes::is_undivided(const Term& term) {
  if (!x_sums_known) {
    x_sums_known = true;
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
      if (const Term& l = x_terms[n];
          l.kind == TermKind::kWeight && l.column == kNone && !std::isnan(l.x))
        x_frames[{l.row, l.set}].insert(l.x);
  }
  const auto found = x_frames.find({term.row, term.set});
  if (found == x_frames.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](float x) {
    Term l = term;
    l.x = x;
    return same_frame(l, term);
  });
}

Cause Causes::cause_of_lse(const Term& term, Cause cause, bool wrong) const {
  if (term.kind == TermKind::kNumber && sees_nothing(cause.row) && !wrong) return cause;
  if (term.kind != TermKind::kLog) {
    cause.what = What::kNothing;
    return cause;
  }
  if (term.row != cause.row) {
    cause.what = What::kOtherRow;
    return cause;
  }
  if (keys_differ(term, cause)) {
    cause.of_l = true;
    return cause;
  }
  if (wrong) cause.what = What::kFrame;
  return cause;
}

bool Causes::keys_differ(const Term& term, Cause& cause) const {
  std::vector<unsigned> missing, extra;
  for (unsigned j = 0; j < x_terms.keys().size(); ++j) {
    const bool has = x_terms.keys().has(term.set, j), should = x_attention.visible(cause.row, j);
    if (has && !should) extra.push_back(j);
    if (!has && should) missing.push_back(j);
  }
  if (missing.empty() && extra.empty()) return false;
  cause.what = extra.empty() ? What::kMissing : What::kExtra;
  cause.keys = extra.empty() ? missing : extra;
  // Weights that are 0 in float count as nothing.
  if (extra.empty()) {
    const double lse = x_attention.lse(cause.row);
    std::erase_if(cause.keys, [&](unsigned j) {
      return x_attention.score(cause.row, key_row(cause.row, j)) - lse < -80;
    });
    if (cause.keys.empty()) {
      cause.what = What::kOther;
      return false;
    }
  }
  return true;
}

void Causes::frame_cause(Cause& cause) {
  std::vector<std::uint32_t> pending = {made_by(cause.node)};
  bool placed = false;
  for (std::size_t i = 0; i < pending.size() && i < 256; ++i) {
    const std::uint32_t at = pending[i];
    if (node(at).site == 0 || node(at).is_input()) continue;
    const ValueOp is = op(at);
    if (is == ValueOp::kDivide || is == ValueOp::kMultiply) {
      for (const unsigned side : {1u, 0u}) {
        const std::uint32_t by = node(at).operand[side];
        if (by == 0) continue;
        const Term& term = x_terms[by];
        const bool is_sum = term.kind == TermKind::kInverse ||
                            (is == ValueOp::kDivide && side == 1 &&
                             term.kind == TermKind::kWeight && term.column == kNone);
        if (!is_sum) continue;
        Cause of_sum = cause;
        if (keys_differ(term, of_sum) && of_sum.what != What::kOther) {
          cause = of_sum;
          cause.of_l = true;
          cause.node = by;
          cause.site = node(at).site;
          return;
        }
      }
      if (!placed) {
        placed = true;
        cause.node = at;
        cause.site = node(at).site;
      }
    }
    if (is == ValueOp::kProduct) {
      if (const auto pairs = x_graph.pairs_of(node(at)); !pairs.empty())
        pending.push_back(made_by(pairs.front().left));
      continue;
    }
    for (const std::uint32_t operand : operands(at))
      if (x_terms[operand].kind == TermKind::kWeight) pending.push_back(made_by(operand));
  }
}

}  // namespace attn_diag::lines
