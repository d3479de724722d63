// Numbers that were chosen, or come of no input, where something of the inputs should be.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "harness/lines/line_tokens.h"
#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

void NumberSuspects::suggest_other_branch(const std::string& file, const std::string& function,
                                          const std::string& name) {
  if (x_graph.whole_blocks) return;
  const std::vector<int> stores = x_text.lines_that_store(file, name);
  for (const int store : stores) {
    const std::vector<Statement> around = x_text.statements_around(file, store);
    if (around.empty() || around.back().loop) continue;
    const Statement& choice = around.back();
    int other = choice.begin;  // where its other branch begins
    for (int line = choice.begin; line <= choice.end; ++line)
      if (has_name(x_text.line(file, line), {"else"})) other = line;
    const auto is_across = [&](int line) {
      return choice.has(line) && (line > other) != (store > other);
    };
    if (other == choice.begin || std::any_of(stores.begin(), stores.end(), is_across)) continue;
    for (const int beside : {store + 1, store - 1, store + 2, store - 2})
      for (const std::string& array : stored_arrays(x_text.line(file, beside)))
        for (const int line : x_text.lines_that_store(file, array))
          if (array != name && choice.has(beside) && !is_across(beside) && is_across(line))
            return suggest(file, function, line, 0, array,
                           fmt::format("stores to {} in the other case, where no line stores to {}",
                                       array, name));
  }
}

void NumberSuspects::suggest_chosen(std::uint32_t user,
                                    const std::vector<std::uint32_t>& operands) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers;  // each with who uses it
  for (const std::uint32_t operand : operands) {
    if (operand == 0 || operand >= x_graph.nodes.size()) continue;
    numbers.emplace_back(user, operand);
    // A factor; or what a maximum was subtracted from.
    const std::uint32_t made = made_by(operand);
    if (op(made) == ValueOp::kMultiply || op(made) == ValueOp::kSubtract)
      numbers.emplace_back(made, node(made).operand[0]);
    if (op(made) == ValueOp::kMultiply) numbers.emplace_back(made, node(made).operand[1]);
  }
  for (const auto& [by, number] : numbers) suggest_written_choices(by, number);
  for (const auto& [by, number] : numbers) {
    const std::uint32_t pick = chosen_instead(number);
    // A large negative number masks a score.
    if (pick == 0 || !(node(pick).value > -kNoMaximum) || std::isinf(node(pick).value)) continue;
    // The larger of the two, as a maximum that is written as a choice.
    if (node(pick).value >= node(node(pick).operand[1]).value) continue;
    suggest_node(pick, fmt::format("chooses {:.5g}, where {} was at hand", node(pick).value,
                                   term_text(node(pick).operand[1])));
    suggest_computed(node(pick).site, variables_in(site(node(pick).site).uses, ','),
                     "decides what is chosen");
  }
}

bool NumberSuspects::suggest_written_choice(std::uint32_t s, const std::string& name,
                                            double number) {
  const std::string why = "chooses a number where something of a key belongs";
  // "exp(s[j] - base)": not what is subtracted.
  const std::vector<std::string> subtracted =
      subtracted_names(x_text.line(site(s).file, site(s).line));
  for (const NamedLine& use : variables_in(site(s).uses, ','))
    if ((name.empty() ? !has_name(use.name, subtracted) : use.name == name) &&
        may_choose(text_of(s, use), use.name, number)) {
      suggest(s, use, why);
      return true;
    }
  return false;
}

bool NumberSuspects::multiplies_element(std::uint32_t n) const {
  return node(n).site != 0 && !node(n).is_input() && first_operand(n, TermKind::kElement) != 0;
}

bool NumberSuspects::suggest_stored_choice(const std::string& file, int line, double number) {
  const std::string& text = x_text.line(file, line);
  if (may_choose(text, "", number)) {
    suggest(file, "", line, 0, "", "chooses a number where something of a key belongs");
    return true;
  }
  // "tile[i] = x;": where x was chosen.
  const std::string name = stored_name(text);
  for (std::uint32_t s = 1; s < x_graph.sites.size() && !name.empty(); ++s)
    if (site(s).file == file && suggest_written_choice(s, name, number)) return true;
  return false;
}

void NumberSuspects::suggest_written_choices(std::uint32_t user, std::uint32_t number) {
  for (int steps = 0; steps < 64 && number != 0 && x_terms[number].kind == TermKind::kNumber;
       ++steps) {
    const double value = node(number).value;
    // A sum of products with elements, which is 0 where those of a padded row are, was not chosen.
    if (multiplies_element(number) ||
        first_operand(number, [&](std::uint32_t part) { return multiplies_element(part); }) != 0)
      return;
    if (node(user).site != 0 && suggest_written_choice(node(user).site, "", value)) return;
    // Memory that holds a constant: who stored that?
    const bool loaded = is_load(number) && node(number).operand[0] == 0;
    if (const std::uint32_t by = loaded ? number : user;
        node(by).site != 0 && (loaded || node(number).site == 0)) {
      const ValueSite& s = site(node(by).site);
      std::vector<std::string> names = {s.variable};
      for (const NamedLine& use : variables_in(s.uses, ',')) names.push_back(use.name);
      for (const std::string& name : names)
        for (const int line : x_text.lines_that_store(s.file, name))
          if (suggest_stored_choice(s.file, line, value)) return;
    }
    if (node(number).site == 0 || node(number).is_input()) return;
    if (op(number) == ValueOp::kStore &&
        suggest_stored_choice(site(node(number).site).file, site(node(number).site).line, value))
      return;
    user = number;
    number = first_operand(number, TermKind::kNumber);
  }
}

void NumberSuspects::suggest_flags(const ValueSite& at, const std::string& why) {
  if (x_graph.whole_blocks) return;
  for (const std::string& name : variables_of(x_text.line(at.file, at.line)))
    if (const int made = x_text.assigned_above(at.file, at.line, name); made != 0) {
      const std::string text = x_text.statement(at.file, made);
      for (const std::string& array : variables_of(text)) {
        const std::vector<int> stores = x_text.lines_that_store(at.file, array);
        if (stores.empty() || array == name) continue;
        suggest(at.file, at.function, made, 0, name, why);
        for (const int line : stores) suggest(at.file, at.function, line, 0, array, why);
      }
    }
}

void NumberSuspects::suggest_filled(std::uint32_t n) {
  const auto is_product = [&](std::uint32_t of) {
    return (op(of) == ValueOp::kMultiply || op(of) == ValueOp::kFma) && node(of).value == 0;
  };
  if (n != 0 && !is_product(n)) n = first_operand(n, is_product);  // of a sum
  if (x_graph.whole_blocks || n == 0) return;
  // A number that memory was filled with is no node: the line loads two arrays, and only one of them has some.
  std::set<std::string> loaded, filled;
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
    if (site(s).op == ValueOp::kLoad && is_same_line(s, node(n).site) &&
        x_text.is_shared(site(s).file, site(s).variable))
      filled.insert(site(s).variable);
  constexpr std::uint32_t kNear = 64;
  for (std::uint32_t at = n > kNear ? n - kNear : 1; at < n; ++at)
    if (is_load(at) && node(at).where == node(n).where &&
        filled.erase(site(node(at).site).variable))
      loaded.insert(site(node(at).site).variable);
  if (filled.size() != 1 || loaded.empty()) return;
  const std::string& name = *filled.begin();
  if (!stores_to({name}).empty()) return suggest_stores_to(name);
  // By its address: who gives the index.
  const ValueSite& at = site(node(n).site);
  for (const int line : x_text.lines_that_store(at.file, name))
    for (const SourceText::Lambda& lambda : x_text.lambdas_around(at.file, line))
      suggest_calls_of(lambda, at.file, at.function, "says what is stored to " + name);
  for (const int line : x_text.lines_that_store(at.file, name))
    suggest(at.file, at.function, line, 0, name, "stores to it");
}

void NumberSuspects::suggest_foreign(std::uint32_t n) {
  for (int steps = 0; steps < 64 && node(n).site != 0; ++steps) {
    if (op(n) == ValueOp::kPick) {
      suggest_node(n, "chooses a number that comes of no input");
      suggest_flags(site(node(n).site), "decides which scores are made");
      return;
    }
    if (is_load(n) && node(n).operand[0] == 0) {
      suggest_node(n, "reads a number that comes of no input");
      suggest_stores_to(site(node(n).site).variable);
      return;
    }
    if (op(n) == ValueOp::kStore) suggest_node(n, "stores a number that comes of no input");
    // What is of no input itself, before what that is multiplied with.
    const auto has_site = [&](std::uint32_t operand) { return node(operand).site != 0; };
    std::uint32_t next = first_operand(n, [&](std::uint32_t operand) {
      return has_site(operand) && x_terms[operand].kind == TermKind::kNumber;
    });
    if (next == 0) next = first_operand(n, has_site);
    if (next == 0) break;
    n = next;
  }
  if (node(n).site != 0) {
    suggest_filled(n);
    suggest_node(n, "makes a number that comes of no input");
    suggest_uses(node(n).site, "is an operand of it");
  }
}

void NumberSuspects::suggest_origin(std::uint32_t n, const std::string& why) {
  for (int steps = 0; steps < 32; ++steps) {
    if (node(n).site == 0) return;
    suggest_node(n, why);
    suggest_uses(node(n).site, "is an operand of what is not finite");
    std::uint32_t next = 0;
    for (const std::uint32_t operand : operands(n))
      if (next == 0 && !node(n).is_input() && !(std::isfinite(node(operand).value))) next = operand;
    if (next == 0) return;
    n = next;
  }
}

bool NumberSuspects::is_odd_operand(std::uint32_t n) const {
  // Sums with v in them may have any sign, as scores and elements.
  const Term& term = x_terms[n];
  const bool should_be_positive = term.kind == TermKind::kNumber ||
                                  term.kind == TermKind::kInverse ||
                                  (term.kind == TermKind::kWeight && term.column == kNone);
  const float value = node(n).value;
  return !std::isfinite(value) || (should_be_positive && !(value > 0));
}

void NumberSuspects::suggest_other_uses(std::uint32_t n,
                                        const std::vector<std::uint32_t>& operands) {
  std::set<int> usual;
  for (const std::uint32_t operand : operands) {
    if (operand == 0 || operand >= n || is_odd_operand(operand)) continue;
    const std::uint32_t made = made_by(operand);
    for (std::uint32_t at = operand; node(at).site != 0; at = node(at).operand[0]) {
      usual.insert(site(node(at).site).line);
      if (at == made) break;
    }
  }
  for (const NamedLine& use : variables_in(site(node(n).site).uses, ','))
    if (usual.count(use.line) == 0) suggest(node(n).site, use, "is an operand");
}

void NumberSuspects::suggest_odd_operand(std::uint32_t n) {
  if (!is_odd_operand(n)) return;
  const float value = node(n).value;
  if (!std::isfinite(value)) return suggest_origin(n, "makes an operand that is not finite");
  if (node(n).site == 0) return;
  suggest_node(n, value == 0 ? "makes an operand that is 0" : "makes an operand that is negative");
  suggest_uses(node(n).site, "is an operand of it");
}

void NumberSuspects::suggest_filled_fragment(std::uint32_t n) {
  const ValueSite& at = site(node(n).site);
  if (x_graph.whole_blocks || op(n) != ValueOp::kProduct || at.line == 0) return;
  const auto sums = arguments_of(x_text.line(at.file, at.line), "mma_sync");
  if (sums.empty() || sums.front().empty()) return;
  const std::string& name = sums.front().front();
  for (int line = at.line; line > 0 && line > at.line - SourceText::kFurthest; --line)
    if (const auto filled = arguments_of(x_text.line(at.file, line), "fill_fragment");
        !filled.empty() && has_name(name, filled.front()))
      return suggest(at.file, at.function, line, 0, name, "gives the sum its first value");
}

std::uint32_t NumberSuspects::nan_of(std::uint32_t n) const {
  const auto is_nan = [&](std::uint32_t of) { return std::isnan(node(of).value); };
  for (int steps = 0; steps < 64 && node(n).site != 0; ++steps) {
    const std::uint32_t next = first_operand(n, is_nan);
    if (next == 0) break;
    n = next;
  }
  return n;
}

bool NumberSuspects::is_0_by_0(std::uint32_t n) const {
  const std::uint32_t over = node(n).operand[0];
  return divides_by_0(n) && over != 0 && node(over).value == 0;
}

void NumberSuspects::suggest_nan(std::uint32_t n) {
  n = nan_of(n);
  if (node(n).site == 0) return;
  const bool unwritten = is_load(n) && node(n).operand[0] == 0;
  if (!unwritten) {
    x_out.what = "makes NaN";
    suggest_odd_maxima(node(n).site);
    for (const std::uint32_t operand : operands(n))
      if (std::isinf(node(operand).value))
        suggest_node(made_by(operand), "makes an operand that is infinite");
    suggest_constants(node(n).site, "is a number of which NaN is made",
                      [](double x) { return !(x < 1e30); });
    // What is no index comes first.
    for (const NamedLine& use : variables_in(site(node(n).site).uses, ','))
      if (!x_graph.whole_blocks &&
          !x_text.is_integer(file_of(node(n).site, use), use.line, use.name))
        suggest(node(n).site, use, "makes an operand of NaN");
    suggest_uses(node(n).site, "makes an operand of NaN");
    suggest_node(n, "makes NaN");
    return;
  }
  // The checker has found nothing unwritten, if it was asked: it was stored there.
  suggest_stores_to(site(node(n).site).variable);
  suggest_node(n, "reads it");
  suggest_uses(node(n).site, "makes the index");
}

bool NumberSuspects::suspect_constant_nan(std::uint32_t n) {
  const bool is_constant =
      !x_graph.whole_blocks && first_operand(n, [&](std::uint32_t operand) {
                                 return x_terms[operand].kind == TermKind::kNumber &&
                                        std::isnan(node(operand).value) &&
                                        nan_of(operand) == operand && x_graph.is_constant(operand);
                               }) != 0;
  if (!is_constant) return false;
  x_out.what = "computes with NaN, which is made of numbers alone: nothing of q and k came in";
  const std::uint32_t s = node(n).site;
  const auto has_loop = [&](std::uint32_t one) {
    const std::vector<Condition> conditions = conditions_in(site(one).conditions);
    return std::any_of(conditions.begin(), conditions.end(),
                       [](const Condition& condition) { return condition.loop; });
  };
  for (std::uint32_t one = 1; one < x_graph.sites.size(); ++one)
    if (site(one).op == ValueOp::kLoad && site(one).function == site(s).function && has_loop(one) &&
        never_ran(one))
      for (const Condition& condition : conditions_in(site(one).conditions))
        if (!condition.loop && !is_among(condition, conditions_in(site(s).conditions)))
          suggest_condition(one, condition, "decides whether scores are made at all", true);
  // "alpha = exp(m - m_new);": what gave m_new its value last, and m.
  for (const NamedLine& use : variables_in(site(s).uses, ',')) {
    const std::string& file = file_of(s, use);
    if (use.line == site(s).line || x_text.is_integer(file, use.line, use.name)) continue;
    std::set<int, std::greater<>> made;
    for (const std::string& name : variables_of(x_text.line(file, use.line)))
      if (name != use.name && !x_text.is_integer(file, use.line, name))
        made.insert(x_text.assigned_above(file, use.line, name));
    for (const int line : made)
      suggest(file, site(s).function, line, 0, "", "makes an operand of NaN");
    suggest(s, use, "is an operand");
  }
  suggest_node(n, "computes with it");
  return true;
}

std::string NumberSuspects::score_variable(std::uint32_t exponent) const {
  std::uint32_t at = made_by(exponent);
  for (int steps = 0; steps < 8 && node(at).site != 0; ++steps) {
    for (const std::uint32_t operand : operands(at))
      if (x_terms[operand].kind == TermKind::kScore && !x_terms[operand].shifted)
        return node(operand).site == 0 ? "" : site(node(operand).site).variable;
    const std::uint32_t next = node(at).operand[0];
    if (next == 0 || next >= at) break;
    at = made_by(next);
  }
  return "";
}

constexpr char kTakesSmaller[] =
    "takes the smaller of two scores, of which attention takes the larger";

void NumberSuspects::suggest_minimum_of_scores() {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (op(n) != ValueOp::kMinimum) continue;
    const std::uint32_t a = node(n).operand[0], b = node(n).operand[1];
    const auto is_score = [&](std::uint32_t of) {
      return of != 0 && of < n && x_terms[of].kind == TermKind::kScore;
    };
    // With a number that is no first value of a maximum it is a bound on scores.
    const auto fits = [&](std::uint32_t of) {
      return is_score(of) || of == 0 || !(std::fabs(node(of).value) < kNoMaximum);
    };
    if ((!is_score(a) && !is_score(b)) || !fits(a) || !fits(b)) continue;
    return suggest_node(n, kTakesSmaller);
  }
  // A choice by a comparison, as fminf() is compiled to.
  std::map<std::uint32_t, std::pair<std::uint32_t, bool>>
      choices;  // by site: one, and whether any was the larger
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const std::uint32_t a = node(n).operand[0], b = node(n).operand[1];
    if (op(n) != ValueOp::kPick) continue;
    // None, of none and a score.
    if (!(node(n).value > -kNoMaximum) && first_operand(n, TermKind::kScore) != 0 &&
        takes_minimum(x_text.statement(site(node(n).site).file, site(node(n).site).line),
                      site(node(n).site).variable))
      return suggest_node(n, kTakesSmaller);
    if (a == 0 || b == 0 || a >= n || b >= n || x_terms[a].kind != TermKind::kScore ||
        x_terms[b].kind != TermKind::kScore || x_terms[a].row != x_terms[b].row ||
        node(a).value == node(b).value)
      continue;
    auto& [one, larger] = choices.try_emplace(node(n).site, n, false).first->second;
    larger = larger || node(a).value > node(b).value;
    one = n;
  }
  for (const auto& [s, choice] : choices)
    if (!choice.second) return suggest_node(choice.first, kTakesSmaller);
}

bool NumberSuspects::makes_numbers(std::uint32_t near, const NamedLine& at) {
  const std::string& file = file_of(near, at);
  if (!x_graph.whole_blocks) return !x_text.is_integer(file, at.line, at.name);
  return std::any_of(x_graph.sites.begin(), x_graph.sites.end(), [&](const ValueSite& s) {
    return s.line == at.line && s.file == file &&
           (s.op == ValueOp::kMinimum || s.op == ValueOp::kMaximum);
  });
}

void NumberSuspects::suggest_odd_maxima(std::uint32_t from) {
  // Numbers that come of no input are no nodes: back through the lines that assign to the operands.
  std::vector<std::uint32_t> reached = {from};
  std::vector<std::pair<std::uint32_t, NamedLine>> minima, constants;
  std::set<std::string> known;  // uses: sites of a template say the same in each of its instances
  const auto reach = [&](const std::string& file, int line) {
    for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
      if (site(s).line != line || site(s).file != file) continue;
      if (known.insert(site(s).uses).second) reached.push_back(s);
    }
  };
  reach(site(from).file, site(from).line);
  for (std::size_t i = 0; i < reached.size() && reached.size() < 64; ++i) {
    const std::uint32_t s = reached[i];
    for (const NamedLine& use : variables_in(site(s).uses, ',')) {
      if (use.constant && !(*use.constant < kNoMaximum)) constants.emplace_back(s, use);
      if (takes_minimum(text_of(s, use), use.name) && makes_numbers(s, use))
        minima.emplace_back(s, use);
      reach(file_of(s, use), use.line);
    }
  }
  for (const auto& [s, use] : minima) suggest(s, use, "takes the smaller one for a maximum");
  for (const auto& [s, use] : constants) suggest(s, use, "is where a maximum begins");
  if (minima.empty() && constants.empty() && !x_graph.whole_blocks)
    suggest_odd_maxima_by_name(from);
}

void NumberSuspects::suggest_odd_maxima_by_name(std::uint32_t from) {
  const std::string &file = site(from).file, &function = site(from).function;
  constexpr std::size_t kMost = 64;
  std::vector<int> reached = {site(from).line};
  std::vector<std::pair<int, std::string>> minima, infinite;
  const auto reach = [&](int line, const std::string& name) {
    if (line == 0 || x_text.is_integer(file, line, name)) return;
    if (std::find(reached.begin(), reached.end(), line) != reached.end()) return;
    reached.push_back(line);
    const std::string& text = x_text.statement(file, line);
    if (takes_minimum(text, name)) minima.emplace_back(line, name);
    if (begins_infinite(text, name)) infinite.emplace_back(line, name);
  };
  for (std::size_t i = 0; i < reached.size() && reached.size() < kMost; ++i) {
    const int line = reached[i];
    const std::string text = x_text.statement(file, line);
    for (const source::Token& token : tokens_of(text)) {
      if (!token.is_identifier()) continue;
      const std::string name(token.text);
      if (const int above = x_text.assigned_above(file, line, name); above != 0) reach(above, name);
      const int declared = x_text.declared_above(file, line, name);
      if (declared == 0) continue;
      reach(declared, name);
      for (const int store : x_text.lines_that_store(file, name))
        if (store > declared) reach(store, name);
    }
  }
  for (const auto& [line, name] : minima)
    suggest(file, function, line, 0, name, "takes the smaller one for a maximum");
  for (const auto& [line, name] : infinite)
    suggest(file, function, line, 0, name, "is where a maximum begins");
}

}  // namespace attn_diag::lines
