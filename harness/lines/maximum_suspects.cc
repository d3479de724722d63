// What scores are relative to: where the maximum was made, kept, or handed on from lane to lane.
#include <algorithm>
#include <numbers>
#include <set>

#include "harness/lines/sum_suspects.h"

namespace attn_diag::lines {

void NumberSuspects::suggest_kept_too_early(std::uint32_t n) {
  if (x_graph.whole_blocks || node(n).site == 0) return;
  for (const std::uint32_t operand : operands(n)) {
    const std::uint32_t factor = made_by(operand);
    if (!is_exponential(factor) || node(factor).value != 1) continue;
    const auto [most, exponent] = subtracted(node(factor).operand[0]);
    if (most == 0 || op(exponent) != ValueOp::kSubtract ||
        made_by(node(exponent).operand[0]) != made_by(most))
      continue;
    const ValueSite& at = site(node(exponent).site);
    const std::string& text = x_text.line(at.file, at.line);
    for (const std::string& name : minuends(text)) {
      const int line = x_text.assigned_above(at.file, at.line, name);
      bool moves = false;
      const std::vector<std::string> of =
          line == 0 ? std::vector<std::string>{} : made_of(x_text.line(at.file, line), name, moves);
      if (of.size() == 1 && has_name(text, of))
        suggest(at.file, at.function, line, 0, name, "is what is subtracted from it then");
    }
  }
}

void NumberSuspects::suggest_kept_maximum(std::uint32_t factor, std::uint32_t sum) {
  const std::uint32_t exponent = is_exponential(factor) ? made_by(node(factor).operand[0]) : 0;
  if (exponent == 0 || sum == 0 || op(exponent) != ValueOp::kSubtract) return;
  const std::uint32_t kept = node(exponent).operand[0];
  if (kept == 0 || kept >= exponent) return;
  Term frame = x_terms[sum];
  frame.x = node(kept).value * (op(factor) == ValueOp::kExp2 ? std::numbers::ln2_v<float> : 1.0F);
  for (std::uint32_t n = factor; n < x_graph.nodes.size(); ++n)
    if (op(n) == ValueOp::kMultiply)
      for (const bool left : {true, false})
        if (const std::uint32_t other = node(n).operand[left ? 1 : 0];
            made_by(node(n).operand[left ? 0 : 1]) == factor && other < n &&
            x_terms[other].kind == TermKind::kWeight && same_frame(frame, x_terms[other]))
          return;  // of that sum it is right
  const std::string why = "keeps another maximum than that of the sum so far";
  // What a later line gives a variable, or stores, is for the next step of the loop.
  const ValueSite& at = site(node(exponent).site);
  for (std::uint32_t n = kept; n != made_by(kept); n = node(n).operand[0])
    if (const ValueSite& store = site(node(n).site);
        op(n) == ValueOp::kStore && (store.line > at.line || store.function != at.function))
      suggest_node(n, why);
  for (const NamedLine& use : variables_in(at.uses, ','))
    if (use.line > at.line && !use.constant) suggest(node(exponent).site, use, why);
}

std::pair<std::uint32_t, std::uint32_t> NumberSuspects::subtracted(std::uint32_t exponent) const {
  for (int steps = 0; steps < 8 && exponent != 0; ++steps) {
    exponent = made_by(exponent);
    const auto& operand = node(exponent).operand;
    const ValueOp is = op(exponent);
    if (is == ValueOp::kSubtract || is == ValueOp::kFma)
      return {operand[is == ValueOp::kFma ? 2 : 1], exponent};
    if (is != ValueOp::kMultiply && is != ValueOp::kDivide) break;
    exponent = first_operand(exponent, TermKind::kScore);
  }
  return {0, 0};
}

void NumberSuspects::suggest_maximum(std::uint32_t n) {
  for (int steps = 0; steps < 32 && n != 0; ++steps) {
    n = made_by(n);
    const ValueOp is = op(n);
    if (is == ValueOp::kExp || is == ValueOp::kExp2) {
      const auto [most, exponent] = subtracted(node(n).operand[0]);
      if (most == 0) return;
      // Where lanes take it from each other, each should have the same in the end.
      const std::string why = "takes the maximum of another thread";
      suggest_shuffles(most, why, true);
      for (const NamedLine& use : variables_in(site(node(exponent).site).uses, ','))
        if (text_of(node(exponent).site, use).find("shfl") != std::string::npos &&
            makes_maximum(node(exponent).site, use))
          suggest(node(exponent).site, use, why);
      suggest_lack_of_broadcast();
      suggest_moves(most, "makes the maximum");
      for (const NamedLine& use : variables_in(site(node(exponent).site).uses, ','))
        if (!x_graph.whole_blocks && use.name == site(node(most).site).variable)
          suggest(node(exponent).site, use, "stores the maximum");
      suggest_uses(node(exponent).site, "is an operand of the exponent");
      return;
    }
    if (node(n).site == 0 || is == ValueOp::kProduct || node(n).is_input()) return;
    // What rescales a sum says what it is relative to then.
    const std::uint32_t factor =
        is == ValueOp::kMultiply
            ? first_operand(n, [&](std::uint32_t of) { return is_exponential(made_by(of)); })
            : 0;
    n = factor != 0 ? factor : first_operand(n, TermKind::kWeight);
  }
}

void NumberSuspects::suggest_lack_of_broadcast() {
  if (x_graph.whole_blocks || x_out.suspects.empty()) return;
  const LinePlace at = x_out.suspects.back().place;
  if (x_text.statement(at.file, at.line).find("shfl_down") == std::string::npos) return;
  const std::vector<Statement> around = x_text.statements_around(at.file, at.line);
  if (around.empty() || !around.back().loop) return;
  const int end = around.back().end;
  suggest(at.file, at.function, end > at.line ? end : end + 1, 0, at.variable,
          "the first lane alone has it then: nothing here hands it to the others");
}

void NumberSuspects::suggest_helper_of_maximum(std::uint32_t exponential) {
  const ValueSite& at = site(exponential);
  if (x_graph.whole_blocks || at.line == 0) return;
  for (const std::string& name : subtracted_names(x_text.line(at.file, at.line))) {
    const int made = x_text.assigned_above(at.file, at.line, name);
    for (const std::string& helper : called_names(x_text.line(at.file, made)))
      for (const int line : x_text.lines_of_function(at.file, helper))
        if (!assigned_names(x_text.line(at.file, line)).empty() ||
            x_text.line(at.file, line).find("return") != std::string::npos)
          suggest(at.file, helper, line, 0, "", "should make the maximum of all threads");
  }
}

bool NumberSuspects::makes_maximum(std::uint32_t near, const NamedLine& at) const {
  const std::string& file = file_of(near, at);
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (const ValueSite& s = site(node(n).site);
        s.line == at.line && s.file == file && is_compared(n))
      return true;
  return false;
}

bool NumberSuspects::is_compared(std::uint32_t n) const {
  for (const std::uint32_t made = made_by(n);; n = node(n).operand[0]) {
    const std::uint32_t other = op(n) == ValueOp::kPick ? node(n).operand[1] : 0;
    if (op(n) == ValueOp::kMaximum ||
        (other != 0 && other < x_graph.nodes.size() && x_terms[other].kind == TermKind::kScore))
      return true;
    if (n == made || node(n).site == 0) return false;
  }
}

void NumberSuspects::suggest_shuffles(std::uint32_t n, const std::string& why, bool of_maximum) {
  constexpr std::size_t kMost = 64;
  std::vector<std::uint32_t> pending = {n};
  std::set<std::uint32_t> compared;  // operands of a maximum
  for (std::size_t i = 0; i < pending.size() && i < kMost; ++i) {
    std::uint32_t at = pending[i];
    const std::uint32_t made = made_by(at);
    const bool is_maximum = is_compared(at);
    // A score that lanes summed is no maximum that they took from each other.
    if (of_maximum && i > 0 && !is_maximum && compared.count(at) == 0) continue;
    for (; node(at).site != 0; at = node(at).operand[0]) {
      const ValueSite& s = site(node(at).site);
      const std::string& text = x_text.line(s.file, s.line);
      if (text.find("shfl") != std::string::npos &&
          (!of_maximum || is_maximum || compared.count(pending[i]) != 0)) {
        const bool butterfly =
            text.find("xor") != std::string::npos || text.find("bfly") != std::string::npos;
        if (!butterfly) suggest(node(at).site, why);
        for (const Condition& condition : conditions_in(s.conditions))
          if (condition.loop && has_name(text, names_of(condition.tests)))
            suggest(node(at).site, condition.at, "decides which lanes take part");
        return suggest(node(at).site, why);
      }
      if (at == made) break;
    }
    if (node(at).site == 0 || node(at).is_input() || op(at) == ValueOp::kProduct) continue;
    for (const std::uint32_t operand : operands(at))
      if (x_terms[operand].kind == x_terms[n].kind) {
        pending.push_back(operand);
        if (op(at) == ValueOp::kMaximum) compared.insert(operand);
      }
  }
}

void SumSuspects::suggest_chosen_maximum(std::uint32_t row) {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (!is_exponential(n) || node(n).site == 0 || term.kind != TermKind::kWeight ||
        term.row != row || term.x != 0)
      continue;
    const ValueSite& at = site(node(n).site);
    for (const std::string& name : subtracted_names(x_text.line(at.file, at.line)))
      if (const int made = x_text.assigned_above(at.file, at.line, name);
          made != 0 && may_choose(x_text.statement(at.file, made), name, 0))
        suggest(at.file, at.function, made, 0, name, "chooses 0 for what is subtracted of scores");
    return;
  }
}

void SumSuspects::suggest_maximum_of_lse(std::uint32_t lse) {
  if (x_graph.whole_blocks || first_operand(lse, TermKind::kLog) == 0) return;
  // "lse[row] = l > 0 ? m + log(l) : none;": m.
  const ValueSite& at = site(node(lse).site);
  std::string text = x_text.line(at.file, at.line);
  if (const std::size_t begin = text.rfind("log"); begin != text.npos)
    text.erase(begin, text.find(')', begin) - begin);
  text.erase(0, text.find(" = ") == text.npos ? 0 : text.find(" = "));
  if (const std::size_t chosen = text.find('?'); chosen != text.npos) text.erase(0, chosen);
  // A number that comes of no score, by name.
  if (first_operand(lse, TermKind::kScore) == 0) {
    for (const std::string& name : variables_of(text))
      suggest_maximum_by_name(at, at.line, name, 0);
    return;
  }
  for (const NamedLine& use : variables_in(at.uses, ','))
    if (!use.constant && use.line != at.line && has_name(text, {use.name}))
      suggest(node(lse).site, use, "gives the maximum that lse takes");
}

void SumSuspects::suggest_maximum_by_name(const ValueSite& at, int line, const std::string& name,
                                          int depth) {
  constexpr int kDeepest = 4;
  const int made = x_text.assigned_above(at.file, line, name);
  if (made == 0 || depth == kDeepest || x_text.is_integer(at.file, line, name)) return;
  // Where it is what it was before the loop that subtracts from it, no step keeps it.
  for (int in = made + 1; in < line; ++in)
    if (const std::vector<std::string> kept = minuends(x_text.line(at.file, in));
        std::find(kept.begin(), kept.end(), name) != kept.end())
      for (const Statement& around : x_text.statements_around(at.file, in))
        if (around.loop && around.begin > made && around.end < line) {
          suggest_end_of_use(at, around, in, name);
          suggest(at.file, at.function, in, 0, name,
                  "takes " + name + ", which is never anything else");
          return;
        }
  const std::string& text = x_text.line(at.file, made);
  const std::string why = "gives the maximum that lse takes";
  if (begins_late(text)) suggest(at.file, at.function, made, 0, name, "leaves its first steps out");
  bool moves = false;
  for (const std::string& of : made_of(text, name, moves))
    if (const int declared = x_text.declared_above(at.file, made, of);
        of != name && declared != 0 && declares_real(x_text.line(at.file, declared), of))
      suggest_maximum_by_name(at, made, of, depth + 1);
  suggest(at.file, at.function, made, 0, name, why);
}

}  // namespace attn_diag::lines
