// Of code of which a line makes a block of numbers at once, as Triton and NumPy do (ValueGraph::whole_blocks).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/lines/sum_suspects.h"

namespace attn_diag::lines {

bool NumberSuspects::is_first_step(std::uint32_t row, std::uint32_t n, std::uint32_t weight) const {
  if (weight != 0 && weight < n && x_terms[weight].kind == TermKind::kWeight)
    return x_terms.keys().has(x_terms[weight].set, 0);
  for (std::uint32_t other = 1; other < n; ++other)
    if (x_terms[other].kind == TermKind::kScore && x_terms[other].row == row &&
        x_terms.columns().count(x_terms[other].set) == x_terms.columns().size())
      return false;
  return true;
}

void NumberSuspects::suggest_last_weight(std::uint32_t row) {
  std::uint32_t last = 0;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if ((op(n) == ValueOp::kExp || op(n) == ValueOp::kExp2) &&
        x_terms[n].kind == TermKind::kWeight && x_terms[n].row == row)
      last = n;
  suggest_node(last, "makes weights, which nobody adds up to l");
}

bool NumberSuspects::has_other_base(std::uint32_t score, std::uint32_t n) const {
  const bool base2 = op(n) == ValueOp::kExp2;
  constexpr float kLn2 = 0.69314718F;
  const auto scale = static_cast<float>(x_attention.problem().softmax_scale);
  const float fits = base2 ? scale : scale / kLn2;  // of the other base
  if (std::fabs(x_terms[score].x - fits) > 0.01F * std::fabs(fits)) return false;
  return std::any_of(x_graph.sites.begin(), x_graph.sites.end(), [&](const ValueSite& s) {
    return s.op == (base2 ? ValueOp::kExp : ValueOp::kExp2);
  });
}

bool NumberSuspects::is_sum_of_columns(std::uint32_t n) const {
  if (op(n) == ValueOp::kProduct) return true;
  const std::uint32_t a = node(n).operand[0];
  return op(n) == ValueOp::kAdd && a != 0 && x_terms[a].kind == TermKind::kScore &&
         x_terms.columns().count(x_terms[a].set) < x_terms.columns().size();
}

void NumberSuspects::suggest_shifts(std::uint32_t weight) {
  std::uint32_t at = weight;
  for (int steps = 0; steps < 64 && node(at).site != 0; ++steps) {
    at = made_by(at);
    const ValueOp is = op(at);
    if (node(at).site == 0 || node(at).is_input() || is == ValueOp::kProduct) return;
    std::uint32_t next = 0, number = 0;
    for (const std::uint32_t operand : node(at).operand) {
      if (operand == 0 || operand >= at) continue;
      const TermKind kind = x_terms[operand].kind;
      if (kind == TermKind::kNumber) number = operand;
      if (next == 0 && (kind == TermKind::kScore || kind == TermKind::kWeight)) next = operand;
    }
    const bool adds = is == ValueOp::kAdd || is == ValueOp::kSubtract || is == ValueOp::kFma;
    if (adds && number != 0 && next != 0 && x_terms[next].kind == TermKind::kScore &&
        std::isfinite(node(number).value) && node(number).value != 0) {
      suggest_node(at, "adds a number to the score");
      suggest_uses(node(at).site, "is an operand of what is added to the score");
    }
    if (next == 0) return;
    at = next;
  }
}

void NumberSuspects::suggest_unbiased(std::uint32_t weight) {
  std::uint32_t at = weight;
  for (int steps = 0; steps < 64 && at != 0 && node(at).site != 0 && !node(at).is_input();
       ++steps) {
    if (op(at) == ValueOp::kPick || op(at) == ValueOp::kProduct)
      suggest_node(at, "hands on the score, to which no bias is added");
    if (op(at) == ValueOp::kProduct) return;
    at = node(at).operand[0];
  }
}

void NumberSuspects::suggest_beside_missing_rescale(std::uint32_t n, std::uint32_t before) {
  if (!x_graph.whole_blocks || node(n).site == 0 || is_scaled(before)) return;
  const ValueSite& adds = site(node(n).site);
  // A line that multiplies itself would do so there.
  if (x_text.line(adds.file, adds.line).find('*') != std::string::npos) return;
  const std::uint32_t other = rescaled_beside(n);
  for (const std::uint32_t operand : node(other).operand) {
    const std::uint32_t made = operand == 0 || operand >= other ? 0 : made_by(operand);
    const bool factor = op(made) == ValueOp::kExp || op(made) == ValueOp::kExp2;
    // A line that has the factor uses it in a wrong way.
    if (factor && !site(node(made).site).variable.empty() &&
        x_text.line(adds.file, adds.line).find(site(node(made).site).variable) != std::string::npos)
      return;
  }
  suggest_node(other, "rescales another sum of the row; this one is not");
}

void SumSuspects::suspect_chosen_weight(std::uint32_t row, unsigned key) {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if ((op(n) != ValueOp::kMaximum && op(n) != ValueOp::kMinimum) ||
        x_terms[n].kind != TermKind::kWeight || x_terms[n].row != row ||
        x_terms.keys().has(x_terms[n].set, key))
      continue;
    for (const std::uint32_t operand : node(n).operand)
      if (operand != 0 && x_terms[operand].kind == TermKind::kWeight &&
          x_terms.keys().has(x_terms[operand].set, key))
        return suggest_node(n, "chooses between weights, which should be added");
  }
}

void SumSuspects::suspect_masked_loads(std::uint32_t row, unsigned key) {
  const std::uint32_t wanted = key_row(row, key);
  std::set<std::uint32_t> sites, blocks;  // that look at the row
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (x_terms[n].row == row && x_terms[n].kind == TermKind::kElement && x_terms[n].buffer == 0)
      blocks.insert(node(n).where >> 10);
  for (const host::MaskedLoad& one : x_graph.masked) {
    if (one.buffer == 1 || blocks.count(one.block) == 0) continue;
    std::uint32_t at = 0, column = 0;
    x_attention.locate(static_cast<int>(one.buffer) - 1, one.element, at, column);
    if (at == wanted && !loads_all(one.buffer - 1, row)) sites.insert(one.site);
  }
  const std::string why = fmt::format("masks the load of {}", keys_text({key}));
  for (const std::uint32_t s : sites) {
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop) {
        suggest(s, condition.at, why);
        break;
      }
    suggest(s, why);
  }
  for (const std::uint32_t s : sites) suggest_conditions(s, "if", why);
}

void SumSuspects::suggest_wrong_inverse(std::uint32_t n) {
  const Term* sum = nullptr;
  std::uint32_t inverse = 0;
  for (const std::uint32_t operand : node(n).operand) {
    if (operand == 0 || operand >= n) continue;
    if (x_terms[operand].kind == TermKind::kInverse) inverse = operand;
    if (x_terms[operand].kind == TermKind::kWeight && x_terms[operand].column != kNone)
      sum = &x_terms[operand];
  }
  if (inverse != 0 && sum != nullptr && !same_frame(*sum, x_terms[inverse]))
    suggest_node(made_by(inverse), "makes that factor");
}

void SumSuspects::suggest_idle_v() {
  const std::vector<bool>& alive = reaches_output(false);
  std::map<std::uint32_t, bool> idle;  // by site of a load
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (node(n).is_input() && x_terms[n].buffer == 2)
      idle.try_emplace(node(n).site, true).first->second &= !alive[n];
  for (const auto& [s, all] : idle)
    if (all) suggest(s, "loads v, and nothing is made of it");
}

void SumSuspects::suggest_end_of_loop(std::uint32_t factor) {
  if (node(factor).site == 0 || (op(factor) != ValueOp::kExp && op(factor) != ValueOp::kExp2))
    return;
  const std::uint32_t exponent = made_by(node(factor).operand[0]);
  const std::uint32_t before = node(exponent).site == 0 ? 0 : node(exponent).operand[0];
  // A maximum that is still none.
  if (before == 0 || !x_graph.is_constant(before) || node(before).value > -1e4F) return;
  const ValueSite& made = site(node(factor).site);
  const auto loop_of = [](const ValueSite& s) {
    for (const Condition& condition : conditions_in(s.conditions))
      if (condition.loop) return condition.at.line;
    return 0;
  };
  const int loop = loop_of(made);
  std::uint32_t last = 0;
  for (std::uint32_t s = 1; s < x_graph.sites.size() && loop != 0; ++s)
    if (site(s).ran && site(s).function == made.function && site(s).file == made.file &&
        loop_of(site(s)) == loop && (last == 0 || site(s).line > site(last).line))
      last = s;
  if (last != 0) suggest(last, "ends a step of the loop, and the maximum is not taken over");
}

}  // namespace attn_diag::lines
