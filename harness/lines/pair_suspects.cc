// Two operands that do not belong together: which of them strays, and what makes its place.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

void NumberSuspects::suggest_fragment(std::uint32_t load) {
  if (!is_load(load) || x_graph.whole_blocks) return;
  const ValueSite& s = site(node(load).site);
  const auto arguments = arguments_of(x_text.statement(s.file, s.line), "load_matrix_sync");
  if (arguments.empty() || arguments[0].empty()) return;
  const std::string& name = arguments[0].front();
  suggest(s.file, s.function, x_text.declares_fragment_above(s.file, s.line, name), 0, name,
          "says how the matrix lies in memory");
}

void NumberSuspects::suggest_pair(std::uint32_t at, std::uint32_t a, std::uint32_t b,
                                  std::uint32_t row, Ill ill) {
  const std::string why = ill_text(ill), makes = "makes an operand of that";
  if (x_terms[a].kind != TermKind::kWeight)
    suggest_shared_of_k_and_v(row, "neither k nor v is loaded whole, and both loads use it");
  if (x_terms[a].kind == TermKind::kWeight && !loads_all(1, row))
    suggest_loaders(1, lacks_text(1, row));
  // The weight is of another row, and of this one there are none: its score was made of the wrong q.
  if (!x_graph.whole_blocks && x_terms[a].kind == TermKind::kWeight && x_terms[a].row != row &&
      !has_all_weights(row)) {
    note_loaders();
    for (const std::uint32_t loader : x_loaders[0])
      suggest_computed(loader, variables_in(site(loader).uses, ','),
                       "makes the weights of another row");
  }
  // First the operand that is not of the head, or of the row.
  const auto fits = [&](std::uint32_t operand) {
    const Term& term = x_terms[operand];
    return term.kind != TermKind::kElement ||
           (term.buffer == 0 ? term.row == row : x_attention.same_head(row, term.row));
  };
  const bool left_first = x_graph.whole_blocks && fits(b) && !fits(a);
  if (!x_graph.whole_blocks) suggest_unmoved(at, a, b);
  for (const std::uint32_t operand : left_first ? std::array{a, b} : std::array{b, a}) {
    const std::uint32_t input = load_of(operand);
    if (input == 0) continue;
    const unsigned buffer = x_terms[input].buffer;
    if (x_graph.whole_blocks || !loads_all(buffer, row))
      suggest_loader(node(input).site, loads_all(buffer, row) ? makes : lacks_text(buffer, row));
  }
  // The row of q is known.
  for (const std::uint32_t operand : {a, b}) {
    const Term& term = x_terms[operand];
    if (term.kind == TermKind::kElement && term.buffer == 0 && term.row != row &&
        node(input_of(operand)).is_input())
      suggest_loader(node(input_of(operand)).site, "loads q of another row");
  }
  const Strays stray = strays(at, ill);
  // Where it was read last, and where it was put there: of the one that strays before the indices of either.
  const bool apart = stray != Strays::kNothing && op(at) != ValueOp::kProduct;
  const auto suggest_operand = [&](std::uint32_t operand) {
    for (const bool indices : {false, true})
      for (std::uint32_t n = operand; n != 0; n = node(n).operand[0]) {
        // Of a matrix that was loaded by a helper: which part of it a lane names.
        if (!indices && n == operand && op(at) == ValueOp::kProduct && stray != Strays::kNothing)
          suggest_call(node(n).site, makes);
        if (!indices) suggest_node(n, makes);
        if (!indices) suggest_fragment(n);
        if ((indices || !apart) && node(n).site != 0) suggest_indices(node(n).site, makes);
        if (node(n).is_input() || node(n).site == 0 || n == made_by(n)) break;
      }
  };
  if (!x_graph.whole_blocks && op(at) != ValueOp::kProduct && x_terms[a].kind == TermKind::kWeight)
    suspect_misplaced_score(at, a, b, row, stray == Strays::kLeft || x_terms[a].row != row);
  // A line that multiplies matrices takes what its fragments hold; one that is right for most numbers, and names elements
  // by plain indices, what they hold.
  const std::uint32_t strayed = stray == Strays::kRight ? b : a;
  const ValueSite& here = site(node(at).site);
  const std::string& taken = site(node(strayed).site).variable;
  const bool right_here = apart && (ill == Ill::kColumns || ill == Ill::kKeys) &&
                          is_load(strayed) && fits_mostly(at, ill) &&
                          (!has_name(x_text.line(here.file, here.line), {taken}) ||
                           is_plain_subscript(x_text.line(here.file, here.line), taken));
  // Of inline assembly in a helper its own line comes last.
  const bool in_helper =
      op(at) == ValueOp::kProduct && !x_graph.whole_blocks && !site(node(at).site).callers.empty();
  const Shift shift = shift_of(at, ill);
  if (ill == Ill::kHeads && !x_graph.whole_blocks && fits(a) != fits(b))
    suggest_base_of(fits(a) ? b : a, makes);
  if (shift == Shift::kOfBlock) suggest_base_of(stray == Strays::kLeft ? a : b, makes);
  if (shift == Shift::kOfThreads && op(at) == ValueOp::kProduct && stray == Strays::kNothing)
    for (const std::uint32_t operand : {b, a}) suggest_lanes_before_loops(operand, makes);
  if (op(at) == ValueOp::kProduct && stray != Strays::kNothing) {
    if (is_wrong_from_the_first(at)) suggest_lanes_before_loops(strayed, makes);
    // Who loads registers, then who takes them: in another order, perhaps.
    if (in_helper) {
      suggest_call(node(strayed).site, makes);
      if (site(node(strayed).site).callers.empty()) suggest_with_own_address(strayed, makes);
      suggest_callers(node(at).site, why);
    }
    suggest_operand(strayed);
  }
  if (right_here) {
    std::uint32_t from = strayed;
    while (is_load(from) && !node(from).is_input() && is_same_line(node(from).site, node(at).site))
      from = node(from).operand[0];
    if (from != 0) suggest_operand(from);
  }
  // By which lane it came, the line that took it from there says.
  const ValueSite& handed = site(node(strayed).site);
  if (apart && handed.line != 0 && handed.line != here.line &&
      x_text.line(handed.file, handed.line).find("shfl") != std::string::npos)
    suggest_node(strayed, makes);
  if (ill == Ill::kColumns && stray == Strays::kNothing) suggest_places_of_threads(at, a, b, makes);
  if (in_helper)
    suggest_callers(node(at).site, why);
  else
    suggest_node(at, why);
  // Of two that both may be the one: where either comes from before what indices are made of.
  if (op(at) != ValueOp::kProduct && stray == Strays::kNothing && !x_graph.whole_blocks)
    for (const std::uint32_t operand : {a, b}) suggest_moves(operand, makes);
  for (const std::uint32_t operand : stray == Strays::kRight ? std::array{b, a} : std::array{a, b})
    suggest_operand(operand);
  suggest_node(at, why);
  suggest_callers(node(at).site, why);
}

void NumberSuspects::suggest_places_of_threads(std::uint32_t at, std::uint32_t a, std::uint32_t b,
                                               const std::string& why) {
  if (op(at) == ValueOp::kProduct) return;
  const std::size_t before = x_out.suspects.size();
  for (const std::uint32_t operand : {a, b}) {
    const std::uint32_t load = load_of(operand);
    if (load == 0 || is_same_line(node(load).site, node(at).site)) return;
    suggest_place_of_thread(load, why);
  }
  put_odd_one_first(before);
}

void NumberSuspects::suggest_with_own_address(std::uint32_t load, const std::string& why) {
  const std::uint32_t s = node(load).site;
  if (s == 0) return;
  suggest_node(load, why);
  const auto begins = [&](int line) {
    const std::vector<Statement> around = x_text.statements_around(site(s).file, line);
    return around.empty() ? 0 : around.back().begin;
  };
  for (const NamedLine& use : variables_in(site(s).uses, ','))
    if (use.line != site(s).line && computes(text_of(s, use), use.name) &&
        !is_loop(text_of(s, use)) && begins(use.line) == begins(site(s).line))
      suggest(s, use, why);
}

bool NumberSuspects::is_wrong_from_the_first(std::uint32_t at) const {
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (op(n) == op(at) && node(n).where == node(at).where &&
        is_same_line(node(n).site, node(at).site))
      return x_terms[n].kind == TermKind::kIll;
  return false;
}

void NumberSuspects::suggest_base_of(std::uint32_t operand, const std::string& why) {
  // By which its own thread took it.
  std::uint32_t load = operand;
  for (int steps = 0; steps < 64 && load != 0 && !is_load(load) && !node(load).is_input(); ++steps)
    load = first_operand(load, TermKind::kElement);
  const std::uint32_t s = node(load).site;
  if (s == 0) return;
  std::vector<NamedLine> bases = variables_in(site(s).uses, ',');
  std::erase_if(bases, [&](const NamedLine& use) {
    const std::vector<Statement> around = x_text.statements_around(file_of(s, use), use.line);
    return use.sources.empty() || comes_of(use, "t") || is_loop(text_of(s, use)) ||
           std::any_of(around.begin(), around.end(), [](const Statement& one) { return one.loop; });
  });
  // The pointer before what it is made of.
  std::stable_partition(bases.begin(), bases.end(), [&](const NamedLine& use) {
    return makes_pointer(text_of(s, use), use.name);
  });
  if (!bases.empty()) suggest_computed(s, {bases.front()}, why);
  // Or it was put elsewhere, by whoever stored it.
  const std::uint32_t from = is_load(load) && !node(load).is_input() ? node(load).operand[0] : 0;
  if (from != 0 && op(from) == ValueOp::kStore) {
    const ValueSite& put = site(node(from).site);
    const std::vector<std::string> names =
        subscript_names(x_text.line(put.file, put.line), put.variable);
    std::vector<NamedLine> places = variables_in(put.uses, ',');
    std::erase_if(places, [&](const NamedLine& use) { return !has_name(use.name, names); });
    suggest_computed(node(from).site, places, "makes the place where it was stored");
  }
  suggest_computed(s, bases, why);
}

void NumberSuspects::suggest_lanes_before_loops(std::uint32_t operand, const std::string& why) {
  if (x_graph.whole_blocks || node(operand).site == 0) return;
  const std::uint32_t s = node(operand).site;
  std::map<int, NamedLine, std::greater<>> lanes;
  for (const NamedLine& use : variables_in(site(s).uses, ',')) {
    const std::string& text = text_of(s, use);
    if (comes_of(use, "t") && computes(text, use.name) && !is_loop(text) &&
        x_text.statements_around(file_of(s, use), use.line).empty())
      lanes.emplace(use.line, use);
  }
  if (lanes.empty()) return;
  suggest_callers(s, why);
  // Which part of the matrix a lane names, where that is computed for this load alone.
  if (const std::vector<NamedLine> calls = lines_in(site(s).callers); !calls.empty()) {
    const std::vector<Statement> around =
        x_text.statements_around(file_of(s, calls[0]), calls[0].line);
    for (const NamedLine& use : variables_in(site(s).uses, ','))
      if (!around.empty() && around.back().has(use.line) && comes_of(use, "t") &&
          file_of(s, use) == file_of(s, calls[0]) && computes(text_of(s, use), use.name) &&
          !is_loop(text_of(s, use)))
        suggest(s, use, why);
  }
  for (const auto& [line, use] : lanes) suggest(s, use, why);
}

void NumberSuspects::suspect_misplaced_score(std::uint32_t at, std::uint32_t weight,
                                             std::uint32_t v, std::uint32_t row, bool strays) {
  const std::uint32_t made = exponential_in(weight);
  std::uint32_t score = made == 0 ? 0 : node(made).operand[0];
  for (int steps = 0; steps < 16 && score != 0 && !is_load(score); ++steps)
    score = first_operand(score, TermKind::kScore);
  if (score == 0 || !is_load(score) || !is_whole(x_terms[score])) return;
  bool again = false, stored = false, right_elsewhere = false, wrong_elsewhere = false;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind == TermKind::kWeight && term.column == x_terms[v].column)
      again = again || (n < at && node(n).site == node(at).site &&
                        node(n).where == node(at).where && term.row == row);
    if (term.kind != TermKind::kScore || !is_whole(term)) continue;
    if (op(n) == ValueOp::kStore)
      stored = stored || (term.row == row && term.column == x_terms[v].row);
    else if (is_load(n) && node(n).where == node(score).where &&
             !is_same_line(node(n).site, node(score).site))
      (term.row == row ? right_elsewhere : wrong_elsewhere) = true;
  }
  // A score of an earlier step, multiplied with its own v then: that of this key was not stored, and none should be read.
  if (x_terms[score].row == row && again && !stored) {
    suggest_conditions(node(at).site, "if", "lets a score be read that was not stored anew", false);
    suggest_conditions(node(made).site, "if", "lets a score be read that was not stored anew",
                       false);
    for (std::uint32_t n = score; n != made_by(score); n = node(n).operand[0])
      if (op(n) == ValueOp::kStore)
        suggest_conditions(node(n).site, "if", "decides which scores are stored", false);
  }
  if (!strays) return;
  const std::string why = "takes the score of another row or key";
  // Where another line reads what is right, it was stored where it belongs.
  if (right_elsewhere && !wrong_elsewhere) {
    suggest_node(score, why);
    suggest_uses(node(score).site, "makes the index of an operand");
  }
  suggest_moves_with_indices(score, why);
}

void NumberSuspects::suspect_addend(std::uint32_t n) {
  const std::uint32_t sum = node(n).operand[0];
  if (x_graph.whole_blocks || op(n) != ValueOp::kProduct || sum == 0 || sum >= n ||
      x_terms[sum].kind != TermKind::kWeight || x_terms[sum].column == kNone)
    return;
  const auto pairs = x_graph.pairs_of(node(n));
  const auto is_of_it = [&](const host::ValuePair& pair) {
    const Term &weight = x_terms[pair.left], &v = x_terms[pair.right];
    return weight.kind == TermKind::kWeight && v.kind == TermKind::kElement &&
           v.column == x_terms[sum].column;
  };
  const auto first = std::find_if(pairs.begin(), pairs.end(), [&](const host::ValuePair& pair) {
    return x_terms[pair.left].kind == TermKind::kWeight &&
           x_terms[pair.right].kind == TermKind::kElement;
  });
  if (first == pairs.end() || std::any_of(pairs.begin(), pairs.end(), is_of_it)) return;
  x_out.what =
      fmt::format("adds different columns: {}, and {}", term_text(sum), term_text(first->right));
  suggest_moves_with_indices(sum, "takes up a sum of another column");
}

void NumberSuspects::suggest_unmoved(std::uint32_t at, std::uint32_t a, std::uint32_t b) {
  if (op(at) == ValueOp::kProduct || x_terms[a].kind != TermKind::kElement ||
      x_terms[b].kind != TermKind::kElement)
    return;
  // Which elements the same thread multiplies there, on either side.
  std::set<std::uint64_t> seen[2];
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (node(n).site != node(at).site || node(n).where != node(at).where) continue;
    for (unsigned i = 0; i < 2; ++i) {
      const std::uint32_t operand = node(n).operand[i];
      if (operand == 0 || operand >= n || x_terms[operand].kind != TermKind::kElement) return;
      seen[i].insert(x_terms[operand].column);
    }
  }
  if (std::min(seen[0].size(), seen[1].size()) != 1 || seen[0].size() == seen[1].size()) return;
  // One of them never moves.
  const std::uint32_t unmoved = seen[0].size() == 1 ? a : b;
  std::uint32_t n = unmoved;
  for (int steps = 0; steps < 64 && node(n).site != 0 && !node(n).is_input(); ++steps) {
    const std::uint32_t next = first_operand(n, TermKind::kElement);
    if (next == 0) break;
    n = next;
  }
  if (node(n).site == 0) return;
  // Where an array of its own held it, each of its elements has what one has.
  suggest_node(n, "reads one element for all");
  suggest_moves(unmoved, "reads one element for all");
}

bool NumberSuspects::is_wrong_elsewhere(std::uint32_t at, std::uint32_t operand) const {
  for (std::uint32_t n = operand + 1; n < x_graph.nodes.size(); ++n)
    if (x_terms[n].kind == TermKind::kIll && x_terms[n].root == n &&
        operands_of(n).first == operand && node(n).where == node(at).where &&
        site(node(n).site).line != site(node(at).site).line)
      return true;
  return false;
}

void NumberSuspects::suggest_taken(std::uint32_t at, std::uint32_t weight) {
  const std::size_t before = x_out.suspects.size();
  for (const NamedLine& use : variables_in(site(node(at).site).uses, ','))
    if (text_of(node(at).site, use).find("shfl") != std::string::npos)
      suggest(node(at).site, use, "takes the weight of another key from its thread");
  if (x_out.suspects.size() == before) return;
  for (std::uint32_t n = weight; n != 0; n = node(n).operand[0])
    if (x_terms[n].kind == TermKind::kScore && node(n).site != 0 &&
        (op(n) == ValueOp::kAdd || op(n) == ValueOp::kFma))
      return suggest_node(n, "or makes the score of another key there");
}

void NumberSuspects::suggest_heads_of_load(std::uint32_t loader, std::uint32_t row) {
  if (x_graph.whole_blocks || !loads_all(0, row)) return;
  note_loaders();
  // The head is something that the place of q depends on, and what q's own place is made of is right.
  std::string of_q;
  std::set<std::pair<std::string, int>> lines_of_q;
  for (const std::uint32_t one : x_loaders[0])
    for (const NamedLine& use : variables_in(site(one).uses, ',')) {
      of_q += use.sources;
      lines_of_q.emplace(file_of(one, use), use.line);
    }
  std::vector<NamedLine> heads = variables_in(site(loader).uses, ',');
  std::erase_if(heads, [&](const NamedLine& use) {
    return use.sources.empty() || comes_of(use, "t") || is_loop(text_of(loader, use)) ||
           lines_of_q.count({file_of(loader, use), use.line}) > 0 ||
           use.sources.find_first_not_of(of_q) != use.sources.npos;
  });
  suggest_computed(loader, heads, "makes the place of what is of another head");
}

}  // namespace attn_diag::lines
