#include "harness/lines/sum_suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

namespace attn_diag::lines {

void SumSuspects::suspect(const std::vector<Cause>& list) {
  for (const host::ValueRemark& remark : x_graph.remarks) suggest(remark.site, remark.text);
  suggest_minimum_of_scores();
  suggest_real_lanes();
  suggest_short_doubling(list.front());
  suggest_never_updated(list.front().site);
  const std::string never_kept = suggest_never_kept();
  suspect_cause(list);
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
        suggest(cause.site, "stores it");
        suggest_moves(cause.node, "hands it on");
        return;
      }
      x_out.what = "o is the right sum times a wrong factor";
      if (x_graph.whole_blocks) suggest_wrong_inverse(cause.node);
      suggest(cause.site, "gives o another factor than 1 / l");
      suggest_scale(cause.node);
      return;
    case What::kOther:
      return;
  }
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
    if (!node(n).is_input())
      for (const std::uint32_t operand : node(n).operand)
        if (operand < n) taken[operand] = true;
  for (const std::uint32_t one : x_graph.products)
    if (one < taken.size()) taken[one] = true;
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
  for (const std::uint32_t operand : node(n).operand) {
    if (operand == 0 || operand >= n) continue;
    const Term& term = x_terms[operand];
    if (term.kind == TermKind::kWeight && term.column != kNone) continue;
    suggest_node(made_by(operand), "makes that factor");
  }
}

void SumSuspects::suspect_store(const std::vector<Cause>& list) {
  std::set<std::uint32_t> rows;
  for (const Cause& cause : list) rows.insert(cause.row);
  const auto dim =
      static_cast<std::size_t>(x_elements.front().of_lse ? 1 : x_attention.problem().head_dim_v);
  const bool whole_rows = list.size() >= rows.size() * dim;
  const auto& outputs = x_graph.outputs[x_elements.front().of_lse ? 1 : 0];
  const auto nobody = [](const host::ValueOutput& output) { return output.block == ~0u; };
  const auto judged =
      std::count_if(x_elements.begin(), x_elements.end(),
                    [&](const OutputElement& element) { return nobody(outputs[element.index]); });
  x_out.what = fmt::format(
      "{}{} of {} are stored by nobody",
      std::count_if(outputs.begin(), outputs.end(), nobody) > judged ? "at least " : "",
      whole_rows ? fmt::format("{} rows", rows.size()) : fmt::format("{} elements", list.size()),
      x_elements.front().of_lse ? "lse" : "o");
  std::set<std::uint32_t> sites;
  for (const host::ValueOutput& output : outputs)
    if (const std::uint32_t s = store_of(output); s != 0) sites.insert(s);
  if (sites.empty()) suggest_store_of_other();
  for (std::uint32_t s = 1; sites.empty() && s < x_graph.sites.size(); ++s)
    if (!site(s).ran && site(s).op == ValueOp::kStore) suggest_late_loops(s);
  for (std::uint32_t s = 1; sites.empty() && s < x_graph.sites.size(); ++s) {
    if (site(s).ran || site(s).op != ValueOp::kStore) continue;
    const std::string why = "decides whether anything is stored";
    std::vector<Condition> conditions = conditions_in(site(s).conditions);
    // Where no number was made at all it is the outermost that lets nothing through.
    if (x_graph.nodes.size() <= 1) {
      std::reverse(conditions.begin(), conditions.end());
      for (const Condition& condition : conditions)
        if (!condition.loop) suggest(s, condition.at, why);
    }
    for (const Condition& condition : conditions) suggest_condition(s, condition, why, true);
  }
  // Nothing was stored at all.
  for (std::uint32_t s = 1; x_graph.whole_blocks && sites.empty() && s < x_graph.sites.size(); ++s)
    if (site(s).op == ValueOp::kStore && site(s).ran)
      suggest_masks({s}, "decides which elements are stored");
  // Where others are stored twice, or hold what belongs elsewhere, it is the index.
  const bool by_index = x_misplaced || x_graph.stored_twice > 0;
  // A condition that is too strict cuts the rows at the end of a head off; others lack where their index is wrong.
  const bool cut_off = whole_rows && lacks_tails(rows);
  for (const std::uint32_t s : sites) suggest_late_loops(s);
  // A limit that nothing rounds up: what a loop tests, by its own name.
  for (const std::uint32_t s : sites)
    for (const Condition& condition : conditions_in(site(s).conditions))
      for (const NamedLine& test : condition.tests)
        if (cut_off && !x_graph.whole_blocks && condition.loop && !comes_of(test, "t") &&
            has_name(text_of(s, condition.at), {test.name}) && !is_loop(text_of(s, test)) &&
            rounds_down(text_of(s, test), test.name))
          suggest(s, test, "rounds down, and the last rows are those that lack");
  for (const std::uint32_t s : sites) {
    if (x_graph.whole_blocks && !whole_rows && by_index &&
        is_plain_subscript(x_text.line(site(s).file, site(s).line), site(s).variable))
      suggest_pointer(s, "makes the index of the store");
    if (!whole_rows && by_index) suggest(s, "stores o");
    if (by_index || (whole_rows && !cut_off)) {
      if (!by_index) suggest_shared_with_loads(s);
      suggest_indices_of_place(s, list, whole_rows);
      if (whole_rows) suggest_rows_of_place(s);
      suggest(s, "stores o");
      suggest_indices(s, "makes the index of the store");
    }
    suggest_conditions(s, whole_rows ? "if" : "loop", "decides which elements are stored");
    suggest(s, "stores o");
    suggest_indices(s, "makes the index of the store");
    suggest_conditions(s, nullptr, "decides which elements are stored");
    suggest_callers(s, "stores o");
  }
}

void SumSuspects::suggest_store_of_other() {
  if (x_graph.whole_blocks) return;
  const bool of_lse = x_elements.front().of_lse;
  const auto& others = x_graph.outputs[of_lse ? 0 : 1];
  std::set<std::uint32_t> stores;
  for (const host::ValueOutput& output : others) {
    if (output.block == ~0u) return;
    if (const std::uint32_t s = store_of(output); s != 0) stores.insert(s);
  }
  // A store there that never ran, to what nothing else uses and the kernel does not declare, may be the one.
  const auto may_be_it = [&](const ValueSite& one) {
    return one.op == ValueOp::kStore && !one.ran && !one.stored &&
           std::any_of(stores.begin(), stores.end(),
                       [&](std::uint32_t s) { return site(s).function == one.function; }) &&
           std::none_of(stores.begin(), stores.end(),
                        [&](std::uint32_t s) { return site(s).line == one.line; }) &&
           x_text.declared_above(one.file, one.line, one.variable) == 0 &&
           std::none_of(x_graph.sites.begin(), x_graph.sites.end(), [&](const ValueSite& other) {
             return other.variable == one.variable && other.op != ValueOp::kStore;
           });
  };
  if (std::any_of(x_graph.sites.begin(), x_graph.sites.end(), may_be_it)) return;
  for (const std::uint32_t s : stores)
    suggest(s, of_lse ? "stores o; a line that stores lse is missing beside it"
                      : "stores lse; a line that stores o is missing beside it");
}

void SumSuspects::suggest_shared_with_loads(std::uint32_t s) {
  if (x_graph.whole_blocks) return;
  note_loaders();
  if (x_loaders[0].empty()) return;
  std::vector<NamedLine> shared = variables_in(site(s).uses, ',');
  std::erase_if(shared, [&](const NamedLine& use) {
    const auto has_it = [&](std::uint32_t loader) {
      const std::vector<NamedLine> uses = variables_in(site(loader).uses, ',');
      return std::any_of(uses.begin(), uses.end(), [&](const NamedLine& one) {
        return key_of(loader, one) == key_of(s, use);
      });
    };
    return !come_of({use}, "tx") || is_loop(text_of(s, use)) ||
           !computes(text_of(s, use), use.name) ||
           !std::all_of(x_loaders[0].begin(), x_loaders[0].end(), has_it);
  });
  // A row is one of a block's; what a thread is within it ("threadIdx.x / 32") is seldom at fault.
  if (std::any_of(shared.begin(), shared.end(),
                  [](const NamedLine& use) { return comes_of(use, "x"); }))
    std::erase_if(shared, [](const NamedLine& use) { return !comes_of(use, "x"); });
  const std::string why = "makes the index of the store, and which row of q is loaded";
  for (const NamedLine& use : shared) {
    for (const NamedLine& other : shared)
      if (other.name != use.name && has_name(text_of(s, use), {other.name})) suggest(s, other, why);
    suggest(s, use, why);
  }
}

bool SumSuspects::lacks_tails(const std::set<std::uint32_t>& rows) const {
  const auto queries = static_cast<std::uint32_t>(x_attention.problem().seqlen_q);
  for (const std::uint32_t row : rows) {
    const std::uint32_t next = row + 1;
    if (next % queries != 0 && rows.count(next) == 0) return false;
    if (row % queries == 0) return false;  // the whole head
  }
  return true;
}

void SumSuspects::suggest_rows_of_place(std::uint32_t s) {
  std::vector<NamedLine> rows = variables_in(site(s).uses, ',');
  std::erase_if(rows, [](const NamedLine& use) { return use.sources.empty(); });
  put_blocks_first(rows);
  suggest_computed(s, rows, "makes the index of the store");
}

void SumSuspects::suggest_indices_of_place(std::uint32_t s, const std::vector<Cause>& list,
                                           bool whole_rows) {
  const auto queries = static_cast<std::size_t>(x_attention.problem().seqlen_q);
  std::map<std::uint32_t, std::set<std::uint32_t>> by_head;
  for (const Cause& cause : list)
    by_head[cause.row / static_cast<std::uint32_t>(queries)].insert(cause.row);
  // The first head is as it should be, whatever a head is multiplied by.
  const bool heads = by_head.count(0) == 0;
  const bool whole = std::all_of(by_head.begin(), by_head.end(),
                                 [&](const auto& one) { return one.second.size() == queries; });
  if (x_graph.whole_blocks && whole)
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (use.sources.find('t') == std::string::npos && !use.constant)
        suggest(s, use, "makes the index of the store, by head");
  std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
  std::erase_if(
      uses, [&](const NamedLine& use) { return is_of_block(use) != heads || use.sources.empty(); });
  if (whole_rows) put_blocks_first(uses);
  for (const NamedLine& use : uses) suggest(s, use, "makes the index of the store");
}

void SumSuspects::put_blocks_first(std::vector<NamedLine>& uses) {
  std::stable_partition(uses.begin(), uses.end(),
                        [](const NamedLine& use) { return comes_of(use, "xyz"); });
}

void SumSuspects::suspect_place(const Cause& cause, bool rows) {
  const Term& term = x_terms[cause.node];
  if (rows)
    x_out.what = fmt::format("what is stored as o of {} was made of q of {}", query_text(cause.row),
                             query_text(term.row));
  else
    x_out.what =
        fmt::format("what is stored in column {} of o is column {}", cause.column, term.column);
  const unsigned buffer = rows ? 0 : 2;
  const std::string why = rows ? "loads the row of q" : "loads the column of v";
  const auto& outputs = x_graph.outputs[x_elements.front().of_lse ? 1 : 0];
  const bool by_store = x_graph.stored_twice > 0 ||
                        std::any_of(outputs.begin(), outputs.end(),
                                    [](const auto& output) { return output.block == ~0u; });
  if (by_store) {
    const ValueSite& store = site(cause.site);
    if (!rows && !is_plain_subscript(x_text.line(store.file, store.line), store.variable))
      suggest(cause.site, "stores it");
    suggest_indices_of_place(cause.site, {cause}, false);
    suggest_indices(cause.site, "makes the index of the store");
  }
  if (!loads_all(buffer, cause.row)) suggest_loaders(buffer, why);
  // Where each element is stored to once, the column was taken for another one before.
  if (!rows && !by_store) suggest_handovers(cause.node);
  if (!rows && !by_store) suggest_shared_operand(cause.node);
  if (rows && !by_store) suspect_taken_for(cause);
  suggest(cause.site, "stores it");
  if (!rows) suggest_factor_of_v(cause.node, why);
  if (rows && !by_store && !x_graph.whole_blocks) suggest_rows_of_place(cause.site);
  if (rows) suggest_loaders(buffer, why);
  suggest_moves_with_indices(cause.node, "hands on the column");
  suggest_indices(cause.site, "makes the index of the store");
  suggest_loaders(buffer, why);
}

void SumSuspects::suspect_taken_for(const Cause& cause) {
  if (x_graph.whole_blocks) return;
  const std::uint32_t weight = exponential_in(cause.node, 1 << 14);
  if (weight == 0) return;
  const std::vector<bool>& alive = reaches_output(false);
  // A score of the row itself, made where this one was, at the same time, that nobody uses.
  constexpr std::uint32_t kNear = 4096;
  const auto has_unused = [&](std::uint32_t n) {
    const Term& taken = x_terms[n];
    const std::uint32_t end =
        std::min<std::uint32_t>(n + kNear, static_cast<std::uint32_t>(x_graph.nodes.size()));
    for (std::uint32_t other = n > kNear ? n - kNear : 1; other < end; ++other) {
      const Term& term = x_terms[other];
      if (!alive[other] && term.kind == TermKind::kScore && term.row == cause.row &&
          term.column == taken.column && term.set == taken.set &&
          node(other).where == node(n).where && is_same_line(node(other).site, node(n).site))
        return true;
    }
    return false;
  };
  std::uint32_t user = weight;
  for (std::uint32_t n = node(weight).operand[0]; n != 0 && node(n).site != 0;
       n = first_operand(n, TermKind::kScore)) {
    if (node(n).is_input() || x_terms[n].kind != TermKind::kScore) return;
    if (op(n) == ValueOp::kStore || is_same_line(node(n).site, node(user).site)) continue;
    if (!is_load(n) && has_unused(n))
      return suggest_node(
          user, "takes the score of another row, while that of this one is used by nobody");
    user = n;
  }
}

void SumSuspects::suggest_factor_of_v(std::uint32_t n, const std::string& why) {
  if (x_graph.whole_blocks) return;
  const std::uint32_t column = x_terms[n].column;
  for (int steps = 0; steps < 1024 && n != 0 && node(n).site != 0 && !node(n).is_input(); ++steps) {
    n = made_by(n);
    const std::uint32_t v =
        op(n) == ValueOp::kProduct ? operands_of(n).second : first_operand(n, TermKind::kElement);
    if (v != 0 && v < n && x_terms[v].kind == TermKind::kElement) return suggest_node(v, why);
    n = first_operand(n, [&](std::uint32_t of) {
      return x_terms[of].kind == TermKind::kWeight && x_terms[of].column == column;
    });
  }
}

void SumSuspects::suggest_shared_operand(std::uint32_t n) {
  if (x_graph.whole_blocks) return;
  const std::uint32_t column = x_terms[n].column;
  for (int steps = 0; steps < 1024 && n != 0 && node(n).site != 0 && !node(n).is_input(); ++steps) {
    n = made_by(n);
    if (op(n) == ValueOp::kProduct || node(n).site == 0) return;
    for (const std::uint32_t operand : node(n).operand) {
      if (operand == 0 || operand >= n || node(operand).site == 0) continue;
      const Term& term = x_terms[operand];
      if (term.column != column ||
          (term.kind != TermKind::kWeight && term.kind != TermKind::kElement))
        continue;
      for (std::uint32_t other = operand + 1; other < x_graph.nodes.size(); ++other) {
        const auto& of = node(other).operand;
        if (op(other) == op(n) && !node(other).is_input() && node(other).where == node(n).where &&
            node(other).site != 0 && !is_same_line(node(other).site, node(n).site) &&
            std::any_of(of.begin(), of.end(), [&](std::uint32_t one) {
              return one != 0 && one < other && made_by(one) == made_by(operand);
            }))
          return suggest_node(n, "takes what another line makes another sum of");
      }
    }
    n = first_operand(n, [&](std::uint32_t of) {
      return x_terms[of].kind == TermKind::kWeight && x_terms[of].column == column;
    });
  }
}

void SumSuspects::suggest_handovers(std::uint32_t n) {
  if (x_graph.whole_blocks) return;
  const std::uint32_t column = x_terms[n].column;
  for (int steps = 0; steps < 1024 && n != 0 && node(n).site != 0 && !node(n).is_input(); ++steps) {
    const std::uint32_t from = node(n).operand[0];
    const bool hands_over =
        is_load(n) && from != 0 && op(from) == ValueOp::kStore && node(from).where != node(n).where;
    if (hands_over) {
      suggest_node(n, "takes the column from another thread");
      suggest_node(from, "hands the column to another thread");
    }
    n = op(n) == ValueOp::kProduct ? 0 : first_operand(n, [&](std::uint32_t of) {
      return x_terms[of].kind == TermKind::kWeight && x_terms[of].column == column;
    });
  }
}

bool SumSuspects::suggest_left_store(std::uint32_t sum, unsigned key) {
  if (x_graph.whole_blocks || sum == 0) return false;
  std::vector<bool> read(x_graph.nodes.size());
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (is_load(n) && node(n).operand[0] < n) read[node(n).operand[0]] = true;
  std::map<std::uint32_t, std::uint32_t>
      left;  // by site: what has the key; 0 where somebody reads such
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (op(n) != ValueOp::kStore || term.kind != TermKind::kWeight || term.column != kNone ||
        term.row != x_terms[sum].row || !x_terms.keys().has(term.set, key))
      continue;
    std::uint32_t& one = left.try_emplace(node(n).site, n).first->second;
    if (read[n]) one = 0;
  }
  bool any = false;
  for (const auto& [s, n] : left) {
    any = any || n != 0;
    if (n != 0) suggest_readers_beside(n, "takes the sums of other threads, not this one");
  }
  return any;
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
      if (term.kind == TermKind::kScore) {
        Way& way = known[x_attention.key_of(term.column)];
        // A maximum is a score, too; what is made of it behind the weight is not on the way there.
        if (!x_attention.same_head(row, term.column) || way.weight != 0) continue;
        if (is != ValueOp::kAdd && is != ValueOp::kFma && is != ValueOp::kProduct &&
            is != ValueOp::kMultiply)
          continue;
        const bool whole = is_whole(term);
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
