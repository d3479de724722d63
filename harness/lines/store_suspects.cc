// What is stored as an output: by nobody, in another place, of another row or column.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/lines/sum_suspects.h"

namespace attn_diag::lines {

void SumSuspects::suspect_store(const std::vector<Cause>& list) {
  std::set<std::uint32_t> rows;
  for (const Cause& cause : list) rows.insert(cause.row);
  const auto dim =
      static_cast<std::size_t>(x_elements.front().of_lse ? 1 : x_attention.problem().head_dim_v);
  const auto& outputs = x_graph.outputs[x_elements.front().of_lse ? 1 : 0];
  const auto nobody = [](const host::ValueOutput& output) { return output.block == ~0u; };
  const auto judged =
      std::count_if(x_elements.begin(), x_elements.end(),
                    [&](const OutputElement& element) { return nobody(outputs[element.index]); });
  const bool is_cut = std::count_if(outputs.begin(), outputs.end(), nobody) > judged;
  const bool whole_rows = list.size() >= (rows.size() - is_cut) * dim;
  x_out.what = fmt::format(
      "{}{} of {} are stored by nobody", is_cut ? "at least " : "",
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
  // Of loops in loops around the store the outermost takes rows, and others take what a row has.
  for (const std::uint32_t s : sites) {
    if (!whole_rows || by_index || x_graph.whole_blocks) break;
    std::vector<Condition> loops = conditions_in(site(s).conditions);
    // A loop that may leave the kernel is a condition of what stands behind it.
    const std::vector<Statement> around = x_text.statements_around(site(s).file, site(s).line);
    std::erase_if(loops, [&](const Condition& condition) {
      return !condition.loop ||
             (file_of(s, condition.at) == site(s).file &&
              std::none_of(around.begin(), around.end(),
                           [&](const Statement& one) { return one.has(condition.at.line); }));
    });
    if (loops.size() > 1)
      suggest_condition(s, loops.back(), "decides which rows are stored", false);
  }
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
  // Of many that lack not all are in the list: then nothing of the head is stored.
  const std::map<std::size_t, std::uint32_t> stored = blocks_of_rows();
  const bool whole = std::all_of(by_head.begin(), by_head.end(), [&](const auto& one) {
    const auto first = stored.lower_bound(one.first * queries);
    return one.second.size() == queries || first == stored.end() ||
           first->first >= (one.first + 1) * queries;
  });
  if (x_graph.whole_blocks && whole)
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (use.sources.find('t') == std::string::npos && !use.constant)
        suggest(s, use, "makes the index of the store, by head");
  std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
  const std::string_view axis =
      heads && whole && !x_graph.whole_blocks ? axis_of_heads(uses, stored) : "";
  std::erase_if(uses, [&](const NamedLine& use) {
    return use.sources.empty() || (axis.empty() ? is_of_block(use) != heads : !comes_of(use, axis));
  });
  if (whole_rows && axis.empty()) put_blocks_first(uses);
  for (const NamedLine& use : uses) suggest(s, use, "makes the index of the store");
}

std::map<std::size_t, std::uint32_t> SumSuspects::blocks_of_rows() const {
  std::map<std::size_t, std::uint32_t> blocks;
  const auto& outputs = x_graph.outputs[0];
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::uint32_t row = 0, column = 0;
    x_attention.locate_output(i, row, column);
    if (column == 0 && outputs[i].block != ~0u) blocks[row] = outputs[i].block;
  }
  return blocks;
}

std::string_view SumSuspects::axis_of_heads(
    const std::vector<NamedLine>& uses,
    const std::map<std::size_t, std::uint32_t>& block_of) const {
  // Blocks count along x first.
  const auto queries = static_cast<std::size_t>(x_attention.problem().seqlen_q);
  const auto least_step = [&](std::size_t distance) {
    std::uint32_t least = ~0u;
    for (const auto& [row, block] : block_of) {
      const auto other = block_of.find(row + distance);
      if (other == block_of.end() || other->second == block ||
          (distance == 1 && row / queries != other->first / queries))
        continue;
      least = std::min(least, std::max(block, other->second) - std::min(block, other->second));
    }
    return least;
  };
  const std::uint32_t by_query = least_step(1), by_head = least_step(queries);
  if (by_query == ~0u || by_head == ~0u || by_query == by_head) return "";
  std::array<std::string_view, 3> axes = {"x", "y", "z"};
  if (by_head > by_query) std::reverse(axes.begin(), axes.end());
  const auto axis = std::find_if(axes.begin(), axes.end(), [&](std::string_view one) {
    return std::any_of(uses.begin(), uses.end(),
                       [&](const NamedLine& use) { return comes_of(use, one); });
  });
  return axis == axes.end() ? "" : *axis;
}

void SumSuspects::put_blocks_first(std::vector<NamedLine>& uses) {
  std::stable_partition(uses.begin(), uses.end(),
                        [](const NamedLine& use) { return comes_of(use, "xyz"); });
}

std::uint32_t SumSuspects::store_before_copies(std::uint32_t n, std::uint32_t s) {
  for (int steps = 0; steps < 8 && !x_graph.whole_blocks; ++steps) {
    if (!copies_elements(s)) return s;
    // A load that knows who stored what it reads.
    std::uint32_t from = n;
    while (from != 0 && node(from).site != 0 && !node(from).is_input() &&
           !(is_load(from) && node(from).operand[0] != 0 &&
             op(node(from).operand[0]) == ValueOp::kStore)) {
      std::uint32_t next = 0;
      for (const std::uint32_t operand : operands(from))
        if (x_terms[operand].kind != TermKind::kNumber) next = operand;
      if (next == 0 || !is_same_line(node(from).site, s)) return s;
      from = next;
    }
    if (from == 0 || node(from).site == 0 || node(from).is_input()) return s;
    n = node(from).operand[0];
    s = node(n).site;
  }
  return s;
}

void SumSuspects::suspect_place(Cause cause, bool rows) {
  const Term& term = x_terms[cause.node];
  cause.site = store_before_copies(cause.node, cause.site);
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
  // A mask knows which row it is: the keys are those of the row that it is stored as.
  const std::uint32_t q = rows ? q_of(cause.node) : 0;
  if (q != 0 && has_keys_of_one(term, cause.row)) suggest_moves(q, why);
  // Where each element is stored to once, the column was taken for another one before.
  const std::uint32_t v = rows ? 0 : factor_of_v(cause.node);
  const std::size_t before = x_out.suspects.size();
  if (!rows && !by_store && suggest_handovers(cause)) {
    suggest_place_of_thread(v, why);
    put_odd_one_first(before);
  }
  if (!rows && !by_store) suggest_shared_operand(cause.node);
  if (rows && !by_store) suspect_taken_for(cause);
  // Two columns of one, and each is stored once: that is no matter of the store.
  if (v != 0 && !by_store && is_right_there(cause.row, term.column)) suggest_node(v, why);
  suggest(cause.site, "stores it");
  if (!rows && !by_store) suggest_stored_name(cause.site, "makes what is stored");
  if (v != 0) suggest_node(v, why);
  if (q != 0) suggest_node(q, why);
  if (rows && !by_store && !x_graph.whole_blocks) suggest_rows_of_place(cause.site);
  if (rows) suggest_loaders(buffer, why);
  suggest_moves_with_indices(cause.node, "hands on the column");
  suggest_indices(cause.site, "makes the index of the store");
  suggest_loaders(buffer, why);
}

std::uint32_t SumSuspects::q_of(std::uint32_t n) const {
  if (x_graph.whole_blocks) return 0;
  const auto is_q = [&](std::uint32_t of) {
    return x_terms[of].kind == TermKind::kElement && x_terms[of].buffer == 0;
  };
  const std::uint32_t weight = exponential_in(n, 1 << 14);
  n = weight == 0 ? 0 : node(weight).operand[0];
  for (int steps = 0; steps < 1024 && n != 0 && node(n).site != 0 && !node(n).is_input(); ++steps) {
    if (op(n) == ValueOp::kProduct)
      for (const auto& [left, right] : x_graph.pairs_of(node(n)))
        for (const std::uint32_t of : {left, right})
          if (is_q(of)) return of;
    if (const std::uint32_t q = first_operand(n, is_q); q != 0) return q;
    n = first_operand(n, TermKind::kScore);
  }
  return 0;
}

bool SumSuspects::has_keys_of_one(const Term& sum, std::uint32_t row) const {
  bool differ = false;
  for (unsigned j = 0; j < x_terms.keys().size(); ++j) {
    const bool sees = x_attention.visible(row, j);
    if (x_terms.keys().has(sum.set, j) != sees) return false;
    differ = differ || sees != x_attention.visible(sum.row, j);
  }
  return differ;
}

void SumSuspects::suggest_stored_name(std::uint32_t store, const std::string& why) {
  const ValueSite& at = site(store);
  const std::string& text = x_text.line(at.file, at.line);
  const std::size_t value = text.rfind('=');
  if (x_graph.whole_blocks || value == text.npos) return;
  const std::vector<std::string> names = variables_of(text.substr(value + 1));
  if (names.size() == 1)
    suggest(at.file, at.function, x_text.assigned_above(at.file, at.line, names.front()), 0,
            names.front(), why);
}

bool SumSuspects::is_right_there(std::uint32_t row, unsigned column) const {
  return std::any_of(x_elements.begin(), x_elements.end(), [&](const OutputElement& element) {
    std::uint32_t its_row = 0, its_column = 0;
    if (element.wrong || element.of_lse) return false;
    x_attention.locate_output(element.index, its_row, its_column);
    return its_row == row && its_column == column;
  });
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

std::uint32_t SumSuspects::factor_of_v(std::uint32_t n) const {
  if (x_graph.whole_blocks) return 0;
  const std::uint32_t column = x_terms[n].column;
  for (int steps = 0; steps < 1024 && n != 0 && node(n).site != 0 && !node(n).is_input(); ++steps) {
    n = made_by(n);
    const std::uint32_t v =
        op(n) == ValueOp::kProduct ? operands_of(n).second : first_operand(n, TermKind::kElement);
    if (v != 0 && v < n && x_terms[v].kind == TermKind::kElement) return v;
    n = first_operand(n, [&](std::uint32_t of) {
      return x_terms[of].kind == TermKind::kWeight && x_terms[of].column == column;
    });
  }
  return 0;
}

void SumSuspects::suggest_shared_operand(std::uint32_t n) {
  if (x_graph.whole_blocks) return;
  const std::uint32_t column = x_terms[n].column;
  for (int steps = 0; steps < 1024 && n != 0 && node(n).site != 0 && !node(n).is_input(); ++steps) {
    n = made_by(n);
    if (op(n) == ValueOp::kProduct || node(n).site == 0) return;
    for (const std::uint32_t operand : operands(n)) {
      if (node(operand).site == 0) continue;
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

bool SumSuspects::suggest_handovers(const Cause& cause) {
  if (x_graph.whole_blocks) return false;
  std::uint32_t n = cause.node;
  const std::uint32_t column = x_terms[n].column;
  // "o[row * n + d] = part[d];": a thread that takes what it stores by the same index.
  const std::vector<NamedLine> places = variables_in(site(cause.site).uses, ',');
  const auto takes_its_own = [&](std::uint32_t taken) {
    const std::uint32_t s = node(taken).site;
    const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
    const std::vector<std::string> added =
        added_in_subscripts(x_text.line(site(s).file, site(s).line));
    return std::any_of(uses.begin(), uses.end(), [&](const NamedLine& use) {
      return comes_of(use, "t") && std::find(added.begin(), added.end(), use.name) != added.end() &&
             std::any_of(places.begin(), places.end(), [&](const auto& one) {
               return key_of(s, use) == key_of(cause.site, one);
             });
    });
  };
  std::uint32_t own = 0;
  for (int steps = 0; steps < 1024 && n != 0 && node(n).site != 0 && !node(n).is_input(); ++steps) {
    const std::uint32_t from = node(n).operand[0];
    const bool hands_over =
        is_load(n) && from != 0 && op(from) == ValueOp::kStore && node(from).where != node(n).where;
    if (hands_over && own == 0 && takes_its_own(n)) {
      own = n;
      if (!suggest_place_of_thread(from, "hands the column to another thread"))
        suggest_node(from, "hands the column to another thread");
    } else if (hands_over) {
      suggest_node(n, "takes the column from another thread");
      suggest_node(from, "hands the column to another thread");
    }
    n = op(n) == ValueOp::kProduct ? 0 : first_operand(n, [&](std::uint32_t of) {
      return x_terms[of].kind == TermKind::kWeight && x_terms[of].column == column;
    });
  }
  return own != 0;
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

}  // namespace attn_diag::lines
