#include "harness/lines/sum_suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

namespace attn_diag::lines {

void SumSuspects::suspect(const std::vector<Cause>& list) {
  for (const host::ValueRemark& remark : x_graph.remarks) suggest(remark.site, remark.text);
  suggest_minimum_of_scores();
  suggest_real_lanes();
  suggest_short_doubling(list.front());
  suggest_never_updated();
  const std::string never_kept = suggest_never_kept();
  suspect_cause(list);
  // Who looks at one line that is right wants to know where to look next.
  if (!sure() && !lost() && !x_out.suspects.empty()) suggest_way_to(list.front().node, 3);
  x_out.what += never_kept;
  if (!x_graph.remarks.empty()) x_out.what += "; " + x_graph.remarks.front().text;
}

void SumSuspects::suggest_real_lanes() {
  if (x_graph.whole_blocks) return;
  std::set<std::pair<std::string, int>> seen;
  for (const ValueSite& one : x_graph.sites) {
    if (one.line == 0 || !seen.insert({one.file, one.line}).second) continue;
    const std::string lane = shuffle_lane(x_text.line(one.file, one.line));
    const int declared = lane.empty() ? 0 : x_text.declared_above(one.file, one.line, lane);
    if (declared != 0 && declares_real(x_text.line(one.file, declared), lane))
      suggest(one.file, one.function, one.line, one.column, lane,
              "takes a real number for the lane to take from");
  }
}

void SumSuspects::suggest_short_doubling(const Cause& cause) {
  const bool of_lanes = cause.what == What::kMissing || cause.ill == Ill::kFrames ||
                        cause.ill == Ill::kPartial || cause.ill == Ill::kRows;
  if (x_graph.whole_blocks || !of_lanes) return;
  for (const ValueSite& one : x_graph.sites) {
    if (!one.ran || x_text.line(one.file, one.line).find("shfl") == std::string::npos) continue;
    for (const Statement& around : x_text.statements_around(one.file, one.line)) {
      const std::string& text = x_text.statement(one.file, around.begin);
      const bool doubles = text.find("<<=") != text.npos || text.find("*=") != text.npos;
      if (around.loop && doubles && halves_as_usual(text) == false)
        suggest(one.file, one.function, around.begin, 0, "",
                "ends before the lanes have all of each other's numbers");
    }
  }
}

void SumSuspects::suspect_cause(const std::vector<Cause>& list) {
  const Cause& cause = list.front();
  x_row = cause.row;
  x_out.where =
      cause.node == 0 ? query_text(cause.row) : place_of(cause.node) + ", " + query_text(cause.row);
  switch (cause.what) {
    case What::kIll:
      return suspect_ill(cause);
    case What::kUnstored:
      return suspect_store(list);
    case What::kNothing:
      if (const std::uint32_t last = last_followed(); last != 0) {
        x_out.what = fmt::format("{}, so nothing is known of {}", tell_lost(last),
                                 x_elements.front().of_lse ? "lse" : "o");
        return;
      }
      x_out.what = fmt::format("{} holds a number that comes of no input",
                               x_elements.front().of_lse ? "lse" : "o");
      if (sees_nothing(cause.row)) suggest(cause.site, "stores it where the row sees no key");
      if (!way_of_another(cause.row, {})) suspect_what_never_ran();
      if (cause.node != 0 && is_0_by_0(nan_of(cause.node))) {
        // Nothing came into either sum.
        x_out.what += ": 0 / 0";
        const std::string what = x_out.what;
        suspect_missing(cause);
        suggest_nan(cause.node);
        x_out.what = what;
        return;
      }
      if (cause.node != 0 && std::isnan(node(cause.node).value)) suggest_nan(cause.node);
      suspect_tested_sum(cause);
      if (cause.node != 0 && x_terms[cause.node].kind == TermKind::kWeight)
        return suspect_no_v(cause);
      return suspect_missing(cause);
    case What::kOtherRow:
      return suspect_place(cause, true);
    case What::kOtherColumn:
      return suspect_place(cause, false);
    case What::kMissing:
      x_out.what =
          fmt::format("a sum of {} lacks {}", query_text(cause.row), keys_text(cause.keys));
      return suspect_missing(cause);
    case What::kExtra:
      x_out.what = fmt::format("a sum of {} has {}, which it should not see", query_text(cause.row),
                               keys_text(cause.keys));
      return suspect_extra(cause);
    case What::kFrame:
      if (x_elements.front().of_lse) return suspect_lse(cause);
      if (cause.undivided) {
        x_out.what = "o is a sum over the right keys that was not divided by l";
        if (x_graph.whole_blocks) suggest_behind(made_by(cause.node), "here l is at hand");
        suggest_kept_weights(cause);
        suggest(cause.site, "stores it");
        suggest_moves(cause.node, "hands it on");
        return;
      }
      x_out.what = "o is the right sum times a wrong factor";
      if (const std::uint32_t v = factor_of_v(cause.node); v != 0 && explains_factor(v, cause)) {
        x_out.what += ", which v has where it is summed";
        suggest_moves_with_indices(v, "makes the numbers of v that are summed");
        suggest_callers(node(made_by(v)).site, "makes the numbers of v that are summed");
      }
      if (x_graph.whole_blocks) suggest_wrong_inverse(cause.node);
      suggest(cause.site, "gives o another factor than 1 / l");
      suggest_scale(cause.node);
      return;
    case What::kOther:
      return;
  }
}

bool SumSuspects::explains_factor(std::uint32_t v, const Cause& cause) {
  const double off = x_attention.lse(cause.row) - static_cast<double>(x_terms[cause.node].x);
  return x_terms[v].x > 0 && std::fabs(std::log(x_terms[v].x) - off) < 0.02;
}

// Weights that another kernel keeps, which has their sum: it should have divided them.
void SumSuspects::suggest_kept_weights(const Cause& cause) {
  if (x_graph.whole_blocks || cause.site == 0) return;
  const auto is_elsewhere = [&](std::uint32_t n) {
    return node(n).site != 0 && site(node(n).site).function != site(cause.site).function;
  };
  std::set<std::string> sums;  // functions that have l
  std::set<std::uint32_t> stores;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind != TermKind::kWeight || term.column != kNone || term.row != cause.row ||
        !is_elsewhere(n))
      continue;
    const ValueSite& at = site(node(n).site);
    if (x_terms.keys().count(term.set) > 1)
      sums.insert(at.function);
    else if (op(n) == ValueOp::kStore && !x_text.is_shared(at.file, at.variable))
      stores.insert(node(n).site);
  }
  for (const std::uint32_t s : stores)
    if (sums.contains(site(s).function))
      suggest(s, "keeps weights, and has the sum to divide them by");
}

std::uint32_t SumSuspects::last_followed() const {
  // Where nothing was made of them at all, o would be the same everywhere.
  constexpr std::size_t kSome = 8;
  std::set<double> values;
  for (const OutputElement& element : x_elements)
    if (std::isfinite(element.value)) values.insert(element.value);
  return values.size() < kSome ? 0 : last_of_q_and_k();
}

void SumSuspects::suspect_tested_sum(const Cause& cause) {
  if (x_graph.whole_blocks || cause.site == 0) return;
  // What the choice of the number, or the store of it, depends on.
  std::set<std::string> names;
  const int line = site(cause.site).line;
  for (const ValueSite& s : x_graph.sites) {
    if (s.line != line || s.file != site(cause.site).file) continue;
    const auto add_first = [&](const std::vector<NamedLine>& tests) {
      if (!tests.empty()) names.insert(tests.front().name);  // others are what that is made of
    };
    if (s.op == ValueOp::kPick) add_first(variables_in(s.uses, ','));
    for (const Condition& condition : conditions_in(s.conditions))
      if (!condition.loop && condition.at.line == line) add_first(condition.tests);
  }
  std::uint32_t of_row = 0;  // the last weight of the row: its thread stores o
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (x_terms[n].kind == TermKind::kWeight && x_terms[n].row == cause.row && node(n).site != 0)
      of_row = n;
  std::uint32_t tested = 0;
  for (std::uint32_t n = static_cast<std::uint32_t>(x_graph.nodes.size()) - 1;
       n > 0 && of_row != 0 && tested == 0; --n)
    if (node(n).site != 0 && node(n).where == node(of_row).where &&
        names.count(site(node(n).site).variable) != 0)
      tested = n;
  if (tested == 0) return;
  if (std::isnan(node(tested).value)) {
    x_out.what += fmt::format("; {} decides that, and is NaN", site(node(tested).site).variable);
    return suggest_nan(tested);
  }
  // A weight that no operation takes.
  std::vector<bool> taken(x_graph.nodes.size());
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    for (const std::uint32_t operand : operands(n)) taken[operand] = true;
  for (const auto& [left, right] : x_graph.products) taken[left] = taken[right] = true;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (!taken[n] && is_exponential(n) && node(n).value > 0 &&
        x_terms[n].kind == TermKind::kWeight && x_terms[n].row == cause.row) {
      x_out.what += fmt::format("; {} decides that", site(node(tested).site).variable);
      return suggest_node(n, "makes " + term_text(n) + ", which nobody takes");
    }
}

void SumSuspects::suspect_no_v(const Cause& cause) {
  x_out.what = "o holds a sum of weights without v";
  std::uint32_t at = made_by(cause.node);
  for (int steps = 0; steps < 64 && node(at).site != 0; ++steps) {
    const ValueOp is = op(at);
    if (is == ValueOp::kAtomicAdd || is == ValueOp::kProduct) break;
    const bool adds = is == ValueOp::kAdd || is == ValueOp::kFma;
    const std::uint32_t next = first_operand(at, [&](std::uint32_t operand) {
      // Of a sum a part that was summed elsewhere, which lacks v already.
      const std::uint32_t made = summed_part(operand);
      const bool sums = op(made) == ValueOp::kAdd || op(made) == ValueOp::kFma;
      const bool part = sums && site(node(made).site).line != site(node(at).site).line;
      return x_terms[operand].kind == TermKind::kWeight && (!adds || part);
    });
    if (next == 0) break;
    at = adds ? summed_part(next) : made_by(next);
  }
  suggest_node(at, "adds weights that were not multiplied with v");
  suggest_uses(node(at).site, "is an operand");
  suggest(cause.site, "stores it");
}

void SumSuspects::suspect_lse(const Cause& cause) {
  x_out.what = "lse is made of the right sum and the wrong number";
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s)
    if (site(s).op == ValueOp::kMaximum) suggest_late_loops(s);
  if (!x_graph.whole_blocks && !std::isfinite(node(cause.node).value))
    suggest_odd_maxima(cause.site);
  if (x_graph.whole_blocks) suggest_bare_exponentials(cause.row);
  if (!x_graph.whole_blocks) suggest_chosen_maximum(cause.row);
  suggest_maximum_of_lse(made_by(cause.node));
  std::uint32_t at = x_graph.whole_blocks ? made_by(cause.node) : cause.node;
  for (int steps = 0; steps < 64 && node(at).site != 0; ++steps) {
    suggest_node(at, "makes lse");
    suggest_uses(node(at).site, "is an operand of lse");
    const std::uint32_t next = first_operand(at, TermKind::kLog);
    if (next == 0) break;
    at = next;
  }
}

void SumSuspects::suggest_scale(std::uint32_t n) {
  for (const std::uint32_t operand : operands(n)) {
    const Term& term = x_terms[operand];
    if (term.kind == TermKind::kWeight && term.column != kNone) continue;
    suggest_node(made_by(operand), "makes that factor");
  }
}

void SumSuspects::suspect_sum_of_weights(const Cause& cause) {
  std::uint32_t at = made_by(cause.node);
  for (int steps = 0; steps < 8; ++steps) {
    const ValueOp is = op(at);
    if (is == ValueOp::kAdd || is == ValueOp::kFma || is == ValueOp::kAtomicAdd) break;
    if (node(at).site == 0 || is == ValueOp::kProduct) break;
    const std::uint32_t next = first_operand(at, TermKind::kWeight);
    if (next == 0) break;
    at = made_by(next);
  }
  // How far did the weight of a key come?
  std::uint32_t furthest = 0;
  unsigned most = 0;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind != TermKind::kWeight || term.column != kNone || term.row != cause.row ||
        !x_terms.keys().has(term.set, cause.keys.front()) || n >= made_by(cause.node))
      continue;
    if (x_terms.keys().count(term.set) < most) continue;
    if (x_terms.keys().count(term.set) == most && made_by(n) != n) continue;
    most = x_terms.keys().count(term.set);
    furthest = n;
  }
  // What another lane had should have come from there.
  const bool of_lanes =
      !x_graph.whole_blocks && std::any_of(cause.keys.begin(), cause.keys.end(), [&](unsigned key) {
        const std::uint32_t weight = way_of(cause.row, key).weight;
        return weight != 0 && node(weight).where != node(at).where &&
               node(weight).where >> 5 == node(at).where >> 5;
      });
  // Another lane read it, and nobody takes it from there.
  for (std::uint32_t n = 1; !x_graph.whole_blocks && n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (is_load(n) && term.kind == TermKind::kWeight && term.column == kNone &&
        term.row == cause.row && x_terms.keys().has(term.set, cause.keys.front()) &&
        node(n).where != node(at).where && node(n).where >> 5 == node(at).where >> 5 &&
        node(made_by(n)).where >> 5 != node(at).where >> 5 && user_of(n) == 0) {
      suggest_node(n, "is read by a lane, and added by none");
      break;
    }
  }
  const std::string takes = "takes the weights of other threads";
  if (of_lanes) suggest_shuffles(at, takes);
  // What is only moved from lane to lane has no number of its own there.
  std::uint32_t sum = of_lanes ? made_by(at) : 0;
  for (int steps = 0; steps < 64 && sum != 0 && node(sum).site != 0;
       ++steps, sum = first_operand(sum, TermKind::kWeight))
    for (const NamedLine& use : variables_in(site(node(sum).site).uses, ','))
      if (text_of(node(sum).site, use).find("shfl") != std::string::npos)
        suggest(node(sum).site, use, takes);
  // What was stored and nobody read is missed by the line that sums.
  if (suggest_left_store(furthest, cause.keys.front())) suggest_node(at, "sums l");
  suggest_overwritten(furthest);
  // Threads that add what others stored, in fewer and fewer of them.
  std::vector<NamedLine> trees;
  if (!x_graph.whole_blocks && furthest != 0 && node(furthest).site != 0)
    for (const Condition& condition : conditions_in(site(node(furthest).site).conditions))
      if (condition.loop && halves_as_usual(text_of(node(furthest).site, condition.at)))
        trees.push_back(condition.at);
  const auto suggest_trees = [&](bool as_usual) {
    for (const NamedLine& tree : trees)
      if (halves_as_usual(text_of(node(furthest).site, tree)) == as_usual)
        suggest(node(furthest).site, tree, "decides which threads are added");
  };
  suggest_trees(false);
  // The weight is used elsewhere, so that it is the sum that leaves it out.
  if (!x_graph.whole_blocks && furthest != 0 &&
      way_of(cause.row, cause.keys.front()).times_v != 0) {
    for (std::uint32_t n = furthest + 1; n < x_graph.nodes.size(); ++n)
      if (is_load(n) && made_by(n) == made_by(furthest) && user_of(n) == 0 &&
          !is_same_line(node(n).site, node(furthest).site)) {
        suggest_node(n, "reads it, and adds it to nothing");
        break;
      }
    const ValueOp sums = op(at);
    if ((sums == ValueOp::kAdd || sums == ValueOp::kFma || sums == ValueOp::kAtomicAdd) &&
        !is_same_line(node(at).site, node(furthest).site))
      suggest_node(at, "sums l");
  }
  suggest_node(furthest, "makes what l then lacks");
  suggest_trees(true);
  suggest_node(at, "sums l");
  suggest_callers(node(at).site, "sums l");
  suggest_moves(cause.node, "hands on l");
  if (node(at).site != 0) {
    suggest_conditions(node(at).site, nullptr, "decides which weights are summed");
    suggest_uses(node(at).site, "is an operand");
  }
  suggest(cause.site, "divides by l");
}

void SumSuspects::suggest_overwritten(std::uint32_t n) {
  if (x_graph.whole_blocks || n == 0 || node(n).site == 0 || user_of(n) != 0) return;
  const ValueSite& made = site(node(n).site);
  for (const Statement& around : x_text.statements_around(made.file, made.line)) {
    if (!around.loop) continue;
    for (int line = around.begin + 1; line <= around.end; ++line) {
      const std::string& text = x_text.line(made.file, line);
      bool moves = false;
      if (line != made.line && has_name(made.variable, assigned_names(text)) &&
          !has_name(made.variable, made_of(text, made.variable, moves)))
        suggest(made.file, made.function, line, 0, made.variable,
                "replaces what " + made.variable + " was: " + term_text(n));
    }
    return;
  }
}

bool SumSuspects::suspect_lost(const Cause& cause, unsigned key) {
  const std::uint32_t dim = cause.column;
  std::uint32_t last = 0;
  bool with_v = false;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind != TermKind::kWeight || term.row != cause.row ||
        !x_terms.keys().has(term.set, key))
      continue;
    if (term.column != kNone && term.column != dim) continue;
    if (with_v && term.column == kNone) continue;
    with_v = term.column != kNone;
    last = n;
  }
  if (last == 0 || !with_v) return false;
  // What takes it, and loses it?
  for (std::uint32_t n = last + 1; n < x_graph.nodes.size(); ++n) {
    if (node(n).is_input() || op(n) == ValueOp::kProduct) continue;
    const auto& operand = node(n).operand;
    if (std::find(operand.begin(), operand.end(), last) == operand.end()) continue;
    if (op(n) != ValueOp::kMultiply && op(n) != ValueOp::kFma && op(n) != ValueOp::kDivide)
      continue;
    x_out.what += "; their sum is multiplied by 0 or lost";
    const std::uint32_t by = operand[operand[0] == last ? 1 : 0];
    const std::uint32_t made = made_by(by);
    for (std::uint32_t at = by; at != made && node(at).site != 0; at = node(at).operand[0])
      if (op(at) == ValueOp::kPick && node(at).operand[1] != 0) {
        suggest_node(at, "chooses that factor");
        suggest_uses(node(at).site, "decides which factor is chosen");
      }
    if (!x_graph.whole_blocks && node(made).site != 0) suggest_odd_maxima(node(made).site);
    suspect_rescaled_again(n);
    if (!x_graph.whole_blocks) suggest_unkept(n);
    if (x_graph.whole_blocks) suggest_end_of_loop(made);
    if (x_graph.whole_blocks && node(made).site != 0) suggest_odd_maxima(node(made).site);
    if (node(made).site != 0) {
      suggest_node(made, "makes the factor that takes all away");
      suggest_uses(node(made).site, "is an operand of it");
      // The exponent: what was the maximum before?
      std::uint32_t exponent = node(made).operand[0] != 0 && node(made).operand[0] < made
                                   ? made_by(node(made).operand[0])
                                   : 0;
      if (exponent != 0 && node(exponent).site != 0) {
        suggest_node(exponent, "makes its exponent");
        suggest_uses(node(exponent).site, "is an operand of its exponent");
      }
    } else {
      suggest_node(n, "multiplies by 0");
      suggest_uses(node(n).site, "is an operand");
    }
    suggest_node(n, "multiplies by 0");
    return true;
  }
  x_out.what += "; their sum is not taken further";
  if (!x_graph.whole_blocks) suggest_factor_there(node(last).site);
  const std::size_t before = x_out.suspects.size();
  suggest_readers(last);
  // What is stored may be right, and nobody reads it.
  if (x_out.suspects.size() == before && op(made_by(last)) != ValueOp::kProduct &&
      op(last) != ValueOp::kStore && cause.what != What::kNothing)
    be_sure();
  suggest_moves(last, "holds them last");
  suggest_node(last, "holds them last");
  suggest_conditions(node(last).site, nullptr, "decides what is taken further");
  suggest_uses(node(last).site, "is an operand");
  return true;
}

void SumSuspects::suggest_factor_there(std::uint32_t s) {
  const ValueSite& at = site(s);
  for (const std::string& name : variables_of(x_text.statement(at.file, at.line)))
    if (const int made = x_text.assigned_above(at.file, at.line, name);
        made != 0 && made != at.line && x_text.line(at.file, made).find("exp") != std::string::npos)
      suggest(at.file, at.function, made, 0, name, "makes a factor of what is lost");
}

void SumSuspects::suggest_readers(std::uint32_t stored) {
  if (op(stored) != ValueOp::kStore) return;
  std::set<std::uint32_t> readers;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const std::uint32_t from = node(n).operand[0];
    if (from != 0 && from < n && is_load(n) && op(from) == ValueOp::kStore &&
        node(from).site == node(stored).site)
      readers.insert(node(n).site);
  }
  for (const std::uint32_t s : readers) suggest_late_loops(s);
  for (const std::uint32_t s : readers)
    suggest_conditions(s, "loop", "decides which of what was stored is read");
  for (const std::uint32_t s : readers) {
    suggest_indices(s, "makes the index of what is read");
    suggest(s, "reads others of what was stored");
  }
}

SumSuspects::Way SumSuspects::way_of(std::uint32_t row, unsigned key) {
  auto& known = x_ways[row];
  if (known.empty()) {
    known.resize(x_terms.keys().size());
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
      const Term& term = x_terms[n];
      if (term.row != row || node(n).site == 0) continue;
      const ValueOp is = op(n);
      // A product of matrices takes many keys at once.
      if (is == ValueOp::kProduct && term.kind == TermKind::kWeight && term.column != kNone)
        for (const auto& [left, right] : x_graph.pairs_of(node(n)))
          if (const std::optional<unsigned> taken = x_terms[left].kind == TermKind::kWeight
                                                        ? only_key_of(x_terms[left])
                                                        : std::nullopt)
            known[*taken].times_v = n;
      if (term.kind == TermKind::kScore) {
        Way& way = known[x_attention.key_of(term.column)];
        // A maximum is a score, too; what is made of it behind the weight is not on the way there.
        if (!x_attention.same_head(row, term.column) || way.weight != 0) continue;
        if (is != ValueOp::kAdd && is != ValueOp::kFma && is != ValueOp::kProduct &&
            is != ValueOp::kMultiply)
          continue;
        const bool whole = is_whole(term);
        if (way.begun == 0) way.begun = n;
        (whole ? way.score : way.part) = n;
        if (whole && way.whole == 0) way.whole = n;
      } else if (term.kind == TermKind::kWeight && x_terms.keys().count(term.set) == 1) {
        for (unsigned j = 0; j < known.size(); ++j)
          if (x_terms.keys().has(term.set, j)) {
            // The first: later exponentials of the row's largest score rescale.
            if ((is == ValueOp::kExp || is == ValueOp::kExp2) && known[j].weight == 0)
              known[j].weight = n;
            if (term.column != kNone && is == ValueOp::kMultiply) known[j].times_v = n;
          }
      }
    }
  }
  return known[key];
}

std::optional<SumSuspects::Way> SumSuspects::way_of_another(
    std::uint32_t row, const std::vector<unsigned>& not_these) {
  const std::unordered_set<unsigned> missing(not_these.begin(), not_these.end());
  for (unsigned j = 0; j < x_terms.keys().size(); ++j) {
    if (missing.count(j) != 0) continue;
    const Way way = way_of(row, j);
    if (way.score != 0 || way.weight != 0) return way;
  }
  for (const OutputElement& element : x_elements) {
    std::uint32_t other = 0, column = 0;
    x_attention.locate_output(element.index, other, column);
    if (column != 0 || other == row) continue;
    if (x_ways.size() > 8) break;
    for (unsigned j = 0; j < x_terms.keys().size(); ++j) {
      const Way way = way_of(other, j);
      if (way.score != 0 || way.weight != 0) return way;
    }
  }
  return std::nullopt;
}

bool SumSuspects::is_passed_without(std::uint32_t s, const Condition& condition) {
  if (x_graph.whole_blocks) return false;
  std::vector<bool> behind(x_graph.sites.size());
  for (std::uint32_t other = 1; other < x_graph.sites.size(); ++other)
    behind[other] = other != s && is_among(condition, conditions_in(site(other).conditions));
  std::unordered_set<std::uint32_t> came;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (node(n).site == s) came.insert(node(n).where);
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (behind[node(n).site] && came.count(node(n).where) == 0) return true;
  return false;
}

void SumSuspects::suggest_loops(std::uint32_t s, const std::vector<unsigned>& keys,
                                bool skip_columns, bool lacks, const std::string& why) {
  std::vector<Condition> loops;
  for (const Condition& condition : conditions_in(site(s).conditions))
    if (condition.loop) loops.push_back(condition);
  if (skip_columns && loops.size() > 1) loops.erase(loops.begin());
  // The last of the keys that the row sees, and not all of them.
  std::vector<unsigned> seen;
  for (unsigned j = 0; j < x_terms.keys().size(); ++j)
    if (x_row == kNone || x_attention.visible(x_row, j)) seen.push_back(j);
  const bool tail = !keys.empty() && keys.size() < seen.size() &&
                    std::equal(keys.rbegin(), keys.rend(), seen.rbegin());
  if (tail) std::reverse(loops.begin(), loops.end());
  // What a block takes next, and not which keys it has.
  std::stable_partition(loops.begin(), loops.end(), [&](const Condition& loop) {
    return text_of(s, loop.at).find("gridDim") == std::string::npos;
  });
  if (lacks)
    std::stable_partition(loops.begin(), loops.end(),
                          [&](const Condition& loop) { return !is_passed_without(s, loop); });
  for (const Condition& loop : loops) suggest_condition(s, loop, why, lacks);
}

bool SumSuspects::sums_columns(std::uint32_t n) const {
  const Term& term = x_terms[n];
  for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other)
    if (other != n && node(other).site == node(n).site && node(other).where == node(n).where &&
        x_terms[other].kind == term.kind && x_terms[other].row == term.row &&
        x_terms[other].column == term.column &&
        (term.kind != TermKind::kWeight || x_terms[other].set == term.set))
      return true;
  return false;
}

}  // namespace attn_diag::lines
