// Code in which a line makes a block of numbers at once, as in Triton and NumPy (ValueGraph::whole_blocks).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "harness/lines/sum_suspects.h"

namespace attn_diag::lines {

bool NumberSuspects::is_first_step(std::uint32_t row, std::uint32_t n, std::uint32_t weight) const {
  if (weight != 0 && weight < n && x_terms[weight].kind == TermKind::kWeight)
    return x_terms.keys().has(x_terms[weight].set, 0);
  std::uint32_t first = n;  // of the same operation on a block
  while (first > 1 && node(first - 1).site == node(n).site) --first;
  for (std::uint32_t other = 1; other < first; ++other)
    if (x_terms[other].kind == TermKind::kScore && x_terms[other].row == row &&
        is_whole(x_terms[other]))
      return false;
  return true;
}

void NumberSuspects::suggest_last_weight(std::uint32_t row) {
  const auto in_loop = [&](std::uint32_t n) {
    return n != 0 && site(node(n).site).conditions.find("loop ") != std::string::npos;
  };
  std::uint32_t last = 0;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (is_exponential(n) && x_terms[n].kind == TermKind::kWeight && x_terms[n].row == row &&
        (in_loop(n) || !in_loop(last)))
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
    for (const std::uint32_t operand : operands(at)) {
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
  if (node(n).site == 0 || is_scaled(before)) return;
  const ValueSite& adds = site(node(n).site);
  if (!x_graph.whole_blocks) {
    const Term& sum = x_terms[before];
    for (std::uint32_t other = made_by(before) + 1; other < n; ++other) {
      const Term& term = x_terms[other];
      const bool is_sibling = term.kind == TermKind::kWeight && term.row == sum.row &&
                              term.column != sum.column && term.column != kNone &&
                              sum.column != kNone;
      if (op(other) != ValueOp::kMultiply || !is_sibling || node(other).where != node(n).where ||
          site(node(other).site).line == adds.line)
        continue;
      // A line that adds, too, would rescale this sum where it adds to it.
      const ValueSite& rescales = site(node(other).site);
      const bool is_alone =
          x_text.line(rescales.file, rescales.line).find('+') == std::string::npos;
      for (const std::uint32_t factor : {node(other).operand[0], node(other).operand[1]})
        if (is_alone && factor != 0 && factor < other && is_exponential(made_by(factor)))
          return suggest_node(other, "rescales another sum of the row; this one is not");
    }
    return;
  }
  // A line that multiplies itself would do so there.
  if (x_text.line(adds.file, adds.line).find('*') != std::string::npos) return;
  const std::uint32_t other = rescaled_beside(n);
  for (const std::uint32_t operand : operands(other)) {
    const std::uint32_t made = made_by(operand);
    const bool factor = is_exponential(made);
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
    for (const std::uint32_t operand : operands(n))
      if (x_terms[operand].kind == TermKind::kWeight &&
          x_terms.keys().has(x_terms[operand].set, key))
        return suggest_node(n, "chooses between weights, which should be added");
  }
}

void NumberSuspects::suspect_masked_loads(std::uint32_t row, unsigned key) {
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
  for (const std::uint32_t s : sites) suggest_late_loops(s);
  suggest_masks(sites, fmt::format("masks the load of {}", keys_text({key})));
}

void NumberSuspects::suggest_masks(const std::set<std::uint32_t>& sites, const std::string& why) {
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

void NumberSuspects::suspect_masked_query(std::uint32_t row) {
  if (loads_all(0, row)) return;
  std::set<std::uint32_t> sites;
  for (const host::MaskedLoad& one : x_graph.masked) {
    std::uint32_t at = 0, column = 0;
    if (one.buffer != 1) continue;
    x_attention.locate(0, one.element, at, column);
    if (at == row) sites.insert(one.site);
  }
  suggest_masks(sites, fmt::format("masks the load of q of {}", query_text(row)));
}

void Suspects::suggest_beside_unmoved(std::uint32_t loader) {
  const ValueSite& load = site(loader);
  const auto loop_of = [&](std::uint32_t s) {
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop && file_of(s, condition.at) == site(s).file) return condition.at.line;
    return 0;
  };
  const int loop = loop_of(loader);
  if (loop == 0) return;
  const int end = x_text.behind_block(load.file, loop);
  const auto moves = [&](std::uint32_t s, const NamedLine& use) {
    return file_of(s, use) == load.file && use.line >= loop && (end == 0 || use.line < end);
  };
  const std::vector<NamedLine> own = variables_in(load.uses, ',');
  if (std::any_of(own.begin(), own.end(), [&](const NamedLine& use) { return moves(loader, use); }))
    return;
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    if (site(s).file != load.file || loop_of(s) != loop) continue;
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (moves(s, use) && text_of(s, use).find("+=") != std::string::npos &&
          site(s).variable == use.name)
        suggest(s, use, "moves another pointer from step to step; this one is not moved");
  }
}

void NumberSuspects::suggest_behind_unread() {
  std::uint32_t last = 0;
  for (const std::uint32_t s : x_graph.unread)
    if (last == 0 || (site(s).file == site(last).file && site(s).line > site(last).line)) last = s;
  if (last == 0) return;
  NamedLine at;
  at.file = site(last).file;
  at.line = x_text.behind_block(at.file, site(last).line);
  const std::string why = "does not read " + site(last).variable + ", which nobody reads";
  if (at.line != 0) suggest(last, at, why);
  suggest(last, "makes what nobody reads");
}

void NumberSuspects::suspect_input(std::uint32_t n, std::uint32_t a, std::uint32_t b) {
  if (a == 0 || b == 0 || a >= n || b >= n) return;
  const Term &left = x_terms[a], &right = x_terms[b];
  const std::string why = "loads another input than belongs there";
  const auto is_element = [](const Term& term) { return term.kind == TermKind::kElement; };
  const auto suggest_load_of = [&](std::uint32_t operand) {
    const std::uint32_t input = load_of(operand);
    if (input == 0) return;
    // It names the input itself, or a pointer that does.
    const ValueSite& load = site(node(input).site);
    if (!is_plain_subscript(x_text.line(load.file, load.line), load.variable))
      suggest(node(input).site, why);
    suggest_loader(node(input).site, why);
  };
  if (left.kind == TermKind::kScore || right.kind == TermKind::kScore) {
    for (const std::uint32_t operand : {a, b})
      if (is_element(x_terms[operand])) suggest_load_of(operand);
    return;
  }
  if (!is_element(left) || !is_element(right)) return;
  // Mostly the left should be q, and the right k.
  const bool first = left.buffer == right.buffer ? left.buffer != 0 : left.buffer == 2;
  for (const std::uint32_t operand : first ? std::array{a, b} : std::array{b, a})
    suggest_load_of(operand);
}

void NumberSuspects::suggest_unmasked(std::uint32_t number) {
  std::uint32_t at = number;
  for (int steps = 0; steps < 64; ++steps) {
    std::uint32_t next = 0;
    for (const std::uint32_t operand : operands(at))
      if (next == 0 && node(operand).site != 0 && x_terms[operand].kind == TermKind::kNumber)
        next = operand;
    if (op(at) == ValueOp::kPick) suggest_node(at, "lets a number through that comes of no key");
    if (next == 0 || op(at) == ValueOp::kProduct || node(at).site == 0) break;
    at = next;
  }
  // Constants that a sum begins with are none.
  if (at != number && node(at).site != 0)
    suggest_node(at, "makes a number of a key that was not loaded");
}

void NumberSuspects::suspect_load_of_rows(std::uint32_t n, std::uint32_t a, std::uint32_t b) {
  // By program and load which query rows it has.
  std::map<std::uint32_t, std::set<std::uint32_t>> rows;
  const std::uint32_t program = node(n).where;
  for (std::uint32_t m = 1; m < n; ++m)
    if (node(m).where == program && is_load(m) && !node(m).is_input() &&
        (x_terms[m].kind == TermKind::kScore || x_terms[m].kind == TermKind::kWeight))
      rows[node(m).site].insert(x_terms[m].row);
  for (const std::uint32_t operand : {a, b}) {
    if (operand == 0 || operand >= n) continue;
    const std::uint32_t made = made_by(operand);
    for (std::uint32_t at = operand; at != made && node(at).site != 0; at = node(at).operand[0]) {
      const auto own = is_load(at) ? rows.find(node(at).site) : rows.end();
      if (own == rows.end()) continue;
      for (const auto& [other, theirs] : rows)
        if (other != own->first && theirs.size() < own->second.size())
          return suggest(own->first, "loads what was made of other query rows than others load");
    }
  }
}

void SumSuspects::suggest_wrong_inverse(std::uint32_t n) {
  const Term* sum = nullptr;
  std::uint32_t inverse = 0;
  for (const std::uint32_t operand : operands(n)) {
    if (x_terms[operand].kind == TermKind::kInverse) inverse = operand;
    if (x_terms[operand].kind == TermKind::kWeight && x_terms[operand].column != kNone)
      sum = &x_terms[operand];
  }
  if (inverse != 0 && sum != nullptr && !same_frame(*sum, x_terms[inverse]))
    suggest_node(made_by(inverse), "makes that factor");
}

void SumSuspects::suggest_bare_exponentials(std::uint32_t row) {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const std::uint32_t of = node(n).operand[0];
    if (is_exponential(n) && of != 0 && of < n && x_terms[of].kind == TermKind::kScore &&
        x_terms[of].row == row && !x_terms[of].shifted)
      return suggest_node(n, "takes an exponential of which no maximum was subtracted");
  }
}

void SumSuspects::suggest_behind(std::uint32_t made, const std::string& why) {
  if (node(made).site == 0) return;
  const ValueSite& s = site(node(made).site);
  NamedLine at;
  at.file = s.file;
  at.line = s.line;
  const std::vector<NamedLine> callers = lines_in(s.callers);
  if (!callers.empty()) {
    at.line = callers.front().line;
    at.file = file_of(node(made).site, callers.front());
  } else {
    for (const Condition& condition : conditions_in(s.conditions))
      if (condition.loop) at.line = condition.at.line;  // the outermost
  }
  at.line = x_text.behind_block(at.file, at.line);
  if (at.line != 0) suggest(node(made).site, at, why);
}

void SumSuspects::suggest_idle_v(std::uint32_t row) {
  const std::vector<bool>& alive = reaches_output(false);
  std::map<std::uint32_t, bool> idle;  // by site of a load
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (node(n).is_input() && x_terms[n].buffer == 2)
      idle.try_emplace(node(n).site, true).first->second &= !alive[n];
  std::erase_if(idle, [](const auto& one) { return !one.second; });
  // What is missing stands behind the line that has v and the one that adds up the weights.
  std::uint32_t sum = 0;
  for (std::uint32_t n = static_cast<std::uint32_t>(x_graph.nodes.size()) - 1; n > 0 && sum == 0;
       --n)
    if (op(n) == ValueOp::kAdd && x_terms[n].kind == TermKind::kWeight && x_terms[n].row == row &&
        x_terms[n].column == kNone)
      sum = n;
  const bool sum_first = sum != 0 && std::all_of(idle.begin(), idle.end(), [&](const auto& one) {
                           return site(one.first).file == site(node(sum).site).file &&
                                  site(one.first).line < site(node(sum).site).line;
                         });
  if (sum_first && !idle.empty())
    suggest_node(sum, "adds up weights; nothing adds up weights times v");
  for (const auto& [s, all] : idle) suggest(s, "loads v, and nothing is made of it");
}

void SumSuspects::suggest_end_of_loop(std::uint32_t factor) {
  const auto is_exp = [&] { return is_exponential(factor); };
  for (int steps = 0; steps < 8 && node(factor).site != 0 && !is_exp(); ++steps) {
    if (op(factor) != ValueOp::kMultiply) return;
    const auto& operand = node(factor).operand;  // the one that is 0
    factor = made_by(node(operand[0]).value == 0 ? operand[0] : operand[1]);
  }
  if (node(factor).site == 0 || !is_exp()) return;
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
  NamedLine last;
  last.file = made.file;
  last.line = loop == 0 ? 0 : x_text.end_of_block(made.file, loop);
  if (last.line != 0)
    suggest(node(factor).site, last, "ends a step of the loop, and the maximum is not taken over");
}

}  // namespace attn_diag::lines
