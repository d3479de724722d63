// What should be kept from step to step of a loop, or comes from kernel to kernel.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "harness/lines/sum_suspects.h"

namespace attn_diag::lines {

bool NumberSuspects::divides_by_0(std::uint32_t n) const {
  if (x_graph.whole_blocks || op(n) != ValueOp::kDivide) return false;
  const std::uint32_t by = node(n).operand[1];
  return by == 0 ? std::isinf(node(n).value) : by < n && node(by).value == 0;
}

void NumberSuspects::suggest_unsummed(std::uint32_t row) {
  // What o is summed with, not what sums of several lanes or blocks are put together by.
  std::set<std::uint32_t> of_v;
  for (std::uint32_t n = 1; n < x_graph.nodes.size() && !x_graph.whole_blocks; ++n)
    for (const std::uint32_t of : operands(n))
      if (x_terms[of].kind == TermKind::kElement && x_terms[of].buffer == 2)
        if (const std::uint32_t weight = first_operand(n, TermKind::kWeight); weight != 0)
          of_v.insert(made_by(weight));
  std::uint32_t last = 0;
  unsigned most = 0;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind != TermKind::kWeight || term.row != row || term.column != kNone ||
        made_by(n) != n)
      continue;
    const unsigned keys = x_terms.keys().count(term.set);
    if (keys < most || (keys == 1 && !is_exponential(n))) continue;
    if (last != 0 && keys == most && of_v.contains(last) && !of_v.contains(n)) continue;
    most = keys;
    last = n;
  }
  if (most != 0 && most < num_seen(row))
    suggest_node(last, "makes weights, which nobody adds up to l");
}

void NumberSuspects::suggest_stored_divisor(std::uint32_t s) {
  const ValueSite at = site(s);
  const std::string why = "makes what divides weights";
  for (const std::string& array : divisor_arrays(x_text.line(at.file, at.line))) {
    std::vector<int> lines = x_text.lines_that_store(at.file, array);
    std::reverse(lines.begin(), lines.end());
    for (const int line : lines) {
      if (line >= at.line) continue;
      const std::string name = stored_name(x_text.line(at.file, line), array);
      const int made = name.empty() ? 0 : x_text.assigned_above(at.file, line, name);
      if (made != 0) suggest(at.file, at.function, made, 0, name, why);
      suggest(at.file, at.function, line, 0, array, "stores what divides weights");
    }
  }
}

void NumberSuspects::suggest_head_of_block(std::uint32_t n, std::uint32_t operand,
                                           std::uint32_t row, const std::string& why) {
  if (x_graph.whole_blocks) return;
  const std::uint32_t block = node(n).where >> 10;
  std::uint32_t load = 0;  // the block's own, of what another block stored
  for (std::uint32_t at = operand; node(at).where >> 10 == block && !node(at).is_input();) {
    if (is_load(at)) load = at;
    const std::uint32_t before = first_operand(at, TermKind::kElement);
    if (before == 0) return;
    if (node(before).where >> 10 != block && op(before) != ValueOp::kStore) return;
    at = before;
  }
  if (load == 0 || node(node(load).operand[0]).where >> 10 == block) return;
  for (std::uint32_t one = 1; one < x_graph.nodes.size(); ++one)
    if (const Term& term = x_terms[one];
        node(one).where >> 10 == block && term.kind == TermKind::kElement &&
        term.buffer == x_terms[operand].buffer && x_attention.same_head(row, term.row))
      return;
  std::vector<NamedLine> heads = variables_in(site(node(load).site).uses, ',');
  std::erase_if(heads, [&](const NamedLine& use) {
    return !is_of_block(use) || use.name == site(node(load).site).variable;
  });
  suggest_computed(node(load).site, heads, why);
}

void SumSuspects::suggest_end_of_use(const ValueSite& at, const Statement& step, int line,
                                     const std::string& name) {
  for (int use = line + 1; use < step.end; ++use)
    if (has_name(x_text.line(at.file, use), {name})) line = use;
  suggest(at.file, at.function, x_text.statements_around(at.file, line).back().end, 0, name,
          "ends a step, and no line of it keeps " + name + " for the next");
}

std::string SumSuspects::suggest_never_kept() {
  if (x_graph.whole_blocks) return {};
  // Of an exponential: how often threads came there, and whether what it subtracts from was none each time.
  struct Line {
    std::map<std::uint32_t, unsigned> steps;  // by thread
    bool always_none = true;
  };
  std::map<std::uint32_t, Line> lines;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (!is_exponential(n)) continue;
    const std::uint32_t exponent = made_by(node(n).operand[0]);
    if (exponent == 0 || op(exponent) != ValueOp::kSubtract) continue;
    const std::uint32_t kept = node(exponent).operand[0];  // 0: a number that the compiler knows
    const bool none = kept == 0 ? node(exponent).value <= -kNoMaximum
                                : kept < n && x_terms[kept].kind == TermKind::kNumber &&
                                      node(kept).value <= -kNoMaximum;
    Line& line = lines[node(n).site];
    ++line.steps[node(n).where];
    line.always_none = line.always_none && none;
  }
  for (const auto& [s, line] : lines) {
    const bool again = std::any_of(line.steps.begin(), line.steps.end(),
                                   [](const auto& one) { return one.second > 1; });
    if (!line.always_none || !again) continue;
    const ValueSite& at = site(s);
    for (const std::string& name : minuends(x_text.line(at.file, at.line)))
      for (const Statement& around : x_text.statements_around(at.file, at.line)) {
        if (!around.loop) continue;
        // Assigned before the loop, and never in it.
        const int first = x_text.assigned_above(at.file, around.begin, name);
        if (first == 0 || x_text.assigned_above(at.file, around.end + 1, name) != first) continue;
        suggest_end_of_use(at, around, at.line, name);
        suggest(s, "takes " + name + ", which is never anything else");
        return fmt::format("; {} is in every step what line {} gives it", name, first);
      }
  }
  return {};
}

void SumSuspects::suggest_never_updated() {
  if (x_graph.whole_blocks) return;
  std::set<std::pair<std::string, int>> seen;
  for (const ValueSite& store : x_graph.sites) {
    if (store.op != ValueOp::kStore || store.line == 0 ||
        !seen.emplace(store.file, store.line).second)
      continue;
    const std::string& text = x_text.line(store.file, store.line);
    const std::size_t equals = text.find("] = ");
    if (equals != text.npos)
      for (const std::string& name :
           variables_of(text.substr(equals + 4, text.find(';', equals) - equals - 4)))
        suggest_never_updated(store, name, 0);
  }
}

void SumSuspects::suggest_never_updated(const ValueSite& store, const std::string& name,
                                        int depth) {
  constexpr int kDeepest = 2;
  const int declared = x_text.declared_above(store.file, store.line, name);
  if (declared == 0 || declared >= store.line ||
      !declares_real(x_text.line(store.file, declared), name))
    return;
  // "inv = 1 / l;": not a sum itself.
  const int given = std::max(declared, x_text.assigned_above(store.file, store.line, name));
  bool moves = false;
  std::vector<std::string> of = made_of(x_text.line(store.file, given), name, moves);
  std::erase(of, name);
  if (depth < kDeepest)
    for (const std::string& one : of) suggest_never_updated(store, one, depth + 1);
  const std::vector<int> stores = x_text.lines_that_store(store.file, name);
  const bool is_updated = std::any_of(stores.begin(), stores.end(), [&](int line) {
    return declared < line && line <= store.line;
  });
  if (given != declared || !of.empty() || is_updated) return;
  // The loop over keys is that of the last exponential before the store, and behind the declaration.
  int taken = 0;
  const auto take = [&](int line) {
    if (declared < line && line < store.line) taken = std::max(taken, line);
  };
  for (std::uint32_t s = 1; s < x_graph.sites.size(); ++s) {
    const ValueSite& one = site(s);
    if ((one.op != ValueOp::kExp && one.op != ValueOp::kExp2) || one.file != store.file) continue;
    if (one.function == store.function) take(one.line);
    for (const NamedLine& call : lines_in(one.callers))
      if (file_of(s, call) == store.file) take(call.line);
  }
  const std::vector<Statement> around = x_text.statements_around(store.file, taken);
  const auto loop = std::find_if(around.begin(), around.end(), [&](const Statement& one) {
    return one.loop && declared < one.begin && one.end < store.line;
  });
  if (taken == 0 || loop == around.end()) return;
  // "sum_of(s, l);" may add to it.
  for (int line = declared + 1; line < loop->begin; ++line)
    if (has_name(x_text.line(store.file, line), {name})) return;
  std::vector<std::string> weights;
  int made = 0, used = 0;
  for (int line = loop->begin; line <= loop->end; ++line) {
    const std::string& text = x_text.line(store.file, line);
    if (has_name(text, {name})) return;
    if (text.find("exp") == text.npos && text.find("ex2") == text.npos) continue;
    for (std::string& one : assigned_names(text)) weights.push_back(std::move(one));
    made = line;
  }
  for (int line = made + 1; line < loop->end; ++line)
    if (has_name(x_text.line(store.file, line), weights)) used = line;
  if (weights.empty()) return;
  const std::string why = "has weights last, of which nothing is added to " + name;
  const bool is_array = !subscript_names(x_text.line(store.file, store.line), name).empty();
  for (const int line : is_array ? std::array{used, made} : std::array{made, used})
    suggest(store.file, store.function, line, 0, name, why);
}

void SumSuspects::suggest_unkept(std::uint32_t n) {
  const ValueSite& at = site(node(n).site);
  for (const Statement& around : x_text.statements_around(at.file, at.line)) {
    if (!around.loop) continue;
    for (int line = around.begin + 1; line < around.end; ++line)
      for (const std::string& name : minuends(x_text.line(at.file, line))) {
        const int declared = x_text.declared_above(at.file, around.begin, name);
        if (declared == 0 || !declares_real(x_text.line(at.file, declared), name)) continue;
        std::vector<int> stores = x_text.lines_that_store(at.file, name);
        stores.push_back(x_text.assigned_above(at.file, around.end + 1, name));
        if (std::any_of(stores.begin(), stores.end(), [&](int store) { return around.has(store); }))
          continue;
        suggest_end_of_use(at, around, line, name);
        suggest(at.file, at.function, line, 0, name,
                "takes " + name + ", which is never anything else");
      }
    return;
  }
}

}  // namespace attn_diag::lines
