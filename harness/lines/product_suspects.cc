// What is added twice, and what multiplies v that is no weight.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>
#include <vector>

#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {

void NumberSuspects::suggest_first_value(const Cause& cause, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t n = cause.node;
  if (x_graph.whole_blocks || a == 0 || b == 0 || a >= n || b >= n) return;
  // "r = mine;", and then "r += all[w];": one and the same, or made twice in the same way.
  const auto is_of_keys = [&](std::uint32_t one, std::uint32_t set) {
    const Term& term = x_terms[one];
    return term.kind == TermKind::kWeight && term.set == set && x_terms.keys().count(term.set) > 1;
  };
  const std::uint32_t sum = op(n) == ValueOp::kFma ? node(n).operand[2] : a;
  if (sum == 0 || sum >= n) return;
  const bool is_same = sum == a
                           ? made_by(a) == made_by(b) ||
                                 (is_of_keys(b, x_terms[a].set) && is_of_keys(a, x_terms[b].set) &&
                                  node(a).value == node(b).value)
                           : is_of_keys(sum, x_terms[a].set) || is_of_keys(sum, x_terms[b].set);
  if (!is_same) return;
  const auto suggest_of = [&](const std::string& file, const std::string& function, int line) {
    std::vector<std::string> names = assigned_names(x_text.statement(file, line));
    names.push_back(site(cause.site).variable);
    for (const std::string& name : names) {
      const int declared = x_text.declared_above(file, line, name);
      const std::string text = declared == 0 ? "" : x_text.statement(file, declared);
      const std::size_t value = text.find('=');
      if (declared == line || value == text.npos || variables_of(text.substr(value)).empty())
        continue;
      suggest(file, function, declared, 0, name, "begins with a part that is added again");
      suggest(file, function, line, 0, name, "adds it to itself");
    }
  };
  const ValueSite& at = site(cause.site);
  // Lanes that exchange their parts begin with their own.
  if (x_text.line(at.file, at.line).find("shfl") != std::string::npos) return;
  suggest_of(at.file, at.function, at.line);
  for (const NamedLine& call : lines_in(at.callers))
    suggest_of(file_of(cause.site, call), "", call.line);
}

bool NumberSuspects::is_rescaling_factor(std::uint32_t n) const {
  if (!is_exponential(n)) return false;
  for (std::uint32_t by = n + 1; by < x_graph.nodes.size(); ++by) {
    if (op(by) != ValueOp::kMultiply && op(by) != ValueOp::kFma) continue;
    const auto& operand = node(by).operand;
    for (std::size_t i = 0; i < 2; ++i)
      if (operand[i] != 0 && made_by(operand[i]) == n && operand[1 - i] != 0 &&
          x_terms[operand[1 - i]].kind == TermKind::kWeight)
        return true;
  }
  return false;
}

void NumberSuspects::suggest_added_factor(std::uint32_t n) {
  if (x_graph.whole_blocks) return;
  std::vector<std::uint32_t> sums = {n};
  for (std::size_t i = 0; i < sums.size() && i < 64; ++i) {
    const ValueNode& sum = node(sums[i]);
    const bool fused = op(sums[i]) == ValueOp::kFma;
    if (!fused && op(sums[i]) != ValueOp::kAdd) continue;
    for (std::size_t j = fused ? 2 : 0; j < (fused ? 3 : 2); ++j) {
      const std::uint32_t part = sum.operand[j] == 0 ? 0 : made_by(sum.operand[j]);
      if (part == 0) continue;
      sums.push_back(part);
      if (!is_rescaling_factor(part)) continue;
      // What holds it, by its name; a helper has one of its own.
      const ValueSite& made = site(node(part).site);
      const std::vector<NamedLine> calls = lines_in(made.callers);
      const std::vector<std::string> names = assigned_names(
          calls.empty() ? x_text.statement(made.file, made.line)
                        : x_text.statement(file_of(node(part).site, calls[0]), calls[0].line));
      if (has_name(x_text.line(site(sum.site).file, site(sum.site).line), names))
        return suggest_node(sums[i], "adds the factor that rescales what was summed before");
      const std::string why = "gives the sum the factor that rescales what was summed before";
      for (std::uint32_t at = sum.operand[j]; at != part; at = node(at).operand[0])
        if (op(at) == ValueOp::kStore) suggest_node(at, why);
      for (const NamedLine& use : variables_in(site(sum.site).uses, ','))
        if (!has_name(use.name, names) && has_name(text_of(sum.site, use), names))
          suggest(sum.site, use, why);
      return;
    }
  }
}

std::uint32_t NumberSuspects::stored_score(std::uint32_t exponential) const {
  std::uint32_t load = node(exponential).operand[0];
  for (int steps = 0; steps < 16 && load != 0 && !is_load(load); ++steps)
    load = first_operand(load, TermKind::kScore);
  if (load == 0 || node(load).is_input()) return 0;
  const std::uint32_t stored = node(load).operand[0];
  return stored != 0 && op(stored) == ValueOp::kStore ? stored : 0;
}

void NumberSuspects::suggest_left_there(std::uint32_t sum) {
  if (x_graph.whole_blocks) return;
  constexpr std::size_t kMost = 4096;
  std::vector<std::uint32_t> pending = {sum};
  std::set<std::uint32_t> seen;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> taken;  // by thread and line
  while (!pending.empty() && seen.size() < kMost) {
    const std::uint32_t n = pending.back();
    pending.pop_back();
    if (node(n).site == 0 || !seen.insert(n).second) continue;
    if (!is_exponential(n)) {
      for (const std::uint32_t operand : operands(n))
        if (x_terms[operand].kind == TermKind::kWeight) pending.push_back(operand);
      continue;
    }
    const std::uint32_t stored = stored_score(n);
    if (stored == 0 || taken.emplace(stored, node(n).site, node(n).where).second) continue;
    // In another step than the one for which it was stored, and nothing was stored there anew: "if (key >= end) break;",
    // then what lets a step go on, then where loops end.
    const std::uint32_t s = node(stored).site;
    std::vector<Condition> conditions = conditions_in(site(s).conditions);
    const auto rank = [&](const Condition& one) {
      return !one.loop ? 1 : is_loop(text_of(s, one.at)) ? 2 : 0;
    };
    std::stable_sort(
        conditions.begin(), conditions.end(),
        [&](const Condition& one, const Condition& other) { return rank(one) < rank(other); });
    for (const Condition& condition : conditions)
      suggest_condition(s, condition, "leaves there what was stored before", false);
    return;
  }
}

void NumberSuspects::suspect_twice(const Cause& cause, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t n = cause.node;
  const std::string why = ill_text(Ill::kTwice);
  if (!x_graph.whole_blocks) suggest_repeated_score(cause.row);
  suggest_added_factor(n);
  suggest_left_there(n);
  // An atomic addition adds the same sum twice: one of the threads should do it.
  if (op(n) == ValueOp::kAtomicAdd && a != 0 && b != 0 && a < n && b < n &&
      x_terms[a].kind == TermKind::kWeight && x_terms[a].set == x_terms[b].set) {
    suggest_conditions(cause.site, "if", "decides which threads add it", false);
    suggest_node(n, why);
  }
  // A lane that takes its own number, or a line that reads one element twice.
  if (a != 0 && b != 0 && a < n && b < n && made_by(a) == made_by(b)) {
    const bool of_one_element = !x_graph.whole_blocks && is_load(a) && is_load(b) &&
                                node(a).operand[0] != 0 && node(a).operand[0] == node(b).operand[0];
    if (of_one_element ||
        x_text.line(site(cause.site).file, site(cause.site).line).find("shfl") != std::string::npos)
      suggest_node(n, "adds a number to itself");
  }
  suggest_first_value(cause, a, b);
  suggest_same_key(a, b);
  for (const std::uint32_t operand : {a, b})
    if (const std::uint32_t leaf = leaf_of(cause.site, operand); leaf != 0 && is_shared(leaf))
      suggest_conditions(node(leaf).site, "loop", "lets two threads sum the same part");
  // Parts that were summed before they were put together: their loops may overlap.
  const auto is_part = [&](std::uint32_t operand) {
    if (operand == 0 || operand >= n) return false;
    const Term& term = x_terms[operand];
    return (term.kind == TermKind::kWeight && x_terms.keys().count(term.set) > 1) ||
           (term.kind == TermKind::kScore && x_terms.columns().count(term.set) > 1);
  };
  const auto suggest_what_is_not_loaded = [&] {
    for (const unsigned buffer : {1u, 2u, 0u})
      if (!loads_all(buffer, cause.row)) suggest_loaders(buffer, lacks_text(buffer, cause.row));
  };
  if (x_graph.whole_blocks) suggest_what_is_not_loaded();
  // Threads that sum the same keys, while nobody loads others, begin at the wrong ones.
  if (!x_graph.whole_blocks && is_part(a) && is_part(b) && !loads_all(1, cause.row)) {
    note_loaders();
    for (const std::uint32_t loader : x_loaders[1])
      for (const Condition& condition : conditions_in(site(loader).conditions))
        if (condition.loop && !is_plain_loop(text_of(loader, condition.at), true) &&
            come_of(condition.tests, "t"))
          suggest(loader, condition.at, "decides which keys a thread takes");
  }
  // Of two parts one is of keys that follow each other, the other is not: it has other rows of k in the place of its own.
  const auto is_of_run = [&](std::uint32_t part) {
    const std::uint32_t set = x_terms[part].set;
    unsigned begins = 0;
    for (unsigned j = 0; j < x_terms.keys().size(); ++j)
      begins += x_terms.keys().has(set, j) && (j == 0 || !x_terms.keys().has(set, j - 1));
    return begins == 1;
  };
  if (!x_graph.whole_blocks && is_part(a) && is_part(b) && x_terms[a].kind == TermKind::kWeight &&
      is_of_run(a) != is_of_run(b))
    suggest_what_is_not_loaded();
  if (is_part(a) && is_part(b))
    for (const std::uint32_t operand : {a, b}) {
      const std::uint32_t made = summed_part(operand);
      if (node(made).site == 0 || node(made).site == cause.site) continue;
      suggest_conditions_of_sum(node(made).site, "decides what a part is the sum of");
      suggest_node(made, "sums a part");
    }
  suggest_what_is_not_loaded();
  // Where the same line added it before, it is done too often; another line is one too many, if what it adds is what was
  // added and not another number that came out alike.
  if (added_there_before(n))
    suggest_conditions(cause.site, "loop", "decides how often that is done");
  else if (!x_graph.whole_blocks && (is_summand_of(a, b) || is_summand_of(b, a)))
    be_sure();  // of a block it may be an index
  suggest_node(n, why);
  suggest_conditions(cause.site, "loop", "decides how often that is done");
  suggest_callers(cause.site, why);
}

void NumberSuspects::suggest_conditions_of_sum(std::uint32_t s, const std::string& why) {
  // "sum[h] += x;": which of many sums it is says nothing of what they are sums of.
  const std::string& text = x_text.line(site(s).file, site(s).line);
  std::vector<std::string> numbers;
  for (const std::string& array : stored_arrays(text))
    for (std::string& name : subscript_names(text, array)) numbers.push_back(std::move(name));
  for (const bool of_number : {false, true})
    for (const Condition& condition : conditions_in(site(s).conditions))
      if (condition.loop && of_number == std::any_of(condition.tests.begin(), condition.tests.end(),
                                                     [&](const NamedLine& test) {
                                                       return has_name(test.name, numbers);
                                                     }))
        suggest_condition(s, condition, why, true);
}

std::uint32_t NumberSuspects::summed_part(std::uint32_t part) const {
  std::uint32_t made = made_by(part);
  for (int steps = 0; steps < 16 && op(made) == ValueOp::kMultiply; ++steps) {
    const std::uint32_t of = first_operand(made, [&](std::uint32_t operand) {
      const Term& term = x_terms[operand];
      return term.kind == x_terms[made].kind && term.row == x_terms[made].row &&
             term.set == x_terms[made].set;
    });
    if (of == 0) break;
    made = made_by(of);
  }
  return made;
}

void NumberSuspects::suggest_same_key(std::uint32_t a, std::uint32_t b) {
  if (x_graph.whole_blocks || a == 0 || b == 0 || x_terms[a].kind != TermKind::kWeight ||
      x_terms[b].kind != TermKind::kWeight || x_terms[a].set != x_terms[b].set ||
      x_terms.keys().count(x_terms[a].set) != 1)
    return;
  const std::uint32_t mine = made_by(a), theirs = made_by(b);
  if (!is_exponential(mine) || !is_exponential(theirs) || node(mine).where == node(theirs).where)
    return;
  const ValueSite& made = site(node(mine).site);
  for (const NamedLine& use : variables_in(made.uses, ','))
    if (!use.constant && use.line < made.line && !is_loop(text_of(node(mine).site, use)) &&
        text_of(node(mine).site, use).find("if") != std::string::npos)
      suggest(node(mine).site, use, "gives several threads the same key");
}

bool NumberSuspects::is_summand_of(std::uint32_t sum, std::uint32_t summand) const {
  // Those operands of a node that are numbers of its kind.
  const auto operands = [&](std::uint32_t n) {
    const bool one = op(n) == ValueOp::kProduct || op(n) == ValueOp::kPick;
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < (one ? 1 : node(n).operand.size()); ++i)
      if (const std::uint32_t of = node(n).operand[i];
          of != 0 && of < n && !node(n).is_input() && x_terms[of].kind == x_terms[n].kind)
        out.push_back(of);
    return out;
  };
  std::set<std::uint32_t> same;  // the summand, and what it was moved or rescaled from
  for (std::uint32_t n = summand; n != 0;) {
    same.insert(n);
    const std::vector<std::uint32_t> of = operands(n);
    n = of.size() == 1 && x_terms[of.front()].set == x_terms[n].set ? of.front() : 0;
  }
  std::vector<std::uint32_t> left = {sum};
  std::set<std::uint32_t> seen;
  while (!left.empty()) {
    const std::uint32_t n = left.back();
    left.pop_back();
    if (n == 0 || !seen.insert(n).second) continue;
    if (same.contains(n)) return true;
    for (const std::uint32_t operand : operands(n)) left.push_back(operand);
  }
  return false;
}

std::uint32_t NumberSuspects::copy_of_k(std::uint32_t score) const {
  const auto is_k = [&](std::uint32_t of) {
    return x_terms[of].kind == TermKind::kElement && x_terms[of].buffer == 1;
  };
  for (int steps = 0; steps < 512 && score != 0 && !x_graph.whole_blocks; ++steps) {
    std::uint32_t k = 0;
    if (op(score) != ValueOp::kProduct)
      k = first_operand(score, is_k);
    else if (const auto [left, right] = operands_of(score); left != 0 && right != 0)
      k = is_k(right) ? right : is_k(left) ? left : 0;
    if (k == 0) {
      score = first_operand(score, TermKind::kScore);
      continue;
    }
    const std::uint32_t input = input_of(k);
    bool through_memory = false;
    for (std::uint32_t at = k; at != input && at != 0; at = node(at).operand[0])
      through_memory = through_memory || is_load(at);
    return node(input).is_input() && through_memory ? input : 0;
  }
  return 0;
}

std::pair<std::uint32_t, std::uint32_t> NumberSuspects::repeated_score(std::uint32_t row) const {
  struct Made {
    std::uint32_t first = 0, again = 0;
  };
  std::vector<Made> made(x_terms.keys().size());
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    const ValueOp is = op(n);
    if (term.kind != TermKind::kScore || term.row != row ||
        (is != ValueOp::kAdd && is != ValueOp::kFma && is != ValueOp::kProduct) ||
        !x_attention.same_head(row, term.column) ||
        x_terms.columns().count(term.set) != x_terms.columns().size())
      continue;
    Made& of_key = made[x_attention.key_of(term.column)];
    if (of_key.first == 0)
      of_key.first = n;
    else if (node(n).site == node(of_key.first).site && node(n).where == node(of_key.first).where)
      of_key.again = n;
  }
  Made twice;
  bool lacks = false;
  for (unsigned j = 0; j < made.size(); ++j) {
    if (twice.again == 0 && made[j].again != 0) twice = made[j];
    lacks = lacks || (made[j].first == 0 && x_attention.visible(row, j));
  }
  if (!lacks) twice = {};
  return {twice.first, twice.again};
}

void NumberSuspects::suggest_copied_again(std::uint32_t copy, std::uint32_t row) {
  const std::string why = "copies the row of one key again and again, and of others none";
  const std::uint32_t s = node(copy).site;
  // Which tile it is all threads know alike. The nearest first.
  const std::vector<NamedLine> of_place = variables_in(site(s).uses, ',');
  std::vector<NamedLine> of_tile = of_place;
  std::erase_if(of_tile, [&](const NamedLine& use) {
    const std::vector<Statement> around = x_text.statements_around(file_of(s, use), use.line);
    const bool in_loop = std::any_of(around.begin(), around.end(),
                                     [](const Statement& statement) { return statement.loop; });
    return comes_of(use, "t") || use.constant || is_loop(text_of(s, use)) || !in_loop ||
           makes_pointer(x_text.statement(file_of(s, use), use.line), use.name);
  });
  std::stable_sort(
      of_tile.begin(), of_tile.end(),
      [](const NamedLine& one, const NamedLine& other) { return one.line > other.line; });
  for (const NamedLine& use : of_tile)
    if (computes(text_of(s, use), use.name)) suggest(s, use, "says which tile is copied");
  // Where all copies are of one key, and a call is given the place as it is: "copy(to, &k[at])".
  int keys = 0;
  for (unsigned j = 0; j < x_terms.keys().size(); ++j) keys += loads_key(1, row, j) ? 1 : 0;
  if (const std::vector<NamedLine> calls = lines_in(site(s).callers);
      keys <= 1 && !calls.empty() &&
      text_of(s, calls.front()).find_first_of("+-*/%") == std::string::npos)
    for (const NamedLine& use : of_place)
      if (has_name(text_of(s, calls.front()), {use.name}) && computes(text_of(s, use), use.name))
        suggest(s, use, "makes the place of what is copied");
  // Who names the place: a helper of assembly is given it.
  const std::string& text = x_text.line(site(s).file, site(s).line);
  if (has_name(text, {"asm"}) || text.find('[') == text.npos) suggest_callers(s, why);
  suggest_node(copy, why);
  suggest_callers(s, why);
  suggest_uses(s, "makes the place of what is copied");
}

void NumberSuspects::suggest_repeated_score(std::uint32_t row) {
  const auto [first, again] = repeated_score(row);
  if (again == 0) return;
  // Copied twice, its row of k lies where that of another key belongs; else it is what reads it.
  if (const std::uint32_t copy = copy_of_k(again); copy != 0 && copy != copy_of_k(first))
    suggest_copied_again(copy, row);
  // Where rows of k are not loaded, others may be in their place.
  if (!loads_all(1, row)) suggest_loaders(1, lacks_text(1, row));
  x_out.what += "; its score was made again, where that of another key belongs";
  suggest_node(again, "makes the score of one key again and again, and of others none");
  suggest_uses(node(again).site, "is an operand");
}

std::uint32_t NumberSuspects::leaf_of(std::uint32_t s, std::uint32_t operand) const {
  for (int steps = 0; steps < 64 && operand != 0 && operand < x_graph.nodes.size(); ++steps) {
    const std::uint32_t made = made_by(operand);
    if (node(made).site == 0) return 0;
    if (site(node(made).site).line != site(s).line) return made;
    std::uint32_t next = 0;
    for (const std::uint32_t of : operands(made))
      if (next == 0 && x_terms[of].kind == x_terms[made].kind) next = of;
    operand = next;
  }
  return 0;
}

bool NumberSuspects::is_shared(std::uint32_t leaf) const {
  const Term& mine = x_terms[leaf];
  if (mine.kind != TermKind::kScore) return false;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& theirs = x_terms[n];
    if (node(n).site != node(leaf).site || node(n).where == node(leaf).where ||
        theirs.kind != TermKind::kScore || theirs.row != mine.row || theirs.column != mine.column)
      continue;
    for (unsigned d = 0; d < x_terms.columns().size(); ++d)
      if (x_terms.columns().has(mine.set, d) && x_terms.columns().has(theirs.set, d)) return true;
  }
  return false;
}

bool NumberSuspects::added_there_before(std::uint32_t n) const {
  const auto [a, b] = operands_of(n);
  const std::uint32_t third = op(n) == ValueOp::kFma ? node(n).operand[2] : 0;
  for (std::uint32_t other = 1; other < n; ++other) {
    if (node(other).where != node(n).where || node(other).site == 0 ||
        site(node(other).site).line != site(node(n).site).line)
      continue;
    const Term& sum = x_terms[other];
    for (const std::uint32_t operand : {a, b, third}) {
      if (operand == 0 || operand >= n || x_terms[operand].kind != sum.kind) continue;
      const Term& part = x_terms[operand];
      if (part.row != sum.row || part.column != sum.column) continue;
      if (sum.kind == TermKind::kWeight && x_terms.keys().count(part.set) == 1)
        for (unsigned j = 0; j < x_terms.keys().size(); ++j)
          if (x_terms.keys().has(part.set, j) && x_terms.keys().has(sum.set, j)) return true;
    }
  }
  return false;
}

bool NumberSuspects::suspect_factor_of_v(const Cause& cause, std::uint32_t a, std::uint32_t b) {
  const auto is_of_v = [&](std::uint32_t n) {
    return n != 0 && n < cause.node && x_terms[n].kind == TermKind::kElement &&
           x_terms[n].buffer == 2;
  };
  if (!is_of_v(a) || !is_of_v(b)) return false;
  x_out.what = "adds rows of v whose factors come of no score";
  // v as it was loaded: nothing there multiplies it.
  const auto is_bare = [&](std::uint32_t of) {
    const std::uint32_t made = made_by(of);
    return x_terms[of].x == 1 && op(made) != ValueOp::kMultiply && op(made) != ValueOp::kFma;
  };
  if (op(cause.node) != ValueOp::kProduct && op(cause.node) != ValueOp::kFma &&
      (is_bare(a) || is_bare(b)))
    suggest_node(cause.node, "adds v without a weight");
  // Is there a score, and where is it last?
  std::uint32_t last = 0, part = 0;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind == TermKind::kScore && term.row == cause.row) (is_whole(term) ? last : part) = n;
    if (term.kind == TermKind::kWeight && term.row == cause.row) last = n;
  }
  if (last == 0) last = part;
  // The factor itself: who chose it, or holds it?
  for (const std::uint32_t of : {a, b}) {
    const std::uint32_t made = made_by(of);
    if (op(made) != ValueOp::kMultiply) continue;
    for (const std::uint32_t operand : operands(made))
      if (x_terms[operand].kind == TermKind::kNumber) suggest_foreign(operand);
  }
  if (last != 0) {
    suggest_taken_for_score(last);
    suggest_node(last, "holds what comes of a score last");
    suggest_moves(last, "holds what comes of a score last");
    suggest_uses(node(last).site, "is an operand");
  } else {
    if (const std::uint32_t seen = last_of_q_and_k(); seen != 0) {
      x_out.what += ": " + tell_lost(seen);
      return true;
    }
    x_out.what += ": no product of q and k is made";
    suggest_loaders(0, "loads q, for no product");
    suggest_loaders(1, "loads k, for no product");
  }
  suggest_node(cause.node, "adds rows of v whose factors come of no score");
  suggest_uses(cause.site, "is an operand");
  return true;
}

void NumberSuspects::suggest_taken_for_score(std::uint32_t score) {
  if (x_graph.whole_blocks) return;
  const ValueSite& from = site(node(score).site);
  int line = 0;  // of the exponential behind it
  for (const ValueSite& at : x_graph.sites)
    if ((at.op == ValueOp::kExp || at.op == ValueOp::kExp2) && at.file == from.file &&
        at.function == from.function && at.line > from.line && (line == 0 || at.line < line))
      line = at.line;
  if (line == 0) return;
  for (const std::string& name : variables_of(x_text.line(from.file, line)))
    if (const int made = x_text.assigned_above(from.file, line, name);
        from.line < made && made < line)
      suggest(from.file, from.function, made, 0, name,
              "is taken for the score that is made before");
}

std::uint32_t NumberSuspects::last_of_q_and_k() const {
  if (x_graph.whole_blocks || is_cut()) return 0;
  std::uint32_t last[2] = {0, 0}, product = 0;
  bool is_ill = false;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    const Term& term = x_terms[n];
    if (term.kind == TermKind::kWeight) return 0;
    is_ill = is_ill || (term.kind == TermKind::kIll && term.ill != Ill::kUnknown);
    // Products of one column that nothing adds up, as where integers do, and which at most were rounded before.
    if (term.kind == TermKind::kScore) {
      if (x_terms.columns().count(term.set) != 1 || x_terms.columns().size() == 1) return 0;
      product = n;
    }
    if (term.kind == TermKind::kElement && term.buffer < 2 && node(n).site != 0 &&
        site(node(n).site).line != 0)
      last[term.buffer] = n;
  }
  if (product != 0) return is_ill ? 0 : product;
  return last[0] == 0 || last[1] == 0 ? 0 : std::max(last[0], last[1]);
}

std::string NumberSuspects::tell_lost(std::uint32_t last) {
  x_lost = true;
  suggest_node(last, "is the last that has numbers of q and k");
  const ValueSite& at = site(node(last).site);
  return fmt::format("what is made of q and k behind line {} of {} is not followed", at.line,
                     std::filesystem::path(at.file).filename().string());
}

bool NumberSuspects::is_overrun(std::uint32_t n, std::uint32_t a, std::uint32_t b) const {
  if (a >= n || b >= n || !are_elements_of(a, 0, b, 2)) return false;
  for (std::uint32_t other = 1; other < x_graph.nodes.size(); ++other)
    if (node(other).site == node(n).site && x_terms[other].kind == TermKind::kScore) return true;
  return false;
}

}  // namespace attn_diag::lines
