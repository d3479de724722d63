// Operators and what they are applied to.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "harness/repair/proposals.h"

namespace attn_diag::repair {
namespace {

using Kind = ExpressionKind;
using Names = std::span<const std::string_view>;

constexpr std::string_view kRelations[] = {"<", "<=", ">", ">=", "==", "!="};
constexpr std::string_view kSums[] = {"+", "-", "*", "/", "%"};
constexpr std::string_view kBits[] = {"&", "|", "^"};
constexpr std::string_view kShifts[] = {"<<", ">>"};

bool is_one_of(std::string_view op, Names names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}
bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

template <class Visit>
void for_each(const Proposals& p, Kind kind, const Visit& visit) {
  for (int i = 0; i < p.num_expressions(); ++i)
    if (p.at(i).kind == kind) visit(i, p.at(i));
}

std::size_t op_end(const Proposals& p, const Expression& e) {
  return e.op +
         (p.op(e).starts_with(">") && p.op(e).size() > p.code().token(e.op).text.size() ? 2 : 1);
}

bool is_pointer(const Proposals& p, int i) {
  const std::string type = p.type(i);
  return type.ends_with('*') || type.ends_with(']');
}
bool has_pointer(const Proposals& p, const Expression& e) {
  return std::any_of(e.parts.begin(), e.parts.end(), [&](int part) { return is_pointer(p, part); });
}

// a < b, a <= b, ...
void other_relation(Proposals& p, std::string_view name) {
  for_each(p, Kind::kBinary, [&](int i, const Expression& e) {
    if (!is_relation(p.op(e))) return;
    for (const std::string_view other : kRelations)
      if (other != p.op(e)) p.replace(name, 0, i, e.op, op_end(p, e), std::string(other));
  });
}

void other_arithmetic(Proposals& p, std::string_view name) {
  for_each(p, Kind::kBinary, [&](int i, const Expression& e) {
    const std::string_view op = p.op(e);
    const bool pointer = has_pointer(p, e);
    for (const Names group : {Names(kSums), Names(kBits), Names(kShifts)}) {
      if (!is_one_of(op, group)) continue;
      for (const std::string_view other : group) {
        if (other == op || (other == "%" && p.is_real_value(i))) continue;
        if (pointer && other != "+" && other != "-") continue;
        // x * 1 is x, which "operand dropped" says shorter.
        if (p.words(e.parts.back()) == "1" && (other == "*" || other == "/")) continue;
        p.replace(name, 0, i, e.op, op_end(p, e), std::string(other));
      }
    }
    if (op == "&" || op == "%") p.replace(name, 1, i, e.op, op_end(p, e), op == "&" ? "%" : "&");
    if (op == "<<" || op == ">>") p.replace(name, 1, i, e.op, op_end(p, e), op == "<<" ? "*" : "/");
  });
}

void other_logic(Proposals& p, std::string_view name) {
  for_each(p, Kind::kBinary, [&](int i, const Expression& e) {
    if (p.op(e) == "&&") p.replace(name, 0, i, e.op, e.op + 1, "||");
    if (p.op(e) == "||") p.replace(name, 0, i, e.op, e.op + 1, "&&");
  });
}

// a * b: a, b. In a && b this drops a guard.
void dropped_operand(Proposals& p, std::string_view name) {
  for_each(p, Kind::kBinary, [&](int i, const Expression& e) {
    if (e.parts.size() != 2) return;
    for (const int part : e.parts)
      if (is_pointer(p, part) || !has_pointer(p, e)) p.replace(name, 0, i, p.words(part));
  });
}

// a - b: b - a.
void swapped_operands(Proposals& p, std::string_view name) {
  for_each(p, Kind::kBinary, [&](int i, const Expression& e) {
    if (e.parts.size() != 2 || !is_one_of(p.op(e), {"-", "/", "%", "<<", ">>"})) return;
    if (has_pointer(p, e)) return;
    p.replace(
        name, 0, i,
        fmt::format("{} {} {}", as_operand(p, e.parts[1]), p.op(e), as_operand(p, e.parts[0])));
  });
}

// a * b + c: c * b + a, a * c + b.
void swapped_terms(Proposals& p, std::string_view name) {
  for_each(p, Kind::kBinary, [&](int i, const Expression& e) {
    if (e.parts.size() != 2 || p.op(e) != "+" || has_pointer(p, e)) return;
    for (const std::size_t side : {0, 1}) {
      const Expression& product = p.at(e.parts[side]);
      if (product.kind != Kind::kBinary || p.op(product) != "*" || product.parts.size() != 2)
        continue;
      const std::string a = as_operand(p, product.parts[0]), b = as_operand(p, product.parts[1]);
      const std::string c = as_operand(p, e.parts[1 - side]);
      for (const auto& [first, factor, last] : {std::array{c, b, a}, std::array{a, c, b}})
        p.replace(name, 0, i,
                  side == 0 ? fmt::format("{} * {} + {}", first, factor, last)
                            : fmt::format("{} + {} * {}", last, first, factor));
    }
  });
}

// a + b * c: (a + b) * c, and back.
void other_grouping(Proposals& p, std::string_view name) {
  for_each(p, Kind::kBinary, [&](int i, const Expression& e) {
    if (e.parts.size() != 2 || has_pointer(p, e)) return;
    const std::string_view op = p.op(e);
    for (const std::size_t side : {0, 1}) {
      int inner = e.parts[side];
      const int other = e.parts[1 - side];
      const bool grouped = p.at(inner).kind == Kind::kParenthesis && p.at(inner).parts.size() == 1;
      if (grouped) inner = p.at(inner).parts[0];
      const Expression& in = p.at(inner);
      if (in.kind != Kind::kBinary || in.parts.size() != 2) continue;
      const std::string_view in_op = p.op(in);
      const bool sums = is_one_of(op, {"+", "-"}), in_sums = is_one_of(in_op, {"+", "-"});
      if (sums == in_sums || !is_one_of(op, kSums) || !is_one_of(in_op, kSums)) continue;
      const std::string a = as_operand(p, in.parts[0]), b = as_operand(p, in.parts[1]);
      const std::string c = as_operand(p, other);
      if (grouped)
        p.replace(name, 0, i,
                  side == 0 ? fmt::format("{} {} {} {} {}", a, in_op, b, op, c)
                            : fmt::format("{} {} {} {} {}", c, op, a, in_op, b));
      else
        p.replace(name, 0, i,
                  side == 0 ? fmt::format("{} {} ({} {} {})", a, in_op, b, op, c)
                            : fmt::format("({} {} {}) {} {}", c, op, a, in_op, b));
    }
  });
}

void other_assignment(Proposals& p, std::string_view name) {
  for_each(p, Kind::kAssignment, [&](int i, const Expression& e) {
    const std::string_view op = p.op(e);
    std::vector<std::string_view> others = {"=", "+=", "-=", "*=", "/="};
    const bool real = p.is_real_value(i) || (e.parts.size() == 2 && p.is_real_value(e.parts[1]));
    if (is_one_of(op, {">>=", "<<=", "/=", "*="}) && !real)
      others = {">>=", "<<=", "/=", "*=", "+=", "-="};
    if (is_pointer(p, e.parts[0])) others = {"+=", "-="};
    if (is_one_of(op, {"&=", "|=", "^="})) others = {"&=", "|=", "^=", "="};
    for (const std::string_view other : others)
      if (other != op) p.replace(name, 0, i, e.op, op_end(p, e), std::string(other));
  });
}

// c ? a : b
void other_choice(Proposals& p, std::string_view name) {
  for_each(p, Kind::kConditional, [&](int i, const Expression& e) {
    if (e.parts.size() != 3) return;
    p.replace(name, 0, i, p.words(e.parts[1]));
    p.replace(name, 0, i, p.words(e.parts[2]));
    p.replace(
        name, 0, i,
        fmt::format("{} ? {} : {}", p.words(e.parts[0]), p.words(e.parts[2]), p.words(e.parts[1])));
  });
}

// -x: x; !x: x.
void dropped_sign(Proposals& p, std::string_view name) {
  for_each(p, Kind::kPrefix, [&](int i, const Expression& e) {
    const std::string_view op = p.op(e);
    if (op == "-" || op == "!" || op == "~") p.replace(name, 0, i, p.words(e.parts[0]));
    if (op == "++" || op == "--") p.replace(name, 0, i, e.op, e.op + 1, op == "++" ? "--" : "++");
  });
  for_each(p, Kind::kPostfix, [&](int i, const Expression& e) {
    p.replace(name, 0, i, e.op, e.op + 1, p.op(e) == "++" ? "--" : "++");
  });
}

// (size_t)i * n: i * n.
void dropped_cast(Proposals& p, std::string_view name) {
  for_each(p, Kind::kCast, [&](int i, const Expression& e) {
    if (e.parts.size() == 1) p.replace(name, 1, i, p.words(e.parts[0]));
  });
}

// i * n: (long long)i * n, where the product leaves the range of int.
void wider_product(Proposals& p, std::string_view name) {
  for_each(p, Kind::kBinary, [&](int i, const Expression& e) {
    if (p.op(e) != "*" || e.parts.size() != 2 || !p.is_integer_value(i)) return;
    p.replace(
        name, 2, i,
        fmt::format("(long long){} * {}", as_operand(p, e.parts[0]), as_operand(p, e.parts[1])));
  });
}

// a[i][j]: a[j][i].
void swapped_indices(Proposals& p, std::string_view name) {
  for_each(p, Kind::kIndex, [&](int i, const Expression& e) {
    if (e.parts.size() != 2 || p.at(e.parts[0]).kind != Kind::kIndex) return;
    const Expression& inner = p.at(e.parts[0]);
    if (inner.parts.size() != 2) return;
    p.replace(name, 0, i,
              fmt::format("{}[{}][{}]", p.words(inner.parts[0]), p.words(e.parts[1]),
                          p.words(inner.parts[1])));
  });
}

// o += p: o = o * alpha + p, with each real number at hand: a sum that is not rescaled.
void rescaled_sum(Proposals& p, std::string_view name) {
  for_each(p, Kind::kAssignment, [&](int i, const Expression& e) {
    if (p.op(e) != "+=" || e.parts.size() != 2) return;
    const std::string target = p.words(e.parts[0]), added = as_operand(p, e.parts[1]);
    if (!p.is_real_value(e.parts[0])) return;
    for (const Variable* v : p.visible(e.begin))
      if (is_real(v->type) && v->name != target)
        p.replace(name, 1, i, fmt::format("{0} = {0} * {1} + {2}", target, v->name, added));
  });
}

constexpr Operation kExpressionOperations[] = {
    {"relational operator", other_relation},
    {"arithmetic operator", other_arithmetic},
    {"logical operator", other_logic},
    {"operand dropped", dropped_operand},
    {"operands swapped", swapped_operands},
    {"terms swapped", swapped_terms},
    {"grouping", other_grouping},
    {"assignment operator", other_assignment},
    {"choice", other_choice},
    {"sign", dropped_sign},
    {"cast dropped", dropped_cast},
    {"wider product", wider_product},
    {"indices swapped", swapped_indices},
    {"sum rescaled", rescaled_sum},
};

}  // namespace

std::span<const Operation> expression_operations() { return kExpressionOperations; }

}  // namespace attn_diag::repair
