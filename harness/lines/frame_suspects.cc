// Parts of a sum that are relative to different maxima: what should have rescaled them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

// On the way of a sum of v: where it was divided by the sum of other keys, "o = (o * l_before + pv) / l_of_tile".
void NumberSuspects::suggest_other_divisor(std::uint32_t sum) {
  constexpr int kFar = 32;
  for (int step = 0; step < kFar && sum != 0; ++step) {
    const std::uint32_t at = made_by(sum);
    const Term& term = x_terms[at];
    if (term.kind != TermKind::kWeight || term.column == kNone) return;
    if (op(at) == ValueOp::kDivide || op(at) == ValueOp::kMultiply) {
      const std::uint32_t by = first_operand(at, [&](std::uint32_t of) {
        const Term& t = x_terms[of];
        return t.kind == TermKind::kInverse ||
               (op(at) == ValueOp::kDivide && t.kind == TermKind::kWeight && t.column == kNone);
      });
      if (by != 0 && x_terms[by].set != term.set) {
        if (x_terms[by].row == term.row)
          suggest_node(at, "divides the sum over these keys by the sum over others");
        return;
      }
    }
    sum = first_operand(at, [&](std::uint32_t of) {
      return x_terms[of].kind == TermKind::kWeight && x_terms[of].column != kNone;
    });
  }
}

void NumberSuspects::suspect_rescaled_again(std::uint32_t n) {
  if (x_graph.whole_blocks || node(n).site == 0) return;
  const auto& [left, right, sum] = node(n).operand;
  for (const auto& [by, of] : {std::pair{left, right}, std::pair{right, left}}) {
    const std::uint32_t factor = by == 0 || by >= n ? 0 : made_by(by);
    if (factor == 0 || !is_exponential(factor) || of == 0 || of >= n ||
        x_terms[of].kind != TermKind::kWeight)
      continue;
    const auto [most, exponent] = subtracted(node(factor).operand[0]);
    if (most == 0 || op(exponent) != ValueOp::kSubtract) continue;
    // The exponent may be a multiple of the difference, by the scale or by log2(e). Of none so far nothing is left to say.
    const float difference = node(node(exponent).operand[0]).value - node(most).value;
    const float times = node(factor).value != 0        ? std::log(node(factor).value) / difference
                        : op(factor) == ValueOp::kExp2 ? std::numbers::ln2_v<float>
                                                       : 1.0F;
    Term frame = x_terms[of];
    frame.x = node(most).value * times;
    if (!std::isfinite(frame.x) || !same_frame(frame, x_terms[of])) continue;
    const std::string why = "rescales to a maximum what is relative to that one before";
    suggest_callers(node(n).site, why);
    suggest_node(n, why);
    suggest_node(exponential_in(of), "is relative to that maximum before");
  }
}

void NumberSuspects::suggest_fallen_maximum(std::uint32_t before, std::uint32_t part) {
  const Term &sum = x_terms[before], &weight = x_terms[part];
  if (x_graph.whole_blocks || weight.kind != TermKind::kWeight || sum.kind != TermKind::kWeight ||
      x_terms.keys().count(weight.set) != 1 || weight.x >= sum.x || same_frame(weight, sum))
    return;
  const std::uint32_t made = exponential_in(part);
  if (made == 0) return;
  // Who reads it from other threads.
  for (std::uint32_t n = subtracted(node(made).operand[0]).first;
       n != 0 && node(n).site != 0 && !node(n).is_input(); n = node(n).operand[0])
    if (is_load(n) && x_text.is_shared(site(node(n).site).file, site(node(n).site).variable))
      suggest_node(n, "reads a maximum that is smaller than what keys before were relative to");
}

void NumberSuspects::suggest_odd_scales(unsigned buffer) {
  struct Scaled {
    std::set<long> factors;  // of what the code means, in thousandths
    std::uint32_t node = 0, scale = 0;
  };
  std::map<std::uint32_t, Scaled> by_site;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (op(n) != ValueOp::kMultiply || term.kind != TermKind::kElement || term.buffer != buffer)
      continue;
    const std::uint32_t a = node(n).operand[0], b = node(n).operand[1];
    const std::uint32_t scale = a != 0 && x_terms[a].kind == TermKind::kElement ? b : a;
    if (scale == 0 || scale >= n || x_terms[scale].kind != TermKind::kNumber) continue;
    Scaled& here = by_site[node(n).site];
    here.factors.insert(std::lround(1000 * term.x));
    here.node = n;
    here.scale = scale;
  }
  // One factor for all is another matter.
  for (const auto& [s, scaled] : by_site)
    if (scaled.factors.size() > 1) {
      const std::string why =
          fmt::format("is not the scale of these codes of {}", buffer == 1 ? "k" : "v");
      suggest_node(scaled.scale, why);
      suggest_node(scaled.node, "multiplies a code with it");
      suggest_uses(s, "makes that scale, or its index");
    }
}

void NumberSuspects::suggest_scale_of_code(std::uint32_t part) {
  for (int steps = 0; steps < 16 && part != 0 && node(part).site != 0 && !is_exponential(part);
       ++steps) {
    const ValueOp is = op(part);
    if (is == ValueOp::kMultiply || is == ValueOp::kFma)
      for (const std::uint32_t factor : {node(part).operand[0], node(part).operand[1]})
        if (factor != 0 && factor < part && x_terms[factor].kind == TermKind::kNumber &&
            node(factor).value > 0 && node(factor).value != 1) {
          suggest_node(part, "multiplies with what is not the scale of this code of v");
          suggest_uses(node(part).site, "makes the index of that scale");
          return;
        }
    part = first_operand(part, TermKind::kWeight);
  }
}

void NumberSuspects::suspect_frames(std::uint32_t n, std::uint32_t a, std::uint32_t b,
                                    const std::string& why) {
  suggest_kept_too_early(n);
  if (op(n) == ValueOp::kFma) {
    suspect_rescaled_again(n);
    b = node(n).operand[2];
  }
  bool among_weights = false;  // of a product: its weights differ, not the sum so far
  if (op(n) == ValueOp::kProduct) std::tie(a, b, among_weights) = frames_of_product(n);
  // What was there before has more keys than what is added.
  const auto keys = [&](std::uint32_t of) {
    return x_terms[of].kind == TermKind::kWeight ? x_terms.keys().count(x_terms[of].set) : 0;
  };
  const std::uint32_t before = keys(a) >= keys(b) ? a : b;
  const std::uint32_t scaled = made_by(before);
  suggest_fallen_maximum(before, before == a ? b : a);
  if (x_attention.is_coded(2)) {
    suggest_odd_scales(2);
    suggest_scale_of_code(before == a ? b : a);
  }
  suggest_other_divisor(before);
  for (const std::uint32_t operand : {a, b})
    if (operand != 0 && operand < n && op(made_by(operand)) == ValueOp::kMultiply) {
      suggest_kept_too_early(made_by(operand));
      suspect_rescaled_again(made_by(operand));
    }
  if (x_graph.whole_blocks) {
    if (a != 0 && b != 0 && keys(a) == 1 && keys(b) == 1) {
      for (const std::uint32_t operand : {a, b}) suggest_shifts(operand);
      if (x_out.suspects.empty() && x_attention.has_bias()) suggest_unbiased(a);
    }
    suggest_beside_missing_rescale(n, before);
  }
  // Where were other sums at this line rescaled?
  if (const std::uint32_t others = rescaled_for_others(n, before); others != 0) {
    suggest_node(others, "rescales this of other sums, not of all");
    // Where other columns of the row are, a loop ends before these.
    const bool of_row = x_terms[others].kind == TermKind::kWeight &&
                        x_terms[others].row == x_terms[before].row &&
                        x_terms[others].column != x_terms[before].column;
    for (const char* const kind : {of_row ? "loop" : "if", of_row ? "if" : "loop"})
      suggest_conditions(node(others).site, kind, "decides what is rescaled");
  } else if (!x_graph.whole_blocks) {
    suggest_beside_missing_rescale(n, before);
  }
  // Threads that each rescale their own to the maximum of all, and hand on what is relative to different ones.
  const auto has_own_factor = [&](std::uint32_t part) {
    return part != 0 && part < n && is_scaled(part) && node(made_by(part)).site != 0 &&
           first_operand(made_by(part),
                         [&](std::uint32_t of) { return is_exponential(made_by(of)); }) != 0;
  };
  if (!x_graph.whole_blocks && op(n) != ValueOp::kProduct && has_own_factor(a) &&
      has_own_factor(b) && node(made_by(a)).where != node(made_by(b)).where)
    for (const std::uint32_t part : {a, b}) {
      suggest_helper_of_maximum(node(made_by(first_operand(made_by(part), [&](std::uint32_t of) {
                                  return is_exponential(made_by(of));
                                }))).site);
      suggest_maximum(part);
    }
  if (op(scaled) == ValueOp::kMultiply || op(scaled) == ValueOp::kDivide) {
    for (const std::uint32_t operand : operands(scaled)) {
      const std::uint32_t made = made_by(operand);
      const ValueOp is = op(made);
      const bool scaled_factor = x_graph.whole_blocks && is == ValueOp::kMultiply &&
                                 op(made_by(node(made).operand[0])) == ValueOp::kExp;
      if (is == ValueOp::kExp || is == ValueOp::kExp2 || scaled_factor ||
          x_terms[operand].kind == TermKind::kNumber) {
        if (const std::uint32_t part = before == a ? b : a;
            !x_graph.whole_blocks && is_of_own_maximum(made, part) && !rescaled_with(n, part))
          suggest_node(exponential_in(part),
                       "is relative to a maximum of its own, not to that of all so far");
        suggest_kept_maximum(
            made, first_operand(scaled, [&](std::uint32_t of) { return of != operand; }));
        suggest_node(made, "makes the factor of the sum so far");
        if (node(made).site != 0 && node(made).operand[0] != 0)
          suggest_node(made_by(node(made).operand[0]), "makes its exponent");
      }
    }
    // In a thread that made no exponential the factor is what its variable began with.
    for (const std::uint32_t operand : operands(scaled))
      if (!x_graph.whole_blocks && x_terms[operand].kind == TermKind::kNumber)
        for (const NamedLine& use : variables_in(site(node(scaled).site).uses, ','))
          if (use.constant && *use.constant == double{node(operand).value})
            suggest(node(scaled).site, use, "is the factor of the sum so far, and of no maximum");
    suggest_node(scaled, "rescales the sum so far");
  } else {
    // Nothing was rescaled. Of parts that other threads made it is the maximum that differs.
    const std::uint32_t thread = node(n).where;
    const std::array operands = {a, b};
    const bool of_others =
        (op(n) != ValueOp::kProduct || among_weights) &&
        std::any_of(operands.begin(), operands.end(), [&](std::uint32_t operand) {
          return operand != 0 && operand < n && node(made_by(operand)).site != 0 &&
                 node(made_by(operand)).where != thread;
        });
    // Unless what belongs to one of them was rescaled beside it. Lanes have one maximum.
    const ValueSite& sum = site(node(n).site);
    const bool of_lanes = x_text.line(sum.file, sum.line).find("shfl") != std::string::npos;
    if (of_others && op(n) != ValueOp::kProduct && !of_lanes)
      for (const std::uint32_t operand : {a, b})
        if (rescaled_with(n, operand)) suggest_node(n, why);
    // What the line added up before, and several keys that lanes made relative to one maximum: that they share.
    if (of_others && node(made_by(before)).site == node(n).site &&
        node(made_by(before)).where == thread && keys(before == a ? b : a) > 1)
      suggest_node(n, why);
    if (of_others)
      for (const std::uint32_t operand : {a, b}) suggest_maximum(operand);
  }
  suggest_idle_rescale(n);
  // "acc = o[d];", and then "acc += p * v".
  if (!x_graph.whole_blocks && !is_scaled(before) && is_load(before) &&
      !is_same_line(node(before).site, node(n).site))
    suggest_node(before, "takes up the sum so far as it is");
  suggest_node(n, why);
  suggest_callers(node(n).site, why);
  if (!is_scaled(before)) {
    const std::uint32_t other = rescaled_beside(n);
    suggest_node(other, "rescales another sum of the row");
    // Behind it the sum is rescaled as a rule, where that has a line of its own.
    const ValueSite& adds = site(node(n).site);
    if (!x_graph.whole_blocks && x_text.line(adds.file, adds.line).find('*') == std::string::npos)
      for (const std::uint32_t factor : operands(other))
        if (is_exponential(made_by(factor)))
          suggest_node(made_by(factor), "makes the factor; this sum is not rescaled by it");
  }
  for (const std::uint32_t operand : {a, b})
    if (operand != 0 && operand < n) {
      suggest_node(made_by(operand), "makes a part of the sum");
      suggest_maximum(operand);
    }
}

void NumberSuspects::suggest_idle_rescale(std::uint32_t n) {
  const ValueSite& at = site(node(n).site);
  if (x_graph.whole_blocks || at.line == 0 || is_cut()) return;
  for (const std::string& name : stored_arrays(x_text.line(at.file, at.line)))
    for (const int line : x_text.lines_that_store(at.file, name))
      if (x_text.line(at.file, line).find("*=") != std::string::npos &&
          std::none_of(x_graph.sites.begin() + 1, x_graph.sites.end(), [&](const ValueSite& one) {
            return one.line == line && one.file == at.file && (one.ran || one.stored);
          }))
        suggest(at.file, at.function, line, 0, name, "would rescale it, and never ran");
}

std::tuple<std::uint32_t, std::uint32_t, bool> NumberSuspects::frames_of_product(
    std::uint32_t n) const {
  std::uint32_t first = 0;
  for (const auto& [left, right] : x_graph.pairs_of(node(n)))
    for (const std::uint32_t weight : {left, right}) {
      if (x_terms[weight].kind != TermKind::kWeight) continue;
      if (first == 0) first = weight;
      if (!same_frame(x_terms[first], x_terms[weight])) return {first, weight, true};
    }
  return {node(n).operand[0], first, false};
}

bool NumberSuspects::is_scaled(std::uint32_t n) const {
  const ValueOp is = op(made_by(n));
  return is == ValueOp::kMultiply || is == ValueOp::kDivide;
}

std::uint32_t NumberSuspects::rescaled_beside(std::uint32_t n) const {
  // That of another row says most, if it is a sum of the same kind.
  const auto [a, b] = operands_of(n);
  const bool of_weights = (a != 0 && a < n && x_terms[a].column == kNone) ||
                          (b != 0 && b < n && x_terms[b].column == kNone);
  std::uint32_t any = 0;
  for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other) {
    const Term& term = x_terms[other];
    if (op(other) != ValueOp::kMultiply || term.kind != TermKind::kWeight ||
        node(other).site == node(n).site || x_terms.keys().count(term.set) < 2)
      continue;
    const std::uint32_t by = node(other).operand[1], sum = node(other).operand[0];
    const auto rescales = [&](std::uint32_t factor) {
      return factor != 0 && is_exponential(made_by(factor));
    };
    if (!rescales(by) && !rescales(sum)) continue;
    if ((term.column == kNone) == of_weights) return other;
    if (any == 0) any = other;
  }
  return any;
}

bool NumberSuspects::rescaled_with(std::uint32_t n, std::uint32_t part) const {
  if (part == 0 || part >= n || x_terms[part].kind != TermKind::kWeight) return false;
  for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other) {
    const Term& term = x_terms[other];
    if (op(other) != ValueOp::kMultiply || node(other).where != node(n).where ||
        term.kind != TermKind::kWeight || term.row != x_terms[part].row ||
        term.set != x_terms[part].set || term.column == x_terms[part].column ||
        site(node(other).site).function != site(node(n).site).function)
      continue;
    for (const bool left : {true, false}) {
      const std::uint32_t factor = node(other).operand[left ? 0 : 1];
      const std::uint32_t sum = node(other).operand[left ? 1 : 0];
      if (factor != 0 && factor < other && sum != 0 && sum < other &&
          is_exponential(made_by(factor)) && x_terms[sum].kind == TermKind::kWeight)
        return true;
    }
  }
  return false;
}

std::uint32_t NumberSuspects::rescaled_for_others(std::uint32_t n, std::uint32_t before) const {
  if (before == 0 || is_scaled(before)) return 0;
  std::uint32_t found = 0;
  for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other) {
    if (node(other).site != node(n).site || x_terms[other].kind != TermKind::kWeight) continue;
    for (const std::uint32_t operand : operands(other)) {
      if (node(operand).site == 0) continue;
      const Term& sum = x_terms[operand];
      if (sum.kind == TermKind::kWeight && x_terms.keys().count(sum.set) > 1 &&
          is_scaled(operand)) {
        // Of the same row, if there is one.
        if (sum.row == x_terms[before].row) return made_by(operand);
        if (found == 0) found = made_by(operand);
      }
      if (op(n) == ValueOp::kProduct) break;  // the others are no nodes
    }
  }
  return found;
}

}  // namespace attn_diag::lines
