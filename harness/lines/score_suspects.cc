// Scores and weights: what scales them, what they are relative to, which columns they have.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

void NumberSuspects::suspect_scale(std::uint32_t score, std::uint32_t n, const std::string& why) {
  std::uint32_t at = 0;
  if (has_other_base(score, n)) suggest_node(n, "is of another base than other exponentials");
  bool all = true;  // scores are wrong
  for (std::uint32_t other = 1; other < x_graph.nodes.size() && x_graph.whole_blocks; ++other)
    all = all && !(is_exponential(other) && x_terms[other].kind == TermKind::kWeight);
  // Another block has stored q or k, as a kernel before this one: the factor may be missing there.
  for (std::uint32_t taken = 1; taken < x_graph.nodes.size() && all; ++taken) {
    const bool moves = is_load(taken) && !node(taken).is_input();
    const std::uint32_t from = moves ? node(taken).operand[0] : 0;
    all = from == 0 || op(from) != ValueOp::kStore || x_terms[from].kind != TermKind::kElement ||
          x_terms[from].buffer > 1 || node(from).where >> 10 == node(taken).where >> 10;
  }
  // Scaled as attention says, but for the other base of exponentials: that may be what is wrong, or the scale.
  const float scale = x_attention.problem().softmax_scale;
  const float meant =
      op(n) == ValueOp::kExp ? scale * std::numbers::log2e_v<float> : scale;  // for the other one
  if (std::fabs(x_terms[score].x - meant) <= 1e-3F * std::fabs(meant)) {
    all = false;
    if (!x_graph.whole_blocks) suggest_node(n, "is of another base than the scale of its score");
  }
  // A sign is not the scale's: a factor of less than nothing, of which compilers make "m - x".
  const bool turned = x_terms[score].x * x_attention.problem().softmax_scale < 0;
  if (turned) {
    all = false;
    for (std::uint32_t of = score; of != 0 && node(of).site != 0 && !node(of).is_input();
         of = first_operand(of, TermKind::kScore)) {
      const Term& taken = x_terms[node(of).operand[1]];
      if (op(of) != ValueOp::kSubtract || taken.kind != TermKind::kScore ||
          taken.x * x_terms[of].x >= 0)
        continue;
      suggest_node(of, "turns the sign of the score");
      suggest_uses(node(of).site, "is a factor of the score");
      break;
    }
  }
  std::vector<std::uint32_t> passed, scalers;
  std::uint32_t rebased = 0;  // for exp2
  const auto is_of_score = [&](std::uint32_t of) {
    return x_terms[of].kind == TermKind::kScore || x_terms[of].kind == TermKind::kElement;
  };
  // From the exponential to the elements of q and of k: either may be scaled.
  std::vector<std::uint32_t> ways = {score};
  for (std::size_t way = 0; way < std::min<std::size_t>(ways.size(), 2); ++way) {
    at = ways[way];
    for (int steps = 0; steps < 128 && at != 0 && node(at).site != 0; ++steps) {
      passed.push_back(at);
      if (node(at).is_input()) break;
      const ValueOp is = op(at);
      if (is == ValueOp::kMultiply || is == ValueOp::kDivide) {
        const bool by_number = x_terms[node(at).operand[0]].kind == TermKind::kNumber ||
                               x_terms[node(at).operand[1]].kind == TermKind::kNumber;
        // log2(e) is for exp2, and no scale: that is missing elsewhere.
        const std::uint32_t of = first_operand(at, TermKind::kScore);
        const bool changes_base =
            is == ValueOp::kMultiply && of != 0 &&
            std::fabs(x_terms[at].x - x_terms[of].x * std::numbers::log2e_v<float>) <=
                1e-4F * std::fabs(x_terms[at].x);
        if (by_number && changes_base && !x_graph.whole_blocks)
          rebased = at;
        else if (by_number)
          scalers.push_back(at);
        if (by_number && changes_base && x_graph.whole_blocks) all = false;
      }
      std::uint32_t next = 0;
      for (const std::uint32_t operand : operands(at)) {
        if (!is_of_score(operand)) continue;
        if (next == 0)
          next = operand;
        else if (ways.size() == 1 && x_terms[operand].kind == TermKind::kElement)
          ways.push_back(operand);
      }
      if (is == ValueOp::kProduct) {
        const host::ValuePair& product = x_graph.products[node(at).operand[1]];
        next = product.left;
        if (ways.size() == 1) ways.push_back(product.right);
      }
      at = next;
    }
  }
  // Of two lines that scale neither is sure.
  const bool scaled = !scalers.empty();
  const bool one_line = std::all_of(scalers.begin(), scalers.end(), [&](std::uint32_t scaler) {
    return is_same_line(node(scaler).site, node(scalers.front()).site);
  });
  if (scaled && all && one_line) be_sure();
  if (turned)
    std::stable_partition(scalers.begin(), scalers.end(), [&](std::uint32_t scaler) {
      return x_terms[scaler].x * x_terms[first_operand(scaler, is_of_score)].x < 0;
    });
  for (const std::uint32_t scaler : scalers) suggest_node(scaler, "scales the score");
  for (const std::uint32_t scaler : scalers)
    suggest_uses(node(scaler).site, "is a factor of the score");
  // It was scaled, and stored elsewhere.
  if (!scaled) {
    const Term& raw = x_terms[score];
    const auto is_raw = [&](float x, float as) {
      return std::fabs(x - as) <= 0.01F * std::fabs(as);
    };
    const float before = rebased == 0 ? raw.x : raw.x / std::numbers::log2e_v<float>;
    for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other)
      if (op(other) == ValueOp::kStore && x_terms[other].kind == TermKind::kScore &&
          x_terms[other].row == raw.row && x_terms[other].column == raw.column &&
          !is_raw(x_terms[other].x, raw.x) && !is_raw(x_terms[other].x, before)) {
        be_sure();
        suggest_node(other, "stores the score that is scaled");
        suggest_uses(node(other).site, "makes the index of that store");
        break;
      }
  }
  // Scores are scaled where another line takes their exponential.
  if (!scaled && !x_graph.whole_blocks && x_terms[score].x == 1)
    for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other)
      if (is_exponential(other) && x_terms[other].kind == TermKind::kWeight &&
          !is_same_line(node(other).site, node(n).site)) {
        // Where theirs were scaled by a line of its own, this one was left out there.
        std::uint32_t theirs = node(other).operand[0];
        for (int steps = 0; steps < 64 && theirs != 0 && node(theirs).site != 0; ++steps) {
          theirs = made_by(theirs);
          if (op(theirs) == ValueOp::kMultiply && first_operand(theirs, TermKind::kScore) != 0 &&
              !is_same_line(node(theirs).site, node(other).site) &&
              !is_same_line(node(theirs).site, node(n).site)) {
            suggest_node(theirs, "scales other scores, and not this one");
            break;
          }
          theirs = first_operand(theirs, TermKind::kScore);
        }
        suggest_node(n, "does not scale the score, as other exponentials do");
        break;
      }
  // Nobody does: where it became whole in a helper, and where the score goes from its sum to the exponential.
  if (!scaled && !x_graph.whole_blocks) {
    std::uint32_t whole = 0;
    for (const std::uint32_t one : passed)
      if (x_terms[one].kind == TermKind::kScore && is_whole(x_terms[one])) whole = one;
    if (whole != 0)
      if (const std::vector<NamedLine> calls = lines_in(site(node(whole).site).callers);
          !calls.empty() &&
          !x_text.launches_within(file_of(node(whole).site, calls.front()), calls.front().line))
        suggest(node(whole).site, calls.front(), "makes the score, which nobody scales");
  }
  if (!scaled)
    for (const std::uint32_t one : passed)
      if (x_terms[one].kind == TermKind::kScore && is_whole(x_terms[one]) &&
          (x_graph.whole_blocks ? is_sum_of_columns(one)
                                : op(one) == ValueOp::kPick || op(one) == ValueOp::kStore ||
                                      op(one) == ValueOp::kRound))
        suggest_node(one, "hands on the score, which nobody scales");
  if (x_graph.whole_blocks && !scaled)
    for (const std::uint32_t one : passed)
      if (node(one).is_input()) suggest_node(one, "loads what nobody scales");
  if (!scaled) suggest_node(rebased, "changes the base of the score, which nobody scales");
  suggest_node(n, why);
  suggest_uses(node(n).site, "is an operand");
  if (!scaled)
    for (const std::uint32_t one : passed)
      if (x_terms[one].kind == TermKind::kScore) suggest_node(one, "makes the score");
}

bool NumberSuspects::makes_weights(std::uint32_t s) const {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (is_same_line(node(n).site, s) && is_exponential(n) &&
        x_terms[n].kind == TermKind::kWeight && x_terms.keys().count(x_terms[n].set) == 1 &&
        x_terms[n].column == kNone)
      return true;
  return false;
}

std::uint32_t NumberSuspects::exponential_of_number(std::uint32_t operand) const {
  if (operand == 0 || operand >= x_graph.nodes.size() || node(operand).site == 0) return 0;
  std::vector<std::uint32_t> makers = {made_by(operand)};
  if (op(makers[0]) == ValueOp::kMultiply)
    for (const std::uint32_t factor : {node(makers[0]).operand[0], node(makers[0]).operand[1]})
      if (factor != 0) makers.push_back(made_by(factor));
  for (const std::uint32_t made : makers) {
    const bool is_exp = is_exponential(made);
    // exp(0 - 0): a maximum of 0, as the score, is that of no key. Less a constant, where others make weights;
    // in whole blocks every key makes its weight there, and the sum knows which was masked.
    if (is_exp && x_terms[made].kind == TermKind::kNumber && node(made).operand[0] != 0 &&
        (node(made).value == 1 ||
         (!x_graph.whole_blocks && node(made).value > 0 && makes_weights(node(made).site))))
      return made;
  }
  return 0;
}

bool NumberSuspects::is_read_by_blocks(std::uint32_t load) const {
  const std::uint32_t from = node(load).operand[0];
  for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other)
    if (is_load(other) && node(other).operand[0] == from && !node(other).is_input() &&
        is_same_line(node(other).site, node(load).site) &&
        node(other).where >> 10 != node(load).where >> 10)
      return true;
  return false;
}

void NumberSuspects::suspect_other_row(std::uint32_t a, std::uint32_t b, std::uint32_t row) {
  if (a == 0 || b == 0 || x_graph.whole_blocks) return;
  if ((x_terms[a].row == row) == (x_terms[b].row == row)) return;
  const std::uint32_t other = x_terms[a].row == row ? b : a;
  const std::string why = "takes a number of another row from another thread";
  // Back to where it changed hands: by a shuffle, or by memory that another thread stored to.
  std::uint32_t at = other;
  for (int steps = 0; steps < 64 && node(at).site != 0 && !node(at).is_input(); ++steps) {
    const std::uint32_t from = node(at).operand[0];
    if (from == 0 || from >= at || x_terms[from].kind != x_terms[at].kind) break;
    if (node(from).where != node(at).where) {
      if (is_load(at)) {
        if (op(from) != ValueOp::kStore) {  // a shuffle
          suggest_node(at, why);
          suggest_returns(node(at).site, "says which thread");
        }
        if (is_read_by_blocks(at)) {
          suggest_pointer(node(at).site, "makes the place where another block's number is read");
          suggest_node(at, why);
        }
        suggest_moves_with_indices(at, why);
        return suggest_moves_with_indices(other, why);
      }
      suggest_node(at, why);
      return suggest_indices(node(at).site, why);
    }
    at = from;
  }
  // The thread has made it itself, of another row of q.
  if (x_terms[at].kind != TermKind::kScore || node(at).site == 0 || node(at).is_input()) return;
  const std::string makes = "makes the score of another row";
  suggest_node(at, makes);
  const std::uint32_t product =
      first_operand(at, [&](std::uint32_t of) { return op(of) == ValueOp::kMultiply; });
  for (const std::uint32_t element : node(product != 0 ? product : at).operand)
    if (element != 0 && element < at && x_terms[element].kind == TermKind::kElement &&
        x_terms[element].buffer == 0)
      suggest_indices(node(element).site, makes);
}

void NumberSuspects::suggest_test(std::uint32_t s, const Condition& condition,
                                  const std::string& why) {
  const std::vector<std::string> names = tested_names(text_of(s, condition.at));
  // "if (masked)" only names what was decided before.
  if (names.size() != 1) return suggest(s, condition.at, why);
  suggest_decided(s, condition, why);
  suggest(s, condition.at, why);
}

void NumberSuspects::suggest_decided(std::uint32_t s, const Condition& condition,
                                     const std::string& why) {
  const std::string& file = file_of(s, condition.at);
  for (const std::string& name : tested_names(text_of(s, condition.at)))
    suggest_computed_above(file, site(s).function, condition.at.line, name, why);
}

bool NumberSuspects::chooses_scores(std::uint32_t s, std::uint32_t row) const {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (node(n).site == s && x_terms[n].kind == TermKind::kScore && x_terms[n].row == row)
      return true;
  return false;
}

void NumberSuspects::suggest_choice_above(std::uint32_t s, const std::string& why) {
  if (const auto [line, name] = choice_stored_by(s, ""); line != 0)
    suggest(site(s).file, site(s).function, line, 0, name, why);
}

void NumberSuspects::suggest_masks_by_text(std::uint32_t holder, const std::string& why,
                                           const std::string& made) {
  const ValueSite& at = site(holder);
  if (at.variable.empty()) return;
  suggest_masks(at, x_text.masks_of(at.file, at.line, at.variable), why, made);
}

void NumberSuspects::suggest_masks(const ValueSite& at, const std::vector<int>& lines,
                                   const std::string& why, const std::string& made) {
  for (const int line : lines) {
    const std::string text = x_text.statement(at.file, line);
    // A mask that goes by a name alone is right.
    const std::string chooses = chosen_by(text);
    if (!chooses.empty()) suggest_computed_above(at.file, at.function, line, chooses, why);
    suggest(at.file, at.function, line, 0, "", why);
    for (const std::string& name : tested_names(text))
      suggest_computed_above(at.file, at.function, line, name, made);
  }
}

void NumberSuspects::suggest_masks_of_exponential(std::uint32_t exponential,
                                                  const std::string& why) {
  const ValueSite& at = site(node(exponential).site);
  for (const std::string& name : minuends(x_text.line(at.file, at.line))) {
    std::vector<int> lines = x_text.masks_of(at.file, at.line, name);
    // s = scores[j]: what is stored to that.
    const int above = lines.empty() ? x_text.assigned_above(at.file, at.line, name) : 0;
    if (above != 0)
      for (const std::string& array : indexed_names(x_text.line(at.file, above))) {
        const std::vector<int> of_array = x_text.masks_of(at.file, above, array);
        lines.insert(lines.end(), of_array.begin(), of_array.end());
      }
    suggest_masks(at, lines, why, "makes what is compared there");
  }
}

void NumberSuspects::suggest_stored_masks(std::uint32_t row, std::uint32_t score,
                                          const std::string& why) {
  if (x_graph.whole_blocks || score == 0 || node(score).site == 0) return;
  const std::string made = "makes what is compared there";
  std::set<std::uint32_t> masks, of_others;
  for (const host::ReplacedValue& one : x_graph.replaced)
    if (one.by == 0 && x_terms[one.node].kind == TermKind::kScore && !is_own(one.site))
      (x_terms[one.node].row == row ? masks : of_others).insert(one.site);
  // What the score itself came through masks none of the row's keys.
  const std::vector<Condition> held = conditions_in(site(node(score).site).conditions);
  // What the mask tests; then what keeps a thread, or a step, from coming there.
  const auto suggest_guard = [&](std::uint32_t s, const std::string& guards) {
    std::vector<Condition> tests;
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (!condition.loop && !is_among(condition, held) &&
          (tests.empty() || come_of(condition.tests, "txyz")))
        tests.push_back(condition);
    for (const Condition& condition : tests) suggest_test(s, condition, guards);
    for (const Condition& condition : tests) {
      suggest_decided(s, condition, made);
      suggest_computed(s, condition.tests, made);
    }
  };
  for (const std::uint32_t s : masks)
    if (chooses_scores(s, row)) {
      suggest_choice_above(s, "masks other keys of the row");
      // A mask that goes by a name alone is right.
      if (!chosen_by(x_text.line(site(s).file, site(s).line)).empty()) suggest_chosen_by(s, made);
      suggest(s, "masks other keys of the row");
      suggest_chosen_by(s, made);
    } else {
      suggest_guard(s, "masks other keys of the row");
    }
  for (const std::uint32_t s : of_others)
    if (masks.empty()) suggest_guard(s, why + ": it guards a mask of other rows");
  // By the name of what holds the score, or of what its exponential is taken of.
  std::set<std::string> names;
  std::vector<std::uint32_t> choices,
      holders;  // sites: between the score and something else, and of the score
  std::uint32_t at = score;
  if (is_exponential(score)) at = node(made_by(node(score).operand[0])).operand[0];
  while (at != 0 && node(at).site != 0) {
    names.insert(site(node(at).site).variable);
    holders.push_back(node(at).site);
    if (op(at) == ValueOp::kPick) choices.push_back(node(at).site);
    const std::uint32_t before = node(at).operand[0];
    if (at == made_by(at) || before >= at) break;
    at = before;
  }
  names.erase("");
  const auto runs = [&](std::uint32_t s) {
    return std::any_of(x_graph.sites.begin() + 1, x_graph.sites.end(), [&](const ValueSite& one) {
      return one.ran && one.function == site(s).function && one.file == site(s).file;
    });
  };
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    if (site(s).op != ValueOp::kStore || names.count(site(s).variable) == 0 || !never_ran(s) ||
        !runs(s))
      continue;
    // The outermost lets nothing through.
    std::vector<Condition> conditions = conditions_in(site(s).conditions);
    std::reverse(conditions.begin(), conditions.end());
    std::erase_if(conditions, [&](const Condition& condition) {
      return condition.loop || is_among(condition, held);
    });
    for (const Condition& condition : conditions)
      suggest_test(s, condition, why + ": what it guards never ran");
    for (const Condition& condition : conditions) {
      suggest_decided(s, condition, made);
      suggest_computed(s, condition.tests, made);
    }
  }
  if (masks.empty())
    for (const std::uint32_t s : choices) {
      suggest(s, why);
      suggest_chosen_by(s, made);
    }
  if (masks.empty() && choices.empty())
    for (const std::uint32_t s : holders) suggest_masks_by_text(s, why, made);
  // A score that is 0 has no holder.
  if (masks.empty() && holders.empty() && is_exponential(score))
    suggest_masks_of_exponential(score, why);
}

void NumberSuspects::suggest_conditions_of_end(std::uint32_t s, std::uint32_t row,
                                               const std::string& why) {
  if (x_graph.whole_blocks) return suggest_conditions(s, nullptr, why, false);
  std::uint32_t n = 0;  // the weight of a key of the row
  for (std::uint32_t one = 1; one < x_graph.nodes.size() && n == 0; ++one)
    if (node(one).site == s && x_terms[one].kind == TermKind::kWeight && x_terms[one].row == row)
      n = one;
  for (const Condition& condition : conditions_in(site(s).conditions)) {
    if (n != 0 && holds_for_all_keys(n, condition)) continue;
    // "c < 64" goes over a whole tile: that is as it should be, if something else keeps what is no key out.
    const std::vector<std::string> limits = loop_limits(text_of(s, condition.at));
    const bool known =
        condition.loop && !limits.empty() &&
        std::none_of(condition.tests.begin(), condition.tests.end(),
                     [&](const NamedLine& test) { return has_name(test.name, limits); });
    if (!known) suggest_condition(s, condition, why, false);
  }
}

void NumberSuspects::suspect_no_score(std::uint32_t n, std::uint32_t row, const std::string& why) {
  if (has_all_weights(row)) {
    // Every key has its weight, so that this one is of none.
    x_out.what += "; every key of the row has its own weight beside it";
    suggest_stored_masks(row, n, "lets what is no key through");
    suggest_conditions_of_end(node(n).site, row, "lets what is no key through");
  } else if (node(n).operand[0] != 0) {
    suggest_foreign(node(n).operand[0]);
  }
  suggest_node(n, why);
  if (has_all_weights(row))
    suggest_conditions(node(n).site, nullptr, "lets what is no key through", false);
  suggest_uses(node(n).site, "is an operand");
}

void NumberSuspects::suggest_end_of_weights(std::uint32_t n, std::uint32_t weight) {
  const Term& mine = x_terms[weight];
  if (x_graph.whole_blocks || mine.kind != TermKind::kWeight || op(n) == ValueOp::kProduct) return;
  // That of another lane: what is read of memory may be of the step before.
  const ValueSite& taken = site(node(weight).site);
  if (x_text.line(taken.file, taken.line).find("shfl") == std::string::npos) return;
  const auto was_right = [&](std::uint32_t other) {
    const auto [a, b] = operands_of(other);
    if (node(other).site != node(n).site || node(other).where != node(n).where || other >= n ||
        a == 0 || b == 0 || a >= other || b >= other)
      return false;
    for (const auto& [of, element] : {std::pair(a, b), std::pair(b, a)})
      if (x_terms[of].kind == TermKind::kWeight && x_terms[of].set == mine.set &&
          x_terms[of].row == mine.row && x_terms[element].kind == TermKind::kElement &&
          x_terms[element].buffer == 2 &&
          x_terms.keys().has(mine.set, x_attention.key_of(x_terms[element].row)))
        return true;
    return false;
  };
  bool before = false;
  for (std::uint32_t other = 1; other < n && !before; ++other) before = was_right(other);
  if (!before) return;
  const std::uint32_t s = node(n).site;
  for (const Condition& condition : conditions_in(site(s).conditions)) {
    const std::vector<std::string> limits = loop_limits(text_of(s, condition.at));
    for (const NamedLine& test : condition.tests)
      if (condition.loop && has_name(test.name, limits) && computes(text_of(s, test), test.name))
        return suggest(s, test, "goes on behind the last weight, from the first one again");
  }
}

bool NumberSuspects::lost_in_thread(std::uint32_t lost, const Term& partial) const {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (n == lost || node(n).site != node(lost).site || node(n).where != node(lost).where ||
        term.kind != TermKind::kScore || term.row != partial.row || term.column != partial.column)
      continue;
    for (unsigned d = 0; d < x_terms.columns().size(); ++d)
      if (x_terms.columns().has(term.set, d) && x_terms.columns().has(partial.set, d)) return true;
  }
  return false;
}

bool NumberSuspects::is_summed_in_steps(std::uint32_t n) {
  const ValueSite& at = site(node(n).site);
  const std::string& text = x_text.line(at.file, at.line);
  if (text.find("shfl") == std::string::npos) return false;
  const std::vector<Condition> around = conditions_in(at.conditions);
  return std::any_of(around.begin(), around.end(), [&](const Condition& condition) {
    return condition.loop && has_name(text, names_of(condition.tests));
  });
}

void NumberSuspects::suspect_partial(std::uint32_t score, std::uint32_t at, std::uint32_t row) {
  const Term& has = x_terms[score];
  const auto holds_more = [&](std::uint32_t n) {
    const Term& term = x_terms[n];
    unsigned more = 0;
    if (term.kind != TermKind::kScore || term.row != has.row || term.column != has.column)
      return more;
    for (unsigned d = 0; d < x_terms.columns().size(); ++d)
      more += x_terms.columns().has(term.set, d) && !x_terms.columns().has(has.set, d);
    return more;
  };
  std::uint32_t sum = made_by(score);
  for (int steps = 0; steps < 32; ++steps) {
    const ValueOp is = op(sum);
    if (node(sum).site == 0 || is == ValueOp::kAdd || is == ValueOp::kFma ||
        is == ValueOp::kProduct)
      break;
    const std::uint32_t next = first_operand(sum, TermKind::kScore);
    if (next == 0) break;
    sum = made_by(next);
  }
  if (!x_graph.whole_blocks && node(sum).site != 0) suggest_missing_step(node(sum).site);
  // Of lanes that add it up another one has the whole, and this one stores what it has.
  const auto is_of_other_lane = [&](std::uint32_t n) {
    return is_same_line(node(n).site, node(sum).site) && node(n).where != node(sum).where &&
           node(n).where / 32 == node(sum).where / 32 && holds_more(n) != 0 && is_whole(x_terms[n]);
  };
  for (std::uint32_t n = 1; !x_graph.whole_blocks && n < x_graph.nodes.size(); ++n)
    if (is_of_other_lane(n)) {
      for (std::uint32_t by = score; by != sum && node(by).site != 0; by = node(by).operand[0])
        if (op(by) == ValueOp::kStore)
          for (const Condition& condition : conditions_in(site(node(by).site).conditions))
            if (!condition.loop && come_of(condition.tests, "t"))
              suggest(node(by).site, condition.at,
                      "lets a lane store a part, while another has all of it");
      break;
    }
  // Others may have what its own thread lost.
  if (!suspect_dropped(holds_more))
    suspect_dropped(
        [&](std::uint32_t n) { return node(n).where == node(score).where ? holds_more(n) : 0; });
  for (const unsigned buffer : {1u, 0u})
    if (!loads_all(buffer, row)) suggest_loaders(buffer, lacks_text(buffer, row));
  // Were the columns that lack multiplied at all? Then they were not added.
  const Term& partial = x_terms[score];
  bool computed = false;
  std::uint32_t lost = 0;  // of those the sum that has most of them
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind != TermKind::kScore || term.row != partial.row || term.column != partial.column)
      continue;
    bool lacks = false;
    for (unsigned d = 0; d < x_terms.columns().size() && !lacks; ++d)
      lacks = x_terms.columns().has(term.set, d) && !x_terms.columns().has(partial.set, d);
    computed = computed || lacks;
    if (lacks && (lost == 0 ||
                  x_terms.columns().count(term.set) > x_terms.columns().count(x_terms[lost].set)))
      lost = n;
  }
  // Its own thread lost it, if what that thread made at the same line did come through.
  const bool in_thread =
      computed && x_terms.columns().count(x_terms[lost].set) == 1 && lost_in_thread(lost, partial);
  if (in_thread) suggest_node(lost, "makes parts of a score, of which the next replaces the last");
  if (computed && !in_thread) {
    const char* const why = "adds the columns of a score, and loses some";
    // Of lanes that put it together in steps, one by which there is none may lie in the loop; of what other lanes then
    // add up, too.
    for (const std::uint32_t part : {sum, lost})
      if (is_summed_in_steps(part)) {
        if (!x_graph.whole_blocks && lacks_steps(partial)) suggest_loop_over_lanes(node(part).site);
        suggest_shuffles(part, why);
      }
    if (!is_summed_in_steps(sum) && !is_summed_in_steps(lost)) be_sure();
    suggest_node(sum, why);
  }
  // Lanes may each have a part: then it is the loop in which each makes its own.
  std::uint32_t inner = sum;
  for (int steps = 0; steps < 64; ++steps) {
    if (node(inner).site == 0) break;
    const bool multiplies =
        op(inner) == ValueOp::kProduct || op(inner) == ValueOp::kFma ||
        (op(inner) == ValueOp::kAdd && op(made_by(node(inner).operand[1])) == ValueOp::kMultiply);
    if (multiplies) break;
    std::uint32_t next = 0;
    for (const std::uint32_t operand : operands(inner))
      if (x_terms[operand].kind == TermKind::kScore) next = operand;
    if (next == 0) break;
    inner = made_by(next);
  }
  if (node(inner).site != 0) {
    suggest_late_loops(node(inner).site);
    bool first = true;
    for (const Condition& condition : conditions_in(site(node(inner).site).conditions)) {
      if (!condition.loop && !first) continue;
      suggest(node(inner).site, condition.at, "decides which columns are added");
      first = false;
      break;
    }
    suggest_node(inner, "adds the columns of a score");
  }
  suggest_node(sum, "adds the columns of a score");
  suggest_node(at, ill_text(Ill::kPartial));
  if (node(inner).site != 0)
    suggest_conditions(node(inner).site, "loop", "decides which columns are added");
}

}  // namespace attn_diag::lines
