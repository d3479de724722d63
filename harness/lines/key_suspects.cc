// Of the sums over keys, those that lack keys or have some they should not.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "harness/lines/source_text.h"
#include "harness/lines/sum_suspects.h"

namespace attn_diag::lines {
namespace {

// Whether a loop goes on by it, and not up to it.
bool is_step(const std::string& loop, const std::string& name) {
  return is_loop(loop) && has_name(loop, {name}) && !has_name(name, loop_limits(loop));
}

}  // namespace

bool SumSuspects::begin_behind_query(const Cause& cause) const {
  if (x_graph.whole_blocks) return false;
  const auto query = static_cast<int>(x_attention.query_of(cause.row));
  const int shift = x_attention.problem().seqlen_k - x_attention.problem().seqlen_q;
  const int first = static_cast<int>(cause.keys.front()) - query;
  if (first != 0 && first != 1 && first != shift && first != shift + 1) return false;
  for (auto key = static_cast<int>(cause.keys.back()) + 1; key < x_attention.problem().seqlen_k;
       ++key)
    if (x_attention.visible(cause.row, static_cast<unsigned>(key))) return false;
  return true;
}

bool SumSuspects::lacks_first_keys(const Cause& cause) const {
  std::vector<unsigned> seen;
  for (unsigned j = 0; j < x_terms.keys().size(); ++j)
    if (x_attention.visible(cause.row, j)) seen.push_back(j);
  return !seen.empty() && cause.keys.front() == seen.front() && cause.keys.back() != seen.back();
}

void SumSuspects::suggest_tests_of_calls(std::uint32_t s, const std::string& why) {
  if (x_graph.whole_blocks) return;
  for (const Condition& condition : conditions_in(site(s).conditions)) {
    const std::string& file = file_of(s, condition.at);
    if (condition.loop) continue;
    for (const std::string& name : called_names(text_of(s, condition.at))) {
      const std::vector<int> lines = x_text.lines_of_function(file, name);
      for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
        const std::string& text = x_text.line(file, *line);
        if (!has_name(text, {"return"})) continue;
        suggest(file, name, *line, 0, "", why);
        for (const std::string& variable : variables_of(text))
          suggest_computed_above(file, name, *line, variable, why);
      }
    }
  }
}

void SumSuspects::suspect_rounded_down(const Cause& cause) {
  if (x_graph.whole_blocks) return;
  const auto& keys = cause.keys;
  for (unsigned j = keys.front(); j < x_terms.keys().size(); ++j)
    if (x_attention.visible(cause.row, j) && std::find(keys.begin(), keys.end(), j) == keys.end())
      return;
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    if (!site(s).ran) continue;
    for (const Condition& condition : conditions_in(site(s).conditions))
      for (const NamedLine& test : condition.tests)
        if (condition.loop && !comes_of(test, "txyz") && !is_loop(text_of(s, test)) &&
            rounds_down(text_of(s, test), test.name) &&
            !is_step(text_of(s, condition.at), test.name))
          suggest(s, test, "rounds down, and the last keys are those that lack");
  }
}

bool SumSuspects::is_masked_alike(std::uint32_t row, std::uint32_t other) const {
  const auto last = static_cast<unsigned>(x_attention.problem().seqlen_k) - 1;
  return x_attention.visible(row, 0) == x_attention.visible(other, 0) &&
         x_attention.visible(row, last) == x_attention.visible(other, last) &&
         !(x_attention.visible(row, 0) && x_attention.visible(row, last));
}

void SumSuspects::suggest_compared(std::uint32_t s, const Cause& cause) {
  if (x_graph.whole_blocks) return;
  std::set<std::uint32_t> wrong, right;
  for (const OutputElement& element : x_elements) {
    std::uint32_t row = static_cast<std::uint32_t>(element.index), column = 0;
    if (!element.of_lse) x_attention.locate_output(element.index, row, column);
    (element.wrong ? wrong : right).insert(row);
  }
  std::erase_if(right, [&](std::uint32_t row) {
    return wrong.count(row) != 0 || !is_masked_alike(cause.row, row);
  });
  if (std::none_of(x_graph.nodes.begin() + 1, x_graph.nodes.end(), [&](const ValueNode& one) {
        return one.site != 0 && is_same_line(one.site, s) &&
               right.count(x_terms[static_cast<std::uint32_t>(&one - x_graph.nodes.data())].row) !=
                   0;
      }))
    return;
  const std::string why = "is compared at a mask that is right for other rows";
  const auto suggest_makers = [&](const std::vector<NamedLine>& tests, const std::string& text,
                                  int line) {
    const std::vector<std::string> names = plainly_compared(text);
    // What no loop moves is no key.
    std::vector<std::string> counters;
    for (const NamedLine& test : tests)
      if (is_loop(text_of(s, test))) counters.push_back(test.name);
    if (std::none_of(tests.begin(), tests.end(), [&](const NamedLine& test) {
          return std::find(names.begin(), names.end(), test.name) != names.end() &&
                 has_name(text_of(s, test), counters);
        }))
      return;
    for (const NamedLine& test : tests)
      if (std::find(names.begin(), names.end(), test.name) != names.end() &&
          !is_loop(text_of(s, test)) && computes(text_of(s, test), test.name))
        suggest(s, test, why);
    const std::vector<std::string> seen = names_of(tests);
    for (const std::string& name : names)
      if (std::find(seen.begin(), seen.end(), name) == seen.end())
        suggest_computed_above(site(s).file, site(s).function, line, name, why);
  };
  if (site(s).op == ValueOp::kPick)
    suggest_makers(variables_in(site(s).uses, ','), x_text.line(site(s).file, site(s).line),
                   site(s).line);
  for (const Condition& condition : conditions_in(site(s).conditions))
    if (!condition.loop && file_of(s, condition.at) == site(s).file)
      suggest_makers(condition.tests, text_of(s, condition.at), condition.at.line);
}

void SumSuspects::suspect_missing(const Cause& cause) {
  if (cause.keys.empty()) {
    suggest(cause.site, "stores it");
    return;
  }
  const unsigned key = cause.keys.front();
  if (x_graph.whole_blocks) {
    suspect_chosen_weight(cause.row, key);
    suspect_masked_loads(cause.row, key);
  }
  if (const std::uint32_t masked = x_terms.masked_at(cause.row, key); masked != 0) {
    const std::string why = fmt::format("masks {}, which is visible", keys_text({key}));
    suggest_compared(node(masked).site, cause);
    suggest_node(masked, why);
    suggest_indices(node(masked).site, "makes what is compared there");
    suggest_conditions(node(masked).site, "if", why);
    return;
  }
  suspect_rounded_down(cause);
  for (std::uint32_t at = cause.node; node(at).site != 0; at = node(at).operand[0]) {
    const std::uint32_t other = op(at) == ValueOp::kPick ? node(at).operand[1] : 0;
    if (other != 0 && other < at && x_terms[other].kind == TermKind::kWeight &&
        std::any_of(cause.keys.begin(), cause.keys.end(),
                    [&](unsigned j) { return x_terms.keys().has(x_terms[other].set, j); })) {
      x_out.what += fmt::format("; {} was at hand, and not chosen", term_text(other));
      // What was computed there says more than that it was.
      if (const std::uint32_t made = made_by(node(at).operand[0]); made > other)
        suggest_node(made, "makes what was chosen");
      suggest_node(at, "chooses another number");
      suggest_uses(node(at).site, "decides what is chosen");
    }
    if (at == made_by(at)) break;
  }
  if (suspect_frame_of(cause.row, key)) return;
  suggest_stored_instead(cause, key);
  suspect_dropped([&](std::uint32_t n) -> unsigned {
    const Term& term = x_terms[n];
    if (term.row != cause.row) return 0;
    if (term.kind == TermKind::kScore)
      return x_attention.key_of(term.column) == key &&
             x_attention.same_head(cause.row, term.column) && is_whole(term);
    if (term.kind != TermKind::kWeight || !x_terms.keys().has(term.set, key)) return 0;
    if (cause.of_l) return term.column == kNone ? 3 : 0;
    return term.column == kNone ? 2 : term.column == cause.column ? 3 : 0;
  });
  // Scores, and no weight of any.
  if (const auto other = way_of_another(cause.row, {}); other && other->weight == 0)
    suspect_what_never_ran();
  if (cause.of_l) return suspect_sum_of_weights(cause);
  // Who has a weight, and no row of v?
  const Way before = way_of(cause.row, key);
  if (before.weight != 0 && before.times_v == 0 && !loads_all(2, cause.row)) {
    suggest_what_never_took(before.weight);
    // Of products of matrices that go on from tile to tile, and end before these keys.
    if (const auto other = way_of_another(cause.row, cause.keys);
        other && other->times_v != 0 && op(other->times_v) == ValueOp::kProduct &&
        lacks_last_keys(2, cause.row))
      suggest_loops(node(other->times_v).site, cause.keys, false, true,
                    "decides which keys take part");
    suggest_loaders(2, lacks_text(2, cause.row));
    if (x_graph.whole_blocks && x_loaders[2].empty()) suggest_unused_loads("loads nothing");
  }
  if (x_graph.whole_blocks && before.weight != 0 && cause.what == What::kNothing)
    suggest_idle_v(cause.row);
  if (suspect_lost(cause, key)) return;
  const Way way = way_of(cause.row, key);
  const std::string why = "decides which keys take part";
  std::uint32_t at = 0;  // what is done for others
  if (way.times_v != 0 || way.weight != 0) {
    // It has a weight, which was not added.
    at = way.times_v != 0 ? way.times_v : way.weight;
    if (const auto other = way_of_another(cause.row, cause.keys);
        other && other->times_v != 0 && way.times_v == 0)
      at = other->times_v;
  } else if (const auto other = way_of_another(cause.row, cause.keys)) {
    if (way.score == 0 && way.part != 0) return suspect_partial(way.part, way.part, cause.row);
    at = way.score == 0 ? other->score : other->weight;
    if (at == 0) at = other->score != 0 ? other->score : other->weight;
  } else if (way.score == 0 && way.part != 0) {
    return suspect_partial(way.part, way.part, cause.row);
  } else if (way.score != 0 && !x_graph.whole_blocks) {
    // Nobody has a weight: who takes the score?
    if (const std::uint32_t by = user_of(way.score); by != 0)
      suggest_node(by, "takes the score, and makes no weight of it");
  }
  if (way.score == 0 && way.part == 0 && !loads_all(0, cause.row)) {
    x_out.what += "; its row of q is loaded by nobody";
    note_loaders();
    for (const std::uint32_t loader : x_loaders[0]) {
      suggest_conditions(loader, "if", "decides which rows of q are loaded");
      suggest_loader(loader, lacks_text(0, cause.row));
    }
  }
  if (way.score == 0 && !loads_all(1, cause.row)) x_out.what += "; not all of k is loaded";
  if (at != 0) {
    const std::uint32_t s = node(at).site;
    suggest_late_loops(s);
    suggest_compared(s, cause);
    const bool of_products = op(at) == ValueOp::kAdd || op(at) == ValueOp::kFma ||
                             op(at) == ValueOp::kProduct || op(at) == ValueOp::kMultiply;
    if (way.score != 0) suggest_conditions_behind(node(way.score).site, s, why);
    if (begin_behind_query(cause))
      for (const Condition& condition : conditions_in(site(s).conditions))
        if (!(condition.loop && is_loop(text_of(s, condition.at))) &&
            come_of(condition.tests, "tx") && !holds_for_all_keys(at, condition) &&
            !is_passed_without(s, condition) && !is_of_row(at, condition))
          suggest_condition(s, condition, why, true);
    if (way.score == 0) suggest_guards_of_row(at, key, cause.row, why);
    if (lacks_first_keys(cause)) {
      // No product was made of them, either.
      if (const auto other = way_of_another(cause.row, cause.keys); way.begun == 0 && other)
        suggest_tests_of_calls(node(other->begun).site, why);
      suggest_tests_of_calls(s, why);
    }
    if (way.score == 0 && lacks_first_keys(cause) && !loads_key(1, cause.row, key))
      suggest_loops_of_loads(s, why);
    suggest_loops(s, cause.keys, of_products && sums_columns(at), true, why);
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!holds_for_all_keys(at, condition)) suggest_condition(s, condition, why, true);
    suggest_tests_of_calls(s, why);
    suggest_callers(s, why);
    if (!loads_all(1, cause.row)) suggest_loaders(1, lacks_text(1, cause.row));
    if (!loads_all(2, cause.row)) suggest_loaders(2, lacks_text(2, cause.row));
    suggest_node(at, "is not done for these keys");
  }
  if (at == 0) suspect_what_never_ran();
  if (cause.site != 0) suggest(cause.site, "stores the sum");
}

bool SumSuspects::is_of_row(std::uint32_t n, const Condition& condition) {
  std::vector<Condition> loops = conditions_in(site(node(n).site).conditions);
  std::erase_if(loops, [](const Condition& one) { return !one.loop; });
  if (!loops.empty() && sums_columns(n)) loops.erase(loops.begin());
  note_loaders();
  return std::any_of(x_loaders[0].begin(), x_loaders[0].end(), [&](std::uint32_t loader) {
    const std::vector<Condition> there = conditions_in(site(loader).conditions);
    return is_among(condition, there) &&
           std::any_of(loops.begin(), loops.end(),
                       [&](const Condition& loop) { return !is_among(loop, there); });
  });
}

bool SumSuspects::stores_of_inputs(std::uint32_t s) const {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (node(n).site != 0 && is_same_line(node(n).site, s) && x_terms[n].kind != TermKind::kNumber)
      return true;
  return false;
}

void SumSuspects::suggest_stored_instead(const Cause& cause, unsigned key) {
  if (x_graph.whole_blocks) return;
  const Way way = way_of(cause.row, key);
  const std::optional<Way> other = way_of_another(cause.row, cause.keys);
  if (way.score == 0 || way.weight != 0 || !other || other->weight == 0) return;
  // What the score of another key was stored to, on its way to its exponential.
  std::uint32_t stored = 0;
  const std::uint32_t exponent = made_by(node(other->weight).operand[0]);
  for (std::uint32_t at = exponent; at != 0 && node(at).site != 0 && stored == 0;
       at = first_operand(at, TermKind::kScore))
    if (op(at) == ValueOp::kStore) stored = node(at).site;
  if (stored == 0) return;
  // Who else stores to it, on the other way of an "if", and never a score?
  const std::vector<Condition> held = conditions_in(site(stored).conditions);
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    if (s == stored || site(s).op != ValueOp::kStore || !site(s).stored ||
        is_same_line(s, stored) || site(s).variable != site(stored).variable)
      continue;
    const std::vector<Condition> conditions = conditions_in(site(s).conditions);
    if (conditions.empty() || conditions.front().loop || !is_among(conditions.front(), held) ||
        stores_of_inputs(s))
      continue;
    suggest_flags(s, conditions.front(), "makes what is compared there");
    suggest_test(s, conditions.front(),
                 "decides for which keys a number is stored in place of the score");
    suggest_computed(s, conditions.front().tests, "makes what is compared there");
    suggest(s, "stores a number in place of the score");
  }
}

void SumSuspects::suggest_loops_of_loads(std::uint32_t s, const std::string& why) {
  if (x_graph.whole_blocks) return;
  const std::vector<Condition> here = conditions_in(site(s).conditions);
  note_loaders();
  for (const std::uint32_t loader : x_loaders[1])
    for (Condition condition : conditions_in(site(loader).conditions)) {
      if (!condition.loop || !is_among(condition, here)) continue;
      // What the loop begins with, before what it ends with.
      const std::vector<std::string> ends = loop_limits(text_of(loader, condition.at));
      std::stable_partition(condition.tests.begin(), condition.tests.end(),
                            [&](const NamedLine& test) { return !has_name(test.name, ends); });
      suggest_condition(loader, condition, why, true);
    }
}

void SumSuspects::suggest_flags(std::uint32_t s, const Condition& condition,
                                const std::string& why) {
  const std::string& file = file_of(s, condition.at);
  const std::string& text = text_of(s, condition.at);
  if (x_graph.whole_blocks || text.find("||") == text.npos) return;
  // What is compared of both the query and the key says more than what is of one of them.
  std::multimap<std::size_t, std::pair<int, std::string>, std::greater<>> flags;
  for (const std::string& name : variables_of(text))
    if (const int made = x_text.assigned_above(file, condition.at.line, name);
        made != 0 && made != condition.at.line && computes(x_text.statement(file, made), name)) {
      const std::vector<std::string> of = variables_of(x_text.statement(file, made));
      flags.emplace(std::set<std::string>(of.begin(), of.end()).size(), std::pair{made, name});
    }
  if (flags.size() < 2) return;
  for (const auto& [count, flag] : flags)
    suggest(file, site(s).function, flag.first, 0, flag.second, why);
}

bool NumberSuspects::holds_for_all_keys(std::uint32_t at, const Condition& condition) {
  if (x_graph.whole_blocks || condition.loop || condition.tests.empty()) return false;
  // Where each thread has keys of its own, it may be what keeps some of them out.
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (node(n).site == node(at).site && x_terms[n].row == x_terms[at].row &&
        x_terms[n].kind == x_terms[at].kind && node(n).where != node(at).where)
      return false;
  const std::uint32_t s = node(at).site;
  const std::string& file = file_of(s, condition.at);
  for (const Statement& around : x_text.statements_around(file, condition.at.line))
    for (const NamedLine& test : condition.tests)
      if (!is_of_other_loop(s, test) &&
          (file_of(s, test) != file || (around.loop && around.has(test.line))))
        return false;
  return true;
}

void SumSuspects::suggest_guards_of_row(std::uint32_t at, unsigned key, std::uint32_t row,
                                        const std::string& why) {
  if (x_graph.whole_blocks) return;
  const auto reaches = [&](std::uint32_t n) {
    const Term& term = x_terms[n];
    return term.kind == TermKind::kScore && term.row != row &&
           node(n).where >> 10 == node(at).where >> 10 && x_attention.key_of(term.column) == key;
  };
  bool reached = false;
  for (std::uint32_t n = 1; n < x_graph.nodes.size() && !reached; ++n) reached = reaches(n);
  if (!reached) return;
  const std::uint32_t s = node(at).site;
  const std::vector<Condition> conditions = conditions_in(site(s).conditions);
  for (const Condition& condition : conditions)
    if (!(condition.loop && is_loop(text_of(s, condition.at))) &&
        (condition.tests.empty() || come_of(condition.tests, "tx")) &&
        !holds_for_all_keys(at, condition) && !is_passed_without(s, condition) &&
        std::any_of(conditions.begin(), conditions.end(), [&](const Condition& around) {
          return around.loop && around.at.line < condition.at.line;
        }))
      suggest_condition(s, condition, why, true);
}

void SumSuspects::suggest_choices_to_weight(const Way& way, bool of_threads,
                                            const std::string& why) {
  if (way.whole == 0 || way.weight == 0) return;
  const ValueSite &from = site(node(way.whole).site), &to = site(node(way.weight).site);
  if (from.file != to.file) return;
  const auto suggest_choice = [&](std::uint32_t s, int line, const std::vector<NamedLine>& tests) {
    const std::string& text = x_text.line(from.file, line);
    if (line < from.line || line >= to.line || text.find("max") != text.npos) return;
    // "visible ? s : -INFINITY": what is visible was computed before; "mask(i, j) ? s : -INFINITY": in what is called.
    for (const NamedLine& test : tests) {
      const bool chosen_by = text.find(test.name + " ?") != text.npos;
      const bool in_call = !has_name(text, {test.name}) && come_of({test}, "t") &&
                           come_of({test}, "x") && !is_of_other_loop(s, test) &&
                           !is_loop(text_of(s, test));
      if ((chosen_by || in_call) && computes(text_of(s, test), test.name)) suggest(s, test, why);
    }
    suggest(from.file, from.function, line, 0, "", why);
  };
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    const ValueSite& one = site(s);
    if (one.file != from.file || one.line < from.line || one.line >= to.line) continue;
    if (one.op == ValueOp::kPick) {
      const std::vector<NamedLine> uses = variables_in(one.uses, ',');
      if (!of_threads || come_of(uses, "t")) suggest_choice(s, one.line, uses);
    }
    // What is stored and loaded by nobody is no way from one to the other.
    const auto loads_it = [&](const ValueSite& other) {
      return other.op == ValueOp::kLoad && other.variable == one.variable;
    };
    if (one.op == ValueOp::kStore &&
        std::none_of(x_graph.sites.begin(), x_graph.sites.end(), loads_it))
      continue;
    for (const Condition& condition : conditions_in(one.conditions))
      if (!condition.loop && file_of(s, condition.at) == from.file &&
          (!of_threads || come_of(condition.tests, "t")))
        suggest_choice(s, condition.at.line, condition.tests);
  }
}

void SumSuspects::suggest_what_never_took(std::uint32_t weight) {
  if (x_graph.whole_blocks) return;
  // What a helper returns has its name in the line that calls it.
  const ValueSite& made = site(node(weight).site);
  std::vector<std::string> names = assigned_names(x_text.line(made.file, made.line));
  for (const NamedLine& call : lines_in(made.callers))
    for (std::string& name : assigned_names(text_of(node(weight).site, call)))
      names.push_back(std::move(name));
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    const ValueSite& one = site(s);
    const std::string& text = x_text.line(one.file, one.line);
    if (one.file != made.file || !has_name(text, names) || !never_ran(s)) continue;
    const std::string why = "would take the weights, and never ran";
    suggest_late_loops(s);
    suggest_conditions(s, "if", why);
    suggest(s, why);
  }
}

void SumSuspects::suspect_what_never_ran() {
  // Or ran for what is no key.
  std::set<std::pair<std::string, int>> takes_scores;  // lines
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (!is_exponential(n)) continue;
    const auto& exponent = node(subtracted(node(n).operand[0]).second).operand;
    if (x_terms[n].kind != TermKind::kNumber || x_terms[exponent[0]].kind == TermKind::kScore)
      takes_scores.insert({site(node(n).site).file, site(node(n).site).line});
  }
  // Those in loops first: they are over keys.
  for (const bool in_loop : {true, false})
    for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
      if ((site(s).op != ValueOp::kExp && site(s).op != ValueOp::kExp2) ||
          takes_scores.contains({site(s).file, site(s).line}))
        continue;
      const std::vector<Condition> conditions = conditions_in(site(s).conditions);
      if (in_loop == std::any_of(conditions.begin(), conditions.end(),
                                 [](const Condition& one) { return one.loop; }))
        suggest_conditions(s, site(s).ran ? "if" : nullptr,
                           "decides whether exponentials are taken at all");
    }
}

std::uint32_t SumSuspects::masks_others(std::uint32_t row) const {
  for (unsigned j = 0; j < x_terms.keys().size(); ++j)
    if (const std::uint32_t at = x_terms.masked_at(row, j); at != 0) return at;
  return 0;
}

bool SumSuspects::is_of_threads(std::uint32_t score, std::uint32_t row) const {
  if (score == 0 || x_graph.whole_blocks) return false;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (node(n).site == node(score).site && node(n).where != node(score).where &&
        node(n).where >> 10 == node(score).where >> 10 && term.kind == TermKind::kScore &&
        term.row == row && term.column != x_terms[score].column)
      return true;
  }
  return false;
}

std::vector<Condition> SumSuspects::conditions_of_keys(std::uint32_t n, std::uint32_t row) const {
  std::vector<Condition> out = conditions_in(site(node(n).site).conditions);
  bool in_one_block = !x_graph.whole_blocks;
  for (std::uint32_t other = 1; other < x_graph.nodes.size() && in_one_block; ++other)
    if (const Term& term = x_terms[other];
        node(other).site == node(n).site && term.kind == x_terms[n].kind && term.row == row)
      in_one_block = node(other).where >> 10 == node(n).where >> 10;
  // What is outside of all loops, and the same in all threads, held for every key that came there.
  std::size_t loops = out.size();
  while (loops > 0 && !out[loops - 1].loop) --loops;
  std::size_t i = 0;
  std::erase_if(out, [&](const Condition& condition) {
    const bool outside = i++ >= loops;
    return condition.loop || (outside && in_one_block && !come_of(condition.tests, "t"));
  });
  return out;
}

void SumSuspects::suggest_given_limit(std::uint32_t s, const Condition& condition,
                                      const std::string& why) {
  if (x_graph.whole_blocks || site(s).callers.empty()) return;
  const std::string& file = file_of(s, condition.at);
  for (const std::string& name : tested_names(text_of(s, condition.at)))
    if (x_text.assigned_above(file, condition.at.line, name) == 0 &&
        std::none_of(condition.tests.begin(), condition.tests.end(),
                     [&](const NamedLine& test) { return test.name == name; })) {
      suggest(s, condition.at, why);
      return suggest_callers(s, "gives " + name);
    }
}

void SumSuspects::suspect_extra(const Cause& cause) {
  const unsigned key = cause.keys.front();
  const Way way = way_of(cause.row, key);
  const std::string why = fmt::format("lets {} through", keys_text({key}));
  if (!loads_all(1, cause.row)) suggest_loaders(1, lacks_text(1, cause.row));
  for (const std::uint32_t n : {way.weight, way.score})
    if (n != 0) suggest_compared(node(n).site, cause);
  std::uint32_t at = way.weight != 0 ? node(way.weight).operand[0] : way.score;
  std::vector<std::uint32_t> stores;
  for (int steps = 0; at != 0 && steps < 64; ++steps) {
    if (op(at) == ValueOp::kStore) stores.push_back(at);
    if (op(at) == ValueOp::kPick) {
      suggest_node(at, why);
      suggest_indices(node(at).site, "makes what is compared there");
    }
    for (const std::uint32_t operand : operands(at))
      if (x_graph.whole_blocks && op(operand) == ValueOp::kPick &&
          x_terms[operand].kind == TermKind::kNumber) {
        suggest_node(operand, why);
        suggest_indices(node(operand).site, "makes what is compared there");
      }
    const std::uint32_t next = first_operand(at, TermKind::kScore);
    if (next == 0 || node(at).site == 0 || op(at) == ValueOp::kProduct) break;
    at = next;
  }
  if (x_out.suspects.empty()) suggest_behind_unread();
  if (const std::uint32_t masks = masks_others(cause.row); masks != 0) {
    suggest_node(masks, "masks other keys, not these");
    suggest_indices(node(masks).site, "makes what is compared there");
  }
  if (x_out.suspects.empty())
    suggest_stored_masks(cause.row, way.weight != 0 ? way.weight : way.score, why);
  // Where another thread has a key that the row may see, the same step lets one through and not the other.
  if (is_of_threads(way.score, cause.row)) {
    suggest_choices_to_weight(way, true, why);
    for (const std::uint32_t n : {way.score, way.weight})
      for (const Condition& condition : conditions_in(site(node(n).site).conditions))
        if (!condition.loop && come_of(condition.tests, "t")) {
          suggest_given_limit(node(n).site, condition, why);
          suggest_condition(node(n).site, condition, why, false);
        }
  }
  suggest_choices_to_weight(way, false, why);
  for (const std::uint32_t n : {way.weight, way.score})
    if (n != 0) {
      for (const Condition& condition : conditions_of_keys(n, cause.row)) {
        suggest_given_limit(node(n).site, condition, why);
        suggest_condition(node(n).site, condition, why, false);
      }
      suggest_loops(node(n).site, cause.keys, n == way.score, false, why);
    }
  if (!x_graph.whole_blocks && masks_others(cause.row) == 0)
    for (const std::uint32_t store : stores)
      suggest_node(store, "stores its score, which nothing masks");
  suggest_node(way.weight, "makes its weight");
}

bool NumberSuspects::has_all_weights(std::uint32_t row) const {
  std::vector<bool> weighed(x_terms.keys().size());
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (!is_exponential(n) || term.kind != TermKind::kWeight || term.row != row) continue;
    for (unsigned j = 0; j < x_terms.keys().size(); ++j)
      if (x_terms.keys().has(term.set, j)) weighed[j] = true;
  }
  for (unsigned j = 0; j < x_terms.keys().size(); ++j)
    if (!weighed[j] && x_attention.visible(row, j)) return false;
  return true;
}

void NumberSuspects::suggest_guards_of_key(std::uint32_t s) {
  if (x_graph.whole_blocks) return;
  bool loads_keys = false;
  std::set<std::uint32_t> rows;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind == TermKind::kWeight) rows.insert(term.row);
    loads_keys |= term.kind == TermKind::kElement && term.buffer > 0 && node(n).site == s;
  }
  const auto is_complete = [&](std::uint32_t row) { return has_all_weights(row); };
  if (!loads_keys || rows.empty() || !std::all_of(rows.begin(), rows.end(), is_complete)) return;
  const std::string why = "lets what is no key through: every key has its weight beside it";
  suggest_chosen_by(s, why);
  for (const Condition& condition : conditions_in(site(s).conditions)) {
    if (condition.loop) continue;
    suggest_decided(s, condition, why);
    suggest_test(s, condition, why);
  }
}

void NumberSuspects::suspect_key_beyond(const Cause& cause, std::uint32_t a, std::uint32_t b) {
  const auto is_of_q = [&](std::uint32_t n) {
    return n != 0 && x_terms[n].kind == TermKind::kElement && x_terms[n].buffer == 0;
  };
  if (!is_of_q(a) || !is_of_q(b) || !has_all_weights(cause.row)) return;
  x_out.what += "; every key of the row has its own weight beside it";
  const std::string why = "lets what is no key through";
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (is_exponential(n) && x_terms[n].kind == TermKind::kWeight && x_terms[n].row == cause.row) {
      const std::size_t before = x_out.suspects.size();
      suggest_masks_of_exponential(n, why);
      // Without a mask a loop ends behind the last key.
      if (x_out.suspects.size() == before) suggest_conditions_of_end(node(n).site, cause.row, why);
      return;
    }
}

}  // namespace attn_diag::lines
