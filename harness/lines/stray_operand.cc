// Which of the two operands of a product is not where the other one is, or is no element at all.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/lines/number_suspects.h"

namespace attn_diag::lines {
namespace {

// Whether numbers go on in equal steps, and whenever they do not, begin anew.
bool go_on_steadily(const std::vector<unsigned>& numbers) {
  unsigned step = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] == numbers.front()) continue;
    if (numbers[i] <= numbers[i - 1]) return false;
    if (step == 0) step = numbers[i] - numbers[i - 1];
    if (numbers[i] != numbers[i - 1] + step) return false;
  }
  return step != 0;
}

// Whether they go up, in whatever steps, as those of a list that has the keys that are seen, and may begin anew.
bool go_up(const std::vector<unsigned>& numbers) {
  constexpr std::size_t kSome = 4;
  for (std::size_t i = 1; i < numbers.size(); ++i)
    if (numbers[i] < numbers[i - 1] && numbers[i] != numbers.front()) return false;
  return numbers.size() >= kSome && numbers.back() != numbers.front();
}

bool has_repeats(const std::vector<unsigned>& numbers) {
  return std::set<unsigned>(numbers.begin(), numbers.end()).size() < numbers.size();
}

// The keys, or columns, that a line multiplies with each other, in the order in which each thread comes to them.
class OperandSteps {
 public:
  struct OfThread {
    std::vector<unsigned> left, right;
  };

  void add(std::uint32_t thread, unsigned left, unsigned right) {
    OfThread& of = x_of[thread];
    // One step of many sums, as of a thread that has a tile of them.
    if (!of.left.empty() && of.left.back() == left && of.right.back() == right) return;
    of.left.push_back(left);
    of.right.push_back(right);
  }

  // The weight of a key meets a column of v.
  void add_column(std::uint32_t thread, unsigned key, unsigned column) {
    const auto [last, is_first] = x_last.try_emplace(thread, key, column);
    auto& [last_key, last_column] = last->second;
    if (is_first || key == last_key) return;
    ++x_keys;
    if (column - last_column == key - last_key) ++x_columns;
    last->second = {key, column};
  }

  // Whether v's column goes on with the keys, of three steps in four at least.
  bool is_transposed() const {
    constexpr int kMany = 3;
    return x_columns >= kMany && x_columns * 4 >= x_keys * 3;
  }

  // Where the thread takes a step or two alone, those of the one that takes the most, which say more.
  OfThread of(std::uint32_t thread) const {
    constexpr std::size_t kFew = 2;
    auto found = x_of.find(thread);
    if (found == x_of.end() || found->second.left.size() <= kFew)
      found = std::max_element(x_of.begin(), x_of.end(), [](const auto& a, const auto& b) {
        return a.second.left.size() < b.second.left.size();
      });
    return found == x_of.end() ? OfThread() : found->second;
  }

 private:
  std::map<std::uint32_t, OfThread> x_of;
  std::map<std::uint32_t, std::pair<unsigned, unsigned>> x_last;  // key and column
  int x_keys = 0, x_columns = 0;
};

}  // namespace

std::optional<unsigned> NumberSuspects::only_key_of(const Term& term) const {
  if (term.kind == TermKind::kElement) return x_attention.key_of(term.row);
  if (term.kind != TermKind::kWeight || x_terms.keys().count(term.set) != 1) return std::nullopt;
  for (unsigned j = 0; j < x_terms.keys().size(); ++j)
    if (x_terms.keys().has(term.set, j)) return j;
  return std::nullopt;
}

NumberSuspects::Strays NumberSuspects::strays(std::uint32_t at, Ill ill) const {
  if (x_graph.whole_blocks || (ill != Ill::kKeys && ill != Ill::kColumns)) return Strays::kNothing;
  OperandSteps steps;
  const auto add = [&](std::uint32_t where, std::uint32_t a, std::uint32_t b) {
    const Term &left = x_terms[a], &right = x_terms[b];
    const bool left_is_weight = left.kind == TermKind::kWeight;
    if (left.kind != TermKind::kElement && right.kind != TermKind::kElement) return;
    if (ill == Ill::kColumns) {
      if (left.kind == right.kind) steps.add(where, left.column, right.column);
      return;
    }
    const std::optional<unsigned> of_left = only_key_of(left), of_right = only_key_of(right);
    if (!of_left || !of_right) return;
    steps.add(where, *of_left, *of_right);
    if (left.kind != right.kind)
      steps.add_column(where, left_is_weight ? *of_left : *of_right,
                       (left_is_weight ? right : left).column);
  };
  const std::uint32_t where = node(at).where;
  if (op(at) == ValueOp::kProduct) {
    // All that goes into one element of a product of matrices is of one row on the left, and of one column on the right.
    std::array<std::set<std::uint32_t>, 2> lines;
    for (const auto& [a, b] : x_graph.pairs_of(node(at))) {
      add(where, a, b);
      const Term &first = x_terms[a], &second = x_terms[b];
      if (first.kind == TermKind::kElement || first.kind == TermKind::kWeight)
        lines[0].insert(first.row);
      if (second.kind == TermKind::kElement)
        lines[1].insert(second.buffer == 2 ? second.column : second.row);
    }
    if ((lines[0].size() > 1) != (lines[1].size() > 1))
      return lines[1].size() > 1 ? Strays::kRight : Strays::kLeft;
    // No column, or key, goes into it twice.
    const auto [left, right] = steps.of(where);
    if (has_repeats(left) != has_repeats(right))
      return has_repeats(right) ? Strays::kRight : Strays::kLeft;
  } else {
    for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
      if (op(n) == op(at) && is_same_line(node(n).site, node(at).site))  // unrolled, many sites
        add(node(n).where, node(n).operand[0], node(n).operand[1]);
  }
  if (ill == Ill::kKeys && steps.is_transposed())
    return x_terms[operands_of(at).first].kind == TermKind::kWeight ? Strays::kRight
                                                                    : Strays::kLeft;
  const auto [left, right] = steps.of(where);
  const bool left_goes_on = go_on_steadily(left), right_goes_on = go_on_steadily(right);
  if (left_goes_on != right_goes_on) return left_goes_on ? Strays::kRight : Strays::kLeft;
  const bool left_goes_up = go_up(left), right_goes_up = go_up(right);
  if (left_goes_up == right_goes_up) return used_rightly(at);
  return left_goes_up ? Strays::kRight : Strays::kLeft;
}

NumberSuspects::Shift NumberSuspects::shift_of(std::uint32_t at, Ill ill) const {
  if (x_graph.whole_blocks || (ill != Ill::kKeys && ill != Ill::kColumns)) return Shift::kNone;
  using Shifts = std::vector<int>;
  constexpr std::size_t kFew = 16;
  const auto add = [&](std::uint32_t a, std::uint32_t b, Shifts& out) {
    const Term &left = x_terms[a], &right = x_terms[b];
    if (ill == Ill::kColumns) {
      if (left.kind != TermKind::kElement || right.kind != TermKind::kElement) return false;
      out.push_back(static_cast<int>(right.column) - static_cast<int>(left.column));
      return true;
    }
    // Behind the last key another head begins.
    const auto& [weight, v] =
        left.kind == TermKind::kWeight ? std::tie(left, right) : std::tie(right, left);
    if (weight.kind != TermKind::kWeight || v.kind != TermKind::kElement ||
        !x_attention.same_head(weight.row, v.row))
      return false;
    const std::optional<unsigned> of_weight = only_key_of(weight), of_v = only_key_of(v);
    if (!of_weight || !of_v) return false;
    out.push_back(static_cast<int>(*of_v) - static_cast<int>(*of_weight));
    return true;
  };
  std::map<std::uint32_t, Shifts> of_thread;
  std::set<std::uint32_t> in_steps;  // threads that take more than one
  bool any = false;
  std::size_t told = 0;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (op(n) != op(at) || !is_same_line(node(n).site, node(at).site)) continue;
    Shifts shifts;
    bool known = true;
    if (op(n) == ValueOp::kProduct) {
      for (const auto& [a, b] : x_graph.pairs_of(node(n))) known = known && add(a, b, shifts);
    } else {
      known = add(node(n).operand[0], node(n).operand[1], shifts);
    }
    // What is no element, as a weight of a row behind the last, says nothing.
    if (!known || shifts.empty()) continue;
    ++told;
    any = any || std::any_of(shifts.begin(), shifts.end(), [](int shift) { return shift != 0; });
    const auto [found, is_new] = of_thread.try_emplace(node(n).where, shifts);
    if (!is_new && found->second != shifts) return Shift::kOfSteps;
    if (!is_new) in_steps.insert(node(n).where);
  }
  if (!any || in_steps.empty() || told < kFew) return Shift::kNone;
  std::map<std::uint32_t, Shifts> of_block;
  for (const auto& [where, shifts] : of_thread)
    if (const auto [found, is_new] = of_block.try_emplace(where >> 10, shifts);
        !is_new && found->second != shifts)
      return Shift::kOfThreads;
  // One that is split among lanes, as a product of matrices, is apart in itself.
  const Shifts& first = of_block.begin()->second;
  return std::any_of(first.begin(), first.end(), [&](int shift) { return shift != first.front(); })
             ? Shift::kOfThreads
             : Shift::kOfBlock;
}

bool NumberSuspects::fits_mostly(std::uint32_t at, Ill ill) const {
  if (x_graph.whole_blocks || op(at) == ValueOp::kProduct) return false;
  std::size_t fitting = 0, count = 0;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (op(n) != op(at) || node(n).where != node(at).where ||
        !is_same_line(node(n).site, node(at).site))
      continue;
    const Term &left = x_terms[node(n).operand[0]], &right = x_terms[node(n).operand[1]];
    if (ill == Ill::kColumns) {
      if (left.kind != TermKind::kElement || right.kind != TermKind::kElement) continue;
      fitting += left.column == right.column;
    } else {
      const std::optional<unsigned> of_left = only_key_of(left), of_right = only_key_of(right);
      if (!of_left || !of_right) continue;
      fitting += *of_left == *of_right;
    }
    ++count;
  }
  return 2 * fitting > count;
}

NumberSuspects::Strays NumberSuspects::used_rightly(std::uint32_t at) const {
  if (op(at) != ValueOp::kProduct) return Strays::kNothing;
  const auto [a, b] = operands_of(at);
  bool left = false, right = false;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (op(n) != ValueOp::kProduct || x_terms[n].kind == TermKind::kIll) continue;
    for (const host::ValuePair& pair : x_graph.pairs_of(node(n))) {
      left = left || pair.left == a;
      right = right || pair.right == b;
    }
  }
  if (left == right) return Strays::kNothing;
  return left ? Strays::kRight : Strays::kLeft;
}

bool NumberSuspects::suggest_mask_of_others(std::uint32_t at, std::uint32_t row) {
  // A row that is whole, and takes what is no element there as well.
  std::set<std::uint32_t> rows;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n) {
    if (op(n) != op(at) || !is_same_line(node(n).site, node(at).site)) continue;
    for (unsigned i = 0; i < 2; ++i) {
      const std::uint32_t q = node(n).operand[i], number = node(n).operand[1 - i];
      if (q != 0 && q < n && number != 0 && number < n && x_terms[q].kind == TermKind::kElement &&
          x_terms[q].buffer == 0 && x_terms[q].row != row &&
          x_terms[number].kind == TermKind::kNumber && node(number).value != 0)
        rows.insert(x_terms[q].row);
    }
  }
  if (std::none_of(rows.begin(), rows.end(),
                   [&](std::uint32_t other) { return has_all_weights(other); }))
    return false;
  for (std::uint32_t n = 1; n < x_graph.nodes.size(); ++n)
    if (op(n) == ValueOp::kAdd && node(n).value == -INFINITY) {
      const std::string why = "hides what is no key in other rows";
      x_out.what += "; other rows hide what is no key";
      suggest_node(n, why);
      for (const std::uint32_t operand : {node(n).operand[0], node(n).operand[1]})
        if (operand != 0 && operand < n && node(operand).value == -INFINITY)
          suggest_moves_with_indices(operand, why);
      return true;
    }
  return false;
}

void NumberSuspects::suspect_foreign_factor(const Cause& cause) {
  if (x_graph.whole_blocks) return;
  // What is multiplied there: of matrices, all pairs.
  const auto pairs_of = [&](std::uint32_t n) {
    std::vector<host::ValuePair> pairs;
    if (op(n) == ValueOp::kMultiply || op(n) == ValueOp::kFma)
      pairs.push_back({node(n).operand[0], node(n).operand[1]});
    if (op(n) == ValueOp::kProduct)
      for (const host::ValuePair& pair : x_graph.pairs_of(node(n))) pairs.push_back(pair);
    return pairs;
  };
  // The element that another thread, or another step, multiplies there.
  std::map<std::pair<std::uint32_t, unsigned>, std::uint32_t> known;  // by site
  const auto taken_elsewhere = [&](std::uint32_t at, unsigned buffer) -> std::uint32_t {
    const auto [place, is_new] = known.try_emplace({node(at).site, buffer});
    for (std::uint32_t n = 1; is_new && n < x_graph.nodes.size(); ++n)
      if (op(n) == op(at) && is_same_line(node(n).site, node(at).site))
        for (const auto& [a, b] : pairs_of(n))
          for (const std::uint32_t one : {a, b})
            if (one != 0 && one < n && x_terms[one].kind == TermKind::kElement &&
                x_terms[one].buffer == buffer)
              return place->second = one;
    return place->second;
  };
  const auto suspect = [&](std::uint32_t n, std::uint32_t number, std::uint32_t other) {
    if (number == 0 || other == 0 || number >= n || other >= n) return false;
    const Term& term = x_terms[other];
    const bool of_k = term.kind == TermKind::kElement && term.buffer == 0;
    const bool of_v = term.kind == TermKind::kWeight && term.column == kNone;
    if (x_terms[number].kind != TermKind::kNumber || node(number).value == 0 || !(of_k || of_v))
      return false;
    const std::uint32_t element = taken_elsewhere(n, of_k ? 1 : 2);
    if (element == 0) return false;
    if (of_k && suggest_mask_of_others(n, cause.row)) return true;
    // One too many: what lets it through is at fault, not where it was read.
    if (has_all_weights(cause.row)) return true;
    const char* const input = of_k ? "k" : "v";
    x_out.what = fmt::format("multiplies {} with {:.5g}, which is no element of {}",
                             term_text(other), node(number).value, input);
    const std::string why = fmt::format("reads what is no element of {}", input);
    // An array of the thread's or the block's own was filled elsewhere; of a number that was loaded to it nothing is kept.
    const ValueSite& at = site(node(number).site);
    const int declared = x_text.declared_above(at.file, at.line, at.variable);
    const std::vector<std::string> arrays =
        declared == 0 ? std::vector<std::string>()
                      : indexed_names(x_text.statement(at.file, declared));
    const bool is_known = is_load(number) && op(n) != ValueOp::kProduct &&
                          (made_by(number) != number ||
                           std::find(arrays.begin(), arrays.end(), at.variable) == arrays.end());
    const std::uint32_t from = is_known ? number : element;
    // Other blocks read what they should: what is there of the block.
    const std::uint32_t load = input_of(from);
    if (const std::uint32_t s = node(load).site; s != 0) {
      // "page = table[i]", and it is a page of nobody.
      const std::vector<NamedLine> uses = variables_in(site(s).uses, ',');
      std::vector<std::string> entries;
      for (const NamedLine& use : uses) {
        const std::string& text = text_of(s, use);
        const std::vector<std::string> made = assigned_names(text);
        if (use.line == site(s).line || is_loop(text) ||
            std::find(made.begin(), made.end(), use.name) == made.end())
          continue;
        for (const std::string& array : indexed_names(text))
          for (const std::string& name : subscript_names(text, array)) entries.push_back(name);
      }
      std::vector<NamedLine> of_table = uses, of_block = uses;
      std::erase_if(of_table, [&](const NamedLine& use) { return !has_name(use.name, entries); });
      suggest_computed(s, of_table,
                       fmt::format("makes the index of a table, by which it reads "
                                   "what is no element of {}",
                                   input));
      std::erase_if(of_block, [](const NamedLine& use) { return !comes_of(use, "xyz"); });
      suggest_computed(s, of_block,
                       fmt::format("makes the place of what is no element of {}", input));
      suggest_node(load, why);
      suggest_indices(s, why);
    }
    suggest_moves_with_indices(from, why);
    return true;
  };
  constexpr std::size_t kMost = 256;
  std::vector<std::uint32_t> left = {cause.node};
  std::set<std::uint32_t> seen;
  while (!left.empty() && seen.size() < kMost) {
    const std::uint32_t n = left.back();
    left.pop_back();
    if (n == 0 || node(n).site == 0 || node(n).is_input() || !seen.insert(n).second) continue;
    for (const auto& [a, b] : pairs_of(n))
      if (suspect(n, a, b) || suspect(n, b, a)) return;
    if (op(n) == ValueOp::kProduct) continue;
    for (const std::uint32_t operand : operands(n)) left.push_back(operand);
  }
}

}  // namespace attn_diag::lines
