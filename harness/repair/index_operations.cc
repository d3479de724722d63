// How an index is put together: terms, strides, quotients and what is left of them.
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "harness/repair/proposals.h"

namespace attn_diag::repair {
namespace {

using Kind = ExpressionKind;

bool is_binary(const Proposals& p, int i, std::string_view op) {
  const Expression& e = p.at(i);
  return e.kind == Kind::kBinary && e.parts.size() == 2 && p.op(e) == op;
}

// A sum of integers that is no part of another.
bool is_whole_sum(const Proposals& p, int i) {
  const Expression& e = p.at(i);
  return is_binary(p, i, "+") && !e.constant && p.is_integer_value(i) &&
         (e.parent < 0 || !is_binary(p, e.parent, "+"));
}

// From left to right.
std::vector<int> terms_of(const Proposals& p, int sum) {
  std::vector<int> terms, open = {sum};
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    if (is_binary(p, next, "+")) {
      open.push_back(p.at(next).parts[1]);
      open.push_back(p.at(next).parts[0]);
    } else {
      terms.push_back(next);
    }
  }
  return terms;
}

// a + b / n + c: a + (b + c) / n.
void moved_term(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    if (!is_whole_sum(p, i)) continue;
    const std::vector<int> terms = terms_of(p, i);
    for (const int into : terms) {
      const Expression& product = p.at(into);
      if (product.kind != Kind::kBinary || product.parts.size() != 2) continue;
      const std::string_view op = p.op(product);
      if (op != "/" && op != "%" && op != "*") continue;
      const Expression& left = p.at(product.parts[0]);
      const std::string inner = left.kind == Kind::kParenthesis && left.parts.size() == 1
                                    ? p.words(left.parts[0])
                                    : as_operand(p, product.parts[0]);
      for (const int moved : terms) {
        if (moved == into) continue;
        std::string text;
        for (const int term : terms) {
          if (term == moved) continue;
          if (!text.empty()) text += " + ";
          text += term == into ? fmt::format("({} + {}) {} {}", inner, p.words(moved), op,
                                             p.words(product.parts[1]))
                               : p.words(term);
        }
        p.replace(name, 0, i, text);
      }
    }
  }
}

// What the function multiplies integers by: names, members and numbers, each text once.
std::vector<int> factors_of(const Proposals& p) {
  std::vector<int> found;
  std::set<std::string> texts;
  for (int i = 0; i < p.num_expressions(); ++i) {
    if (!is_binary(p, i, "*") || p.at(i).constant || !p.is_integer_value(i)) continue;
    for (const int part : p.at(i).parts) {
      const Kind kind = p.at(part).kind;
      if (kind != Kind::kName && kind != Kind::kMember && kind != Kind::kNumber) continue;
      if (texts.insert(p.words(part)).second) found.push_back(part);
    }
  }
  return found;
}

// first + x * n + y: first + y * m + x, where something else is multiplied by m.
void transposed(Proposals& p, std::string_view name) {
  constexpr std::size_t kMany = 6;  // terms, and nobody's small slip
  const std::vector<int> factors = factors_of(p);
  for (int i = 0; i < p.num_expressions(); ++i) {
    if (!is_whole_sum(p, i)) continue;
    const std::vector<int> terms = terms_of(p, i);
    if (terms.size() > kMany) continue;
    for (const int product : terms) {
      if (!is_binary(p, product, "*")) continue;
      for (const int side : {0, 1}) {
        const int x = p.at(product).parts[static_cast<std::size_t>(side)];
        const int n = p.at(product).parts[static_cast<std::size_t>(1 - side)];
        if (p.at(x).kind == Kind::kNumber) continue;
        for (const int y : terms) {
          if (y == product || p.at(y).kind == Kind::kBinary || p.at(y).kind == Kind::kNumber)
            continue;
          for (const int m : factors) {
            const std::string factor = p.words(m);
            if (factor == p.words(n) || factor == p.words(x) || factor == p.words(y)) continue;
            if (!p.is_known_at(p.at(m), p.at(i).begin)) continue;
            std::string text;
            for (const int term : terms) {
              if (term == y) continue;
              if (!text.empty()) text += " + ";
              text += term == product
                          ? fmt::format("{} * {} + {}", as_operand(p, y), factor, as_operand(p, x))
                          : p.words(term);
            }
            p.replace(name, 1, i, text);
          }
        }
      }
    }
  }
}

// What counts something in the function: its parameters and constants, and members of structs, each text once.
std::vector<std::string> counts_at(const Proposals& p, std::size_t token) {
  std::vector<std::string> found;
  std::set<std::string> texts;
  for (const Variable* v : p.visible(token))
    if (is_count(v->type) && (v->statement < 0 || v->constant || v->is_const) &&
        texts.insert(v->name).second)
      found.push_back(v->name);
  for (int i = 0; i < p.num_expressions(); ++i) {
    const Expression& e = p.at(i);
    if (e.kind != Kind::kMember || e.constant || p.is_callee(i) || !p.is_count_value(i)) continue;
    if (e.parent >= 0 && p.at(e.parent).kind == Kind::kMember) continue;
    if (p.is_known_at(e, token) && texts.insert(p.words(e)).second) found.push_back(p.words(e));
  }
  return found;
}

// head % kv_heads: head / (heads / kv_heads), and back: neighbours that share something, or one in so many.
void other_grouping_of_heads(Proposals& p, std::string_view name) {
  for (int i = 0; i < p.num_expressions(); ++i) {
    const bool rest = is_binary(p, i, "%");
    if ((!rest && !is_binary(p, i, "/")) || p.at(i).constant || !p.is_count_value(i)) continue;
    const std::string_view other = rest ? "/" : "%";
    const std::string x = as_operand(p, p.at(i).parts[0]);
    int n = p.at(i).parts[1];
    const std::string divisor = as_operand(p, n);
    while (p.at(n).kind == Kind::kParenthesis && p.at(n).parts.size() == 1) n = p.at(n).parts[0];
    if (is_binary(p, n, "/"))
      p.replace(name, 0, i, fmt::format("{} {} {}", x, other, as_operand(p, p.at(n).parts[1])));
    for (const std::string& count : counts_at(p, p.at(i).begin))
      if (count != divisor && count != x)
        p.replace(name, 1, i, fmt::format("{} {} ({} / {})", x, other, count, divisor));
  }
}

constexpr Operation kIndexOperations[] = {
    {"term moved", moved_term},
    {"transposed", transposed},
    {"other grouping", other_grouping_of_heads},
};

}  // namespace

std::span<const Operation> index_operations() { return kIndexOperations; }

}  // namespace attn_diag::repair
