#include "harness/lines/number_suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace attn_diag::lines {

namespace {

// Whether what is assigned is made of one variable, as "lane = tid % 32".
bool is_made_of_one(const std::string& text) {
  const std::size_t value = text.find('=');
  return value != text.npos && lines::variables_of(text.substr(value + 1)).size() <= 1;
}

}  // namespace

std::uint32_t NumberSuspects::exponential_in(std::uint32_t n, int most) const {
  for (int steps = 0; steps < most && n != 0 && !node(n).is_input(); ++steps) {
    n = made_by(n);
    if (is_exponential(n)) return n;
    if (node(n).site == 0) return 0;
    if (op(n) != ValueOp::kProduct) {
      n = first_operand(n, TermKind::kWeight);
      continue;
    }
    const std::uint32_t product = n;
    n = operands_of(product).first;
    // Of masked keys the weights are plain zeros.
    for (const auto& [left, right] : x_graph.pairs_of(node(product)))
      if (n != 0 && x_terms[n].kind == TermKind::kNumber && x_terms[left].kind == TermKind::kWeight)
        n = left;
    if (n != 0 && x_terms[n].kind == TermKind::kNumber) n = node(product).operand[0];
  }
  return 0;
}

bool NumberSuspects::is_of_own_maximum(std::uint32_t factor, std::uint32_t part) const {
  const std::uint32_t weight = exponential_in(part);
  if (!is_exponential(factor) || weight == 0) return false;
  const auto [most, of_factor] = subtracted(node(factor).operand[0]);
  const auto [own, of_part] = subtracted(node(weight).operand[0]);
  if (most == 0 || own == 0 || op(of_factor) != ValueOp::kSubtract ||
      op(of_part) != ValueOp::kSubtract)
    return false;
  const std::uint32_t kept = node(of_factor).operand[0];
  return kept != 0 && node(most).value != node(own).value &&
         node(most).value == std::max(node(kept).value, node(own).value);
}

void NumberSuspects::suggest_bare_v(std::uint32_t n) {
  std::uint32_t bare = 0;
  bool weighed = false;
  for (const std::uint32_t operand : operands(n)) {
    const Term& term = x_terms[operand];
    weighed = weighed || (term.kind == TermKind::kWeight && term.column != kNone);
    if (term.kind == TermKind::kElement && term.buffer == 2) bare = operand;
  }
  if (bare == 0 || !weighed) return;
  if (const std::uint32_t made = made_by(bare); op(made) == ValueOp::kAdd)
    suggest_node(made, "adds v without a weight");
}

const char* NumberSuspects::ill_text(Ill why) {
  switch (why) {
    case Ill::kColumns:
      return "multiplies different columns, or adds such";
    case Ill::kHeads:
      return "multiplies elements of different heads";
    case Ill::kKeys:
      return "multiplies the weight of one key with v of another";
    case Ill::kRows:
      return "puts together numbers of different query rows";
    case Ill::kTwice:
      return "adds what was added before";
    case Ill::kFactors:
      return "adds parts of a score that are scaled differently";
    case Ill::kFrames:
      return "adds parts of a sum that are relative to different maxima";
    case Ill::kPartial:
      return "takes the exponential of a score that lacks columns";
    case Ill::kScale:
      return "takes the exponential of a score that is scaled wrongly";
    case Ill::kNoScore:
      return "takes the exponential of 0, where a score belongs";
    case Ill::kSumOfScores:
      return "adds scores of different keys";
    case Ill::kOffset:
      return "adds a number to a sum that should begin with 0";
    case Ill::kUnwritten:
      return "computes with memory that nobody wrote";
    case Ill::kSign:
      return "makes a weight that is not positive and finite";
    case Ill::kMeaningless:
      return "computes what has no place in attention";
    case Ill::kUnwatched:
      return "what blocks made that were not watched";
    default:
      return "computes in a way that is not known";
  }
}

void NumberSuspects::suspect_dropped_scores(const Cause& cause) {
  switch (cause.ill) {
    case Ill::kOffset:
    case Ill::kSign:
    case Ill::kMeaningless:
    case Ill::kUnknown:
      break;
    default:
      return;
  }
  suspect_dropped([&](std::uint32_t n) -> unsigned {
    const Term& term = x_terms[n];
    if (term.row != cause.row) return 0;
    if (term.kind == TermKind::kWeight) return 1 + x_terms.keys().count(term.set);
    // What a mask puts over a score that the row does not see is meant to.
    return term.kind == TermKind::kScore && is_whole(term) &&
           x_attention.visible(term.row, x_attention.key_of(term.column));
  });
}

void NumberSuspects::suggest_distance_of_lanes(std::uint32_t s) {
  if (x_graph.whole_blocks) return;
  const ValueSite& at = site(s);
  const std::string lane = shuffle_lane(x_text.line(at.file, at.line));
  if (lane.empty()) return;
  const std::string why = "says how far apart the lanes are whose numbers are added";
  for (const Condition& condition : conditions_in(site(s).conditions))
    if (condition.loop && has_name(text_of(s, condition.at), {lane}))
      return suggest(s, condition.at, why);
  for (const Statement& around : x_text.statements_around(at.file, at.line))
    if (around.loop && has_name(x_text.line(at.file, around.begin), {lane}))
      suggest(at.file, at.function, around.begin, 0, lane, why);
}

void NumberSuspects::suspect_ill(const Cause& cause) {
  const std::uint32_t n = cause.node;
  const bool scales = op(n) == ValueOp::kMultiply || op(n) == ValueOp::kDivide;
  const std::string why = cause.ill == Ill::kSign && scales
                              ? "scales weights by a number that is not positive and finite"
                              : ill_text(cause.ill);
  x_out.what = why;
  const auto [a, b] = operands_of(n);
  const bool sums = cause.ill == Ill::kFrames || cause.ill == Ill::kTwice;
  x_first_step = !sums && is_first_step(cause.row, n, a);
  x_later_step = x_graph.whole_blocks && !x_first_step;
  std::uint32_t left = a;
  std::uint32_t right = sums && op(n) == ValueOp::kFma ? node(n).operand[2] : b;
  if (sums && op(n) == ValueOp::kProduct) {
    const auto frames = frames_of_product(n);
    left = std::get<0>(frames);
    right = std::get<1>(frames);
  }
  if (left != 0 && right != 0 && left < n && right < n) {
    const bool apart = cause.ill == Ill::kHeads || cause.ill == Ill::kRows;
    const auto text = [&](std::uint32_t at) {
      return term_text(at) + (apart ? head_text(at) : "");
    };
    x_out.what += fmt::format(": {}, and {}", text(left), text(right));
  }
  if (x_graph.whole_blocks && cause.ill == Ill::kMeaningless) suspect_masked_query(cause.row);
  if (cause.ill == Ill::kNoScore && has_all_weights(cause.row))
    suggest_stored_masks(cause.row, n, "lets what is no key through");
  if (cause.ill == Ill::kMeaningless && !x_graph.whole_blocks)
    suspect_key_beyond(cause, left, right);
  suspect_foreign_factor(cause);
  const auto is_part = [&](std::uint32_t of) {
    return of != 0 && of < n && x_terms[of].kind == TermKind::kScore && !is_whole(x_terms[of]);
  };
  if ((cause.ill == Ill::kSumOfScores || cause.ill == Ill::kRows) && is_part(a) && is_part(b))
    suggest_distance_of_lanes(cause.site);
  suggest_chosen(n, {a, b, left, right});
  suspect_replaced_part();
  suspect_dropped_scores(cause);
  switch (cause.ill) {
    case Ill::kHeads:
      for (const std::uint32_t operand : {a, b}) {
        if (operand == 0 || operand >= n || x_terms[operand].kind != TermKind::kElement) continue;
        const Term& element = x_terms[operand];
        if (element.buffer == 0 && element.row != cause.row && !x_graph.whole_blocks)
          suggest_unmoved_by_block(node(input_of(operand)).site);
        if (element.buffer == 0 || x_attention.same_head(cause.row, element.row)) continue;
        suggest_head_of_block(n, operand, cause.row, why);
        const std::uint32_t input = input_of(operand);
        const std::uint32_t end =
            key_row(cause.row, 0) + static_cast<std::uint32_t>(x_terms.keys().size());
        // The rows behind the head's own: who runs past the end?
        const Term& other = x_terms[operand == a ? b : a];
        if (loads_none(element.buffer, cause.row)) {
          if (x_attention.batch_of(cause.row) == 0) suggest_head(node(input).site, why);
          suggest_pointer(node(input).site, why);
        }
        const bool same_key = other.kind == TermKind::kWeight &&
                              x_terms.keys().has(other.set, x_attention.key_of(element.row));
        // Rows of one head follow another's only where they lie so.
        const Problem& p = x_attention.problem();
        const bool in_order =
            (p.layout == Layout::kBHSD || p.kv_heads == 1) && !copies_input(element.buffer);
        // In a block the columns would be right.
        const bool shifted =
            x_graph.whole_blocks &&
            (x_first_step || (other.kind == TermKind::kElement && other.column != element.column));
        if (in_order && !same_key && !shifted && loads_first_key(element.buffer, cause.row) &&
            element.row >= end && element.row < end + x_terms.keys().size())
          for (const std::uint32_t s : {node(n).site, node(operand).site, node(input).site})
            suggest_conditions(s, nullptr, "lets rows behind the last key through", false);
        suggest_heads_of_load(node(input).site, cause.row);
      }
      // What a kernel before has kept of the inputs: where this one looks for it.
      for (const std::uint32_t operand : {a, b}) {
        if (x_graph.whole_blocks || operand == 0 || operand >= n || !is_load(operand) ||
            node(operand).is_input())
          continue;
        const std::uint32_t s = node(operand).site;
        if (x_text.is_shared(site(s).file, site(s).variable)) continue;
        std::vector<NamedLine> places = variables_in(site(s).uses, ',');
        std::erase_if(places, [&](const NamedLine& use) {
          const std::string& text = text_of(s, use);
          return !comes_of(use, "txyz") || is_loop(text) || text.find_first_of("*/%") == text.npos;
        });
        // A pointer is made of what says which head that is.
        std::stable_partition(places.begin(), places.end(), [&](const NamedLine& use) {
          return !makes_pointer(text_of(s, use), use.name);
        });
        for (const NamedLine& use : places)
          suggest(s, use, "makes the place of what is of another head");
      }
      return suggest_pair(n, a, b, cause.row, cause.ill);
    case Ill::kKeys:
      // Rows of k that are shifted by less than a row have other columns as well, whatever key they are of.
      for (std::uint32_t other = 1; !x_graph.whole_blocks && other < x_graph.nodes.size(); ++other)
        if (const Term& term = x_terms[other];
            term.kind == TermKind::kIll && term.ill == Ill::kColumns && term.root == other &&
            node(other).where == node(n).where && op(other) != ValueOp::kProduct) {
          suggest_pair(other, operands_of(other).first, operands_of(other).second, cause.row,
                       Ill::kColumns);
          break;
        }
      suggest_end_of_weights(n, a);
      if (is_wrong_elsewhere(n, a) && loads_all(2, cause.row)) suggest_taken(n, a);
      return suggest_pair(n, a, b, cause.row, cause.ill);
    case Ill::kColumns:
      suspect_addend(n);
      return suggest_pair(n, a, b, cause.row, cause.ill);
    case Ill::kTwice:
      return suspect_twice(cause, a, b);
    case Ill::kFrames:
      return suspect_frames(n, a, b, why);
    case Ill::kPartial:
      return suspect_partial(a, n, cause.row);
    case Ill::kScale:
      return suspect_scale(a, n, why);
    case Ill::kNoScore:
      return suspect_no_score(n, cause.row, why);
    case Ill::kOffset: {
      // The exponential of a number that stands for the score of what is no key, and is no -inf.
      for (const std::uint32_t operand : {left, right})
        if (const std::uint32_t made = operand == 0 || operand >= n ? 0 : made_by(operand);
            made != 0 && !x_graph.whole_blocks && is_exponential(made) && node(made).site != 0 &&
            x_terms[made].kind == TermKind::kNumber)
          for (const NamedLine& use : variables_in(site(node(made).site).uses, ','))
            if (use.constant && std::fabs(*use.constant) < kNoMaximum)
              suggest(node(made).site, use, "is taken for the score of what is no key");
      for (const std::uint32_t operand : {left, right})
        if (const std::uint32_t of_number = exponential_of_number(operand); of_number != 0)
          suspect_no_score(of_number, cause.row, ill_text(Ill::kNoScore));
      if (x_graph.whole_blocks)
        for (unsigned j = 0; j < x_terms.keys().size() && x_out.suspects.empty(); ++j)
          if (x_attention.visible(cause.row, j)) suspect_masked_loads(cause.row, j);
      if (x_graph.whole_blocks)
        for (const std::uint32_t operand : {left, right})
          if (operand != 0 && operand < n && x_terms[operand].kind == TermKind::kNumber)
            suggest_unmasked(operand);
      // exp(masked - masked): no key that the thread has is seen, and it does not know of those that others have.
      for (std::uint32_t of : {left, right}) {
        for (int steps = 0; steps < 64 && of != 0 && of < n && node(of).site != 0 &&
                            x_terms[of].kind == TermKind::kNumber;
             ++steps) {
          const ValueSite& at = site(node(of).site);
          if (node(of).value == 1 && x_text.line(at.file, at.line).find("exp") != std::string::npos)
            suggest_helper_of_maximum(node(of).site);
          of = first_operand(of, [&](std::uint32_t part) {
            return x_terms[part].kind == TermKind::kNumber && node(part).value != 0;
          });
        }
      }
      suggest_filled_fragment(n);
      // Where the sum begins, then where it goes on.
      suggest_constants(cause.site, "gives the sum its first value", [&, left, right](double x) {
        return x != 0 && ((left < n && x == double{node(left).value}) ||
                          (right < n && x == double{node(right).value}));
      });
      for (const NamedLine& use : variables_in(site(cause.site).uses, ','))
        if (use.line != site(cause.site).line && !use.constant)
          suggest(cause.site, use, "gives the sum its first value");
      // A number that was computed is no first value.
      for (const std::uint32_t operand : {left, right})
        if (operand != 0 && operand < n && x_terms[operand].kind == TermKind::kNumber &&
            node(made_by(operand)).operand[0] != 0)
          suggest_node(n, why);
      for (const std::uint32_t operand : {a, b})
        if (operand != 0 && operand < n && x_terms[operand].kind == TermKind::kNumber)
          suggest_foreign(operand);
      suggest_node(n, why);
      for (const std::uint32_t operand : {a, b})
        if (operand != 0 && operand < n) suggest_moves(operand, "hands on an operand");
      return;
    }
    case Ill::kSign: {
      if (x_graph.whole_blocks && b != 0 && b < n && x_terms[b].kind == TermKind::kNumber &&
          (op(n) == ValueOp::kDivide || std::isinf(node(b).value)))
        suggest_last_weight(cause.row);
      if (divides_by_0(n)) {
        suggest_unsummed(cause.row);
        if (x_terms[b].kind == TermKind::kNumber) suggest_stored_divisor(cause.site);
      }
      suggest_odd_maxima(cause.site);
      // Too large for what was subtracted: where was that made, if of no maximum?
      if (is_exponential(n) && a != 0 && a < n && node(a).value > 80) {
        suggest_late_loops_of_uses(cause.site);
        suggest_minimum_of_scores();
        suggest_helper_of_maximum(cause.site);
        const ValueSite& at = site(cause.site);
        const std::vector<NamedLine> uses = variables_in(at.uses, ',');
        const std::vector<std::string> names = subtracted_names(x_text.line(at.file, at.line));
        const bool named = std::any_of(uses.begin(), uses.end(), [&](const NamedLine& use) {
          return has_name(use.name, names);
        });
        for (const NamedLine& use : uses)
          if (!use.constant &&
              (named ? has_name(use.name, names) : use.name != score_variable(a)) &&
              use.line != at.line && text_of(cause.site, use).find("max") == std::string::npos)
            suggest(cause.site, use, "makes what is subtracted");
        // A number that the compiler knows is made by no instruction.
        for (const std::string& name : named ? std::vector<std::string>() : names)
          if (const int line = x_text.assigned_above(at.file, at.line, name); line != 0)
            suggest(at.file, at.function, line, 0, name, "makes what is subtracted");
      }
      suggest_node(n, why);
      for (const std::uint32_t operand : {a, b, node(n).operand[2]})
        if (operand != 0 && operand < n) suggest_odd_operand(operand);
      suggest_other_uses(n, {a, b});
      suggest_uses(cause.site, "is an operand");
      return;
    }
    case Ill::kUnwritten: {
      if (suspect_constant_nan(n)) return;
      suggest_odd_maxima(cause.site);
      for (const std::uint32_t operand : {a, b, node(n).operand[2]})
        if (operand != 0 && operand < n) suggest_guards_of_key(node(operand).site);
      for (const std::uint32_t operand : {a, b, node(n).operand[2]})
        if (operand != 0 && operand < n && std::isnan(node(operand).value) &&
            x_terms[operand].kind == TermKind::kNumber)
          suggest_nan(operand);
      if (x_out.suspects.empty())
        suggest_constants(cause.site, "is a number of which NaN is made",
                          [](double x) { return !(x < 1e30); });
      suggest_node(n, why);
      suggest_uses(cause.site, "is an operand");
      return;
    }
    default:
      if (cause.ill == Ill::kRows && x_graph.whole_blocks) suspect_load_of_rows(n, a, b);
      if (suspect_bare_score(cause, a, b)) return;
      for (const std::uint32_t operand : {a, b, node(n).operand[2]})
        if (const std::uint32_t of_number = exponential_of_number(operand);
            of_number != 0 && operand < n)
          suspect_no_score(of_number, cause.row, ill_text(Ill::kNoScore));
      if (suspect_factor_of_v(cause, a, b)) return;
      suggest_bare_v(n);
      if (x_graph.whole_blocks) {
        suspect_input(cause.node, a, b);
        const bool any =
            std::any_of(x_graph.nodes.begin(), x_graph.nodes.end(), [&](const ValueNode& one) {
              const Term& term = x_terms[static_cast<std::uint32_t>(&one - x_graph.nodes.data())];
              return term.kind == TermKind::kScore && term.row == cause.row;
            });
        if (!any) suggest_behind_unread();
      }
      if ((op(n) == ValueOp::kMultiply || op(n) == ValueOp::kDivide) && b != 0 && b < n &&
          x_terms[b].kind == TermKind::kWeight && x_terms[b].column != kNone)
        suggest_moves_with_indices(b, "makes a sum of weights that has v in it");
      if (is_overrun(n, a, b)) {
        // Not the loop over columns, which is whole.
        const std::string runs = "lets the index run into what lies behind";
        for (const Condition& condition : conditions_in(site(cause.site).conditions))
          if (condition.loop && condition.at.line != site(cause.site).line)
            suggest_condition(cause.site, condition, runs, false);
      }
      if (cause.ill == Ill::kRows) suspect_other_row(a, b, cause.row);
      suggest_what_others_do(n, a, b);
      suggest_node(n, why);
      for (const std::uint32_t operand :
           is_other_input(n, b, a) ? std::array{b, a} : std::array{a, b}) {
        if (operand == 0 || operand >= n) continue;
        if (x_terms[operand].kind == TermKind::kNumber) suggest_foreign(operand);
        if (cause.ill == Ill::kRows) suggest_row_of_load(operand);
        suggest_moves_with_indices(operand, "hands on an operand");
      }
      suggest_callers(cause.site, why);
  }
}

bool NumberSuspects::is_other_input(std::uint32_t n, std::uint32_t operand,
                                    std::uint32_t by) const {
  if (x_graph.whole_blocks || operand == 0 || by == 0 || operand >= n || by >= n ||
      x_terms[operand].kind != TermKind::kElement)
    return false;
  const bool of_v = x_terms[operand].buffer == 2;
  return x_terms[by].kind == TermKind::kWeight ? !of_v
                                               : x_terms[by].kind == TermKind::kElement && of_v;
}

void NumberSuspects::suggest_index_of_store(std::uint32_t s, bool of_thread) {
  const std::string& text = x_text.line(site(s).file, site(s).line);
  if (x_graph.whole_blocks || !is_plain_subscript(text, site(s).variable)) return;
  const std::vector<std::string> names = subscript_names(text, site(s).variable);
  for (const NamedLine& use : variables_in(site(s).uses, ','))
    if (has_name(use.name, names) && use.line != site(s).line && !is_loop(text_of(s, use)) &&
        computes(text_of(s, use), use.name) &&
        of_thread == (use.sources == "t" && is_made_of_one(text_of(s, use))))
      suggest(s, use, "makes the index by which it is stored");
}

void NumberSuspects::suggest_row_of_load(std::uint32_t n) {
  const std::uint32_t made = made_by(n);
  if (x_graph.whole_blocks || made == n || !node(made).is_input() || node(made).site == 0) return;
  const std::uint32_t s = node(made).site;
  const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
  const std::vector<std::string> strides =
      multiplied_in_subscripts(x_text.line(site(s).file, site(s).line));
  const std::string why = "makes the row of what is loaded";
  for (const NamedLine& use : uses) {
    const std::string& text = text_of(s, use);
    if (!has_name(use.name, strides) || !computes(text, use.name)) continue;
    suggest(s, use, why);
    // "row = is_first ? a : b"
    const std::string chooser = chosen_by(text);
    const int decided =
        chooser.empty() ? 0 : x_text.assigned_above(site(s).file, use.line, chooser);
    if (decided != 0)
      suggest(site(s).file, site(s).function, decided, 0, chooser, "decides which row that is");
  }
}

void NumberSuspects::suggest_moves_with_indices(std::uint32_t n, const std::string& why) {
  const std::uint32_t made = made_by(n);
  for (std::uint32_t at = n; at != made && node(at).site != 0; at = node(at).operand[0])
    if (op(at) == ValueOp::kStore) {
      suggest_index_of_store(node(at).site, false);
      suggest_node(at, why);
    }
  for (std::uint32_t at = n; at != made && node(at).site != 0; at = node(at).operand[0]) {
    suggest_node(at, why);
    suggest_uses(node(at).site, "makes the index of an operand");
  }
  suggest_node(made, why);
  // "lane = threadIdx.x % 32" is what it is.
  for (std::uint32_t at = n; at != made && node(at).site != 0; at = node(at).operand[0])
    if (op(at) == ValueOp::kStore) suggest_index_of_store(node(at).site, true);
}

void NumberSuspects::suggest_what_others_do(std::uint32_t n, std::uint32_t a, std::uint32_t b) {
  for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other) {
    if (other == n || node(other).site != node(n).site || op(n) == ValueOp::kProduct) continue;
    const TermKind kind = x_terms[other].kind;
    if (kind == TermKind::kIll || kind == TermKind::kNumber) continue;
    for (unsigned i = 0; i < 2; ++i) {
      const std::uint32_t mine = i == 0 ? a : b, theirs = node(other).operand[i];
      if (mine == 0 || theirs == 0 || x_terms[mine].kind == x_terms[theirs].kind ||
          x_terms[theirs].kind == TermKind::kNumber || x_terms[theirs].kind == TermKind::kIll)
        continue;
      // It has been here before: its own line did it twice.
      for (std::uint32_t at = mine; node(at).site != 0 && !node(at).is_input();
           at = node(at).operand[0]) {
        if (op(at) == ValueOp::kStore && is_same_line(node(at).site, node(n).site) &&
            !x_graph.whole_blocks) {
          suggest_conditions(node(n).site, "loop", "does it twice for some");
          return suggest_node(n, "does it twice for some");
        }
        if (at == made_by(at)) break;
      }
      for (std::uint32_t at = theirs; node(at).site != 0; at = node(at).operand[0]) {
        if (op(at) == ValueOp::kStore) {
          suggest_conditions(node(at).site, "loop", "is not done for all");
          suggest_node(at, "is not done for all");
          return;
        }
        if (at == made_by(at)) break;
      }
    }
    return;
  }
}

bool NumberSuspects::suspect_frame_of(std::uint32_t row, unsigned key) {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if ((op(n) != ValueOp::kExp && op(n) != ValueOp::kExp2) || node(n).value != 0) continue;
    const std::uint32_t of = node(n).operand[0];
    if (of == 0 || of >= n) continue;
    const Term& term = x_terms[of];
    if (term.kind != TermKind::kScore || term.row != row || x_attention.key_of(term.column) != key)
      continue;
    if (x_attention.score(row, term.column) < -kNoMaximum || !(node(of).value <= -kNoMaximum))
      continue;
    const std::size_t before = x_out.suspects.size();
    suggest_odd_maxima(node(n).site);
    if (x_out.suspects.size() == before) return false;
    x_out.what += "; its score was compared with a maximum that is none";
    suggest_node(n, "takes the exponential of it");
    suggest_uses(node(n).site, "is an operand");
    return true;
  }
  return false;
}

bool NumberSuspects::suspect_bare_score(const Cause& cause, std::uint32_t a, std::uint32_t b) {
  const auto is_bare = [&](std::uint32_t n) {
    if (n == 0 || n >= cause.node) return false;
    const Term& term = x_terms[n];
    return term.kind == TermKind::kScore && term.shifted && is_whole(term);
  };
  const std::uint32_t third =
      op(cause.node) == ValueOp::kFma ? node(cause.node).operand[2] : std::uint32_t{0};
  const std::uint32_t bare = is_bare(a) ? a : is_bare(b) ? b : is_bare(third) ? third : 0;
  if (bare == 0) return false;
  x_out.what =
      "uses a score less its maximum where the exponential of that belongs: " + term_text(bare);
  // 0 plus it is still it.
  std::uint32_t made = made_by(bare);
  for (int steps = 0; steps < 16 && (op(made) == ValueOp::kAdd || op(made) == ValueOp::kFma);
       ++steps) {
    std::uint32_t next = 0;
    for (const std::uint32_t operand : operands(made))
      if (is_bare(operand)) next = operand;
    if (next == 0) break;
    made = made_by(next);
  }
  suggest_node(made, "makes what should be an exponential");
  suggest_moves(bare, "hands it on");
  suggest_node(cause.node, "uses it");
  suggest_callers(cause.site, "uses it");
  suggest_uses(node(made).site, "is an operand");
  return true;
}

void NumberSuspects::suggest_stores_to(const std::string& variable) {
  if (variable.empty()) return;
  const std::vector<std::uint32_t> stores = stores_to({variable});
  if (!stores.empty())
    suggest_other_branch(site(stores.front()).file, site(stores.front()).function, variable);
  for (const std::uint32_t s : stores) suggest_late_loops(s);
  for (const std::uint32_t s : stores) suggest(s, "stores to it");
  if (stores.empty()) suggest_stores_of_elements();
  for (const std::uint32_t s : stores) {
    const std::vector<Condition> nearest = conditions_in(site(s).conditions);
    if (!nearest.empty())
      suggest_condition(s, nearest.front(), "decides what is stored to it", true);
    std::vector<NamedLine> of_thread = variables_in(site(s).uses, ',');
    std::erase_if(of_thread,
                  [](const NamedLine& use) { return use.sources.find('t') == std::string::npos; });
    suggest_computed(s, of_thread, "makes the index of a store to it");
    suggest_conditions(s, nullptr, "decides what is stored to it");
    suggest_indices(s, "makes the index of a store to it");
  }
}

void NumberSuspects::suggest_stores_of_elements() {
  std::set<std::uint32_t> stores;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (op(n) == ValueOp::kStore && x_terms[n].kind == TermKind::kElement)
      stores.insert(node(n).site);
  for (const std::uint32_t s : stores) suggest(s, "stores elements");
}

bool NumberSuspects::is_of_thread(const std::string& name, int line) const {
  for (const ValueSite& s : x_graph.sites)
    for (const NamedLine& use : variables_in(s.uses, ','))
      if (use.name == name && use.line == line) return comes_of(use, "t");
  return false;
}

NumberSuspects::SharedPart NumberSuspects::shared_part(const std::string& file, int line,
                                                       std::string name) {
  SharedPart out;
  for (int steps = 0; steps < 16; ++steps) {
    if (x_text.is_shared(file, name)) {
      out.array = name;
      return out;
    }
    line = x_text.assigned_above(file, line, name);
    if (line == 0) break;
    bool moves = false;
    const std::vector<std::string> names = made_of(x_text.line(file, line), name, moves);
    if (out.part.line == 0 && moves && x_text.statements_around(file, line).empty() &&
        !is_of_thread(name, line)) {
      out.part.name = name;
      out.part.line = line;
    }
    const auto next = std::find_if(names.begin(), names.end(), [&](const std::string& one) {
      return x_text.is_shared(file, one) || x_text.assigned_above(file, line, one) != 0;
    });
    if (next == names.end()) break;
    name = *next;
  }
  return {};
}

void NumberSuspects::suggest_overlap(const std::string& file, const SharedPart& a,
                                     const SharedPart& b) {
  if (a.array.empty() || a.array != b.array || a.part.line == b.part.line) return;
  const bool first = a.part.line > b.part.line;
  const NamedLine &late = first ? a.part : b.part, &early = first ? b.part : a.part;
  suggest(file, "", late.line, 0, late.name, "begins where another part of " + a.array + " lies");
  suggest(file, "", early.line, 0, early.name, "is the part that it lies in");
}

void NumberSuspects::suspect_replaced_part() {
  if (x_graph.whole_blocks) return;
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;  // sites
  for (const host::ReplacedValue& one : x_graph.replaced) {
    const std::uint32_t lost = node(one.node).site;
    if (op(one.node) != ValueOp::kStore || !known.emplace(lost, one.site).second) continue;
    const ValueSite &a = site(lost), &b = site(one.site);
    if (a.file == b.file && a.variable != b.variable)
      suggest_overlap(a.file, shared_part(a.file, a.line, a.variable),
                      shared_part(b.file, b.line, b.variable));
  }
}

}  // namespace attn_diag::lines
