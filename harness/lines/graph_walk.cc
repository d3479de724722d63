#include "harness/lines/graph_walk.h"

#include <fmt/format.h>

#include "harness/base/index_ranges.h"

namespace attn_diag::lines {

host::ValueOp Walk::op(std::uint32_t n) const {
  return node(n).site == 0 ? ValueOp::kBits : site(node(n).site).op;
}

bool Walk::is_load(std::uint32_t n) const {
  return op(n) == ValueOp::kLoad || op(n) == ValueOp::kLoadNumber;
}

unsigned Walk::num_seen(std::uint32_t row) const {
  unsigned seen = 0;
  for (unsigned j = 0; j < x_terms.keys().size(); ++j)
    if (x_attention.visible(row, j)) ++seen;
  return seen;
}

std::uint32_t Walk::key_row(std::uint32_t row, unsigned key) const {
  const auto sk = static_cast<std::uint32_t>(x_attention.problem().seqlen_k);
  std::uint32_t first = 0;
  while (!x_attention.same_head(row, first)) first += sk;
  return first + key;
}

std::uint32_t Walk::store_of(const host::ValueOutput& output) const {
  // The kernel's, where code of the host only converts what that stored.
  if (x_graph.whole_blocks) {
    const std::uint32_t made = output.node == 0 ? 0 : made_by(output.node);
    for (std::uint32_t n = output.node; n != made && node(n).site != 0; n = node(n).operand[0])
      if (op(n) == ValueOp::kStore && (node(n).where >> 10) != 0) return node(n).site;
    return output.site;
  }
  const bool copied = output.site != 0 && site(output.site).line == 0;
  return copied && op(output.node) == ValueOp::kStore ? node(output.node).site : output.site;
}

std::uint32_t Walk::made_by(std::uint32_t n) const {
  for (;;) {
    const ValueOp is = op(n);
    const bool moved = node(n).site != 0 && !node(n).is_input() && node(n).operand[0] != 0 &&
                       (is == ValueOp::kStore || is == ValueOp::kLoad ||
                        is == ValueOp::kLoadNumber || is == ValueOp::kRound ||
                        is == ValueOp::kPick || (is == ValueOp::kBits && node(n).operand[1] == 0));
    if (!moved) return n;
    n = node(n).operand[0];
  }
}

std::uint32_t Walk::chosen_instead(std::uint32_t n) const {
  constexpr std::size_t kMost = 64;
  const auto is_number = [&](std::uint32_t of) {
    return of != 0 && of < x_graph.nodes.size() && x_terms[of].kind == TermKind::kNumber;
  };
  std::vector<std::uint32_t> pending;
  if (is_number(n)) pending.push_back(n);
  for (std::size_t i = 0; i < pending.size() && i < kMost; ++i) {
    const std::uint32_t at = pending[i];
    const ValueOp is = op(at);
    if (node(at).site == 0 || node(at).is_input() || is == ValueOp::kProduct ||
        is == ValueOp::kMaximum || is == ValueOp::kMinimum)
      continue;
    if (is == ValueOp::kPick) {
      const std::uint32_t other = node(at).operand[1];
      if (other != 0 && other < at &&
          (x_terms[other].kind == TermKind::kScore || x_terms[other].kind == TermKind::kWeight))
        return at;
      if (is_number(node(at).operand[0])) pending.push_back(node(at).operand[0]);
      continue;
    }
    for (const std::uint32_t operand : operands(at))
      if (is_number(operand)) pending.push_back(operand);
  }
  return 0;
}

std::string Walk::place_of(std::uint32_t n) const {
  if (x_graph.whole_blocks)
    return node(n).where == 0 ? std::string("the host")
                              : fmt::format("program {}", (node(n).where >> 10) - 1);
  return fmt::format("block {}, thread {}", node(n).where >> 10, node(n).where & 1023);
}

std::string Walk::query_text(std::uint32_t row) const {
  const Problem& p = x_attention.problem();
  const std::uint32_t head = row / static_cast<std::uint32_t>(p.seqlen_q);
  std::string text = fmt::format("query {}", x_attention.query_of(row));
  if (p.batch * p.heads > 1)
    text = fmt::format("batch {}, head {}, {}", head / static_cast<std::uint32_t>(p.heads),
                       head % static_cast<std::uint32_t>(p.heads), text);
  return text;
}

std::string Walk::keys_text(const std::vector<unsigned>& keys) {
  std::vector<std::int64_t> numbers(keys.begin(), keys.end());
  return (keys.size() == 1 ? "key " : "keys ") + index_ranges(numbers);
}

std::string Walk::term_text(std::uint32_t n) const {
  constexpr const char* kRows[] = {"q of query", "k of key", "v of key"};
  const Term& term = x_terms[n];
  const auto keys = [&] {
    std::vector<unsigned> all;
    for (unsigned j = 0; j < x_terms.keys().size(); ++j)
      if (x_terms.keys().has(term.set, j)) all.push_back(j);
    return keys_text(all);
  };
  const unsigned count = term.kind == TermKind::kScore ? x_terms.columns().count(term.set) : 0;
  switch (term.kind) {
    case TermKind::kElement:
      return fmt::format(
          "{} {}, column {}", kRows[term.buffer],
          term.buffer == 0 ? x_attention.query_of(term.row) : x_attention.key_of(term.row),
          term.column);
    case TermKind::kScore:
      return fmt::format(
          "{} of query {} and key {}",
          count == x_terms.columns().size()
              ? std::string("the score")
              : fmt::format("{} of {} columns of the score", count, x_terms.columns().size()),
          x_attention.query_of(term.row), x_attention.key_of(term.column));
    case TermKind::kWeight:
      return fmt::format(
          "{} {}{} relative to {:.5g}",
          x_terms.keys().count(term.set) == 1 ? "the weight of" : "the sum over", keys(),
          term.column == kNone ? "" : fmt::format(" times column {} of v", term.column), term.x);
    case TermKind::kInverse:
      return "1 / l";
    case TermKind::kLog:
      return "ln l";
    default:
      return fmt::format("{:.5g}", node(n).value);
  }
}

std::string Walk::head_text(std::uint32_t n) const {
  const Term& term = x_terms[n];
  const bool of_keys = term.kind == TermKind::kElement && term.buffer != 0;
  const bool of_row = term.kind == TermKind::kElement || term.kind == TermKind::kScore ||
                      term.kind == TermKind::kWeight;
  const Problem& p = x_attention.problem();
  const auto heads = static_cast<std::uint32_t>(of_keys ? p.kv_heads : p.heads);
  if (!of_row || static_cast<std::uint32_t>(p.batch) * heads == 1) return "";
  const std::uint32_t head =
      term.row / static_cast<std::uint32_t>(of_keys ? p.seqlen_k : p.seqlen_q);
  return fmt::format(" of batch {}, {} {}", head / heads, of_keys ? "KV head" : "head",
                     head % heads);
}

std::uint32_t Walk::input_of(std::uint32_t n) const {
  n = made_by(n);
  for (int steps = 0; steps < 64 && !node(n).is_input(); ++steps) {
    std::uint32_t next = 0;
    for (const std::uint32_t operand : operands(n))
      if (x_terms[operand].kind == TermKind::kElement) next = operand;
    if (next == 0) break;
    n = made_by(next);
  }
  return n;
}

std::uint32_t Walk::load_of(std::uint32_t n) const {
  const std::uint32_t input = input_of(n);
  if (!node(input).is_input()) return 0;
  if (!x_graph.whole_blocks || node(input).where >> 10 != 0) return input;
  for (int steps = 0; steps < 64 && n != input && node(n).site != 0; ++steps) {
    if (is_load(n) && node(n).where >> 10 != 0) return n;
    const std::uint32_t next = first_operand(n, TermKind::kElement);
    if (next == 0) break;
    n = next;
  }
  return input;
}

std::pair<std::uint32_t, std::uint32_t> Walk::operands_of(std::uint32_t n) const {
  if (op(n) != ValueOp::kProduct) return {node(n).operand[0], node(n).operand[1]};
  std::pair<std::uint32_t, std::uint32_t> last = {0, 0};
  for (const auto& [left, right] : x_graph.pairs_of(node(n))) {
    last = {left, right};
    const Term &a = x_terms[left], &b = x_terms[right];
    if (a.kind == TermKind::kElement && b.kind == TermKind::kElement && a.column != b.column) break;
    if (a.kind == TermKind::kWeight && b.kind == TermKind::kElement &&
        (x_terms.keys().count(a.set) != 1 || !x_terms.keys().has(a.set, x_attention.key_of(b.row))))
      break;
    if (a.kind == TermKind::kElement && b.kind == TermKind::kWeight) break;
  }
  return last;
}

}  // namespace attn_diag::lines
