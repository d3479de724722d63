// Expressions, by the strength of operators.
#include <array>
#include <utility>

#include "harness/repair/parser.h"

namespace attn_diag::repair {
namespace {

constexpr int kMostDeep = 120;  // nested expressions: more is nobody's kernel

struct Strength {
  std::string_view op;
  int strength;
};
constexpr std::array<Strength, 19> kBinary = {{{"||", 1},
                                               {"&&", 2},
                                               {"|", 3},
                                               {"^", 4},
                                               {"&", 5},
                                               {"==", 6},
                                               {"!=", 6},
                                               {"<", 7},
                                               {">", 7},
                                               {"<=", 7},
                                               {">=", 7},
                                               {"<<", 8},
                                               {">>", 8},
                                               {"+", 9},
                                               {"-", 9},
                                               {"*", 10},
                                               {"/", 10},
                                               {"%", 10},
                                               {"<=>", 7}}};

int strength_of(std::string_view op) {
  for (const Strength& row : kBinary)
    if (row.op == op) return row.strength;
  return 0;
}

bool is_assignment(std::string_view op) {
  return op == "=" || op == "+=" || op == "-=" || op == "*=" || op == "/=" || op == "%=" ||
         op == "&=" || op == "|=" || op == "^=" || op == "<<=" || op == ">>=";
}

// Words that only a type has.
bool is_type_word(const Token& t) {
  return t.is_any({"unsigned", "signed",        "long",           "short",  "int",    "char",
                   "float",    "double",        "bool",           "void",   "const",  "volatile",
                   "struct",   "typename",      "size_t",         "half",   "__half", "half2",
                   "__half2",  "__nv_bfloat16", "__nv_bfloat162", "float2", "float4", "int4",
                   "uint4",    "int2",          "uint2"}) ||
         t.text.ends_with("_t");
}

}  // namespace

bool Parser::is_variable(std::string_view name) const {
  for (const Variable& v : x_function.variables)
    if (v.name == name) return true;
  return false;
}

int Parser::add(ExpressionKind kind, std::size_t begin, std::size_t end, std::size_t op,
                std::vector<int> parts) {
  const int self = static_cast<int>(x_function.expressions.size());
  for (const int part : parts)
    if (part >= 0) x_function.expressions[static_cast<std::size_t>(part)].parent = self;
  std::erase(parts, -1);
  Expression e;
  e.kind = kind;
  e.begin = begin;
  e.end = end;
  e.op = op;
  e.parts = std::move(parts);
  e.statement = x_statement;
  e.constant = x_constant;
  x_function.expressions.push_back(std::move(e));
  return self;
}

int Parser::expression(Range range, int statement) {
  if (range.begin >= range.end) return -1;
  const std::size_t at = std::exchange(x_at, range.begin), end = std::exchange(x_end, range.end);
  const int outer = std::exchange(x_statement, statement);
  std::vector<int> parts;
  while (x_at < x_end) {
    const std::size_t before = x_at;
    const int part = conditional();
    if (part >= 0) parts.push_back(part);
    if (x_at < x_end && x_syntax.is(x_at, ",")) {
      ++x_at;
      continue;
    }
    if (x_at >= x_end || x_at == before) break;
    ++x_at;  // what is no part of an expression
    break;
  }
  int root = -1;
  if (parts.size() == 1 && x_at >= x_end && parts[0] >= 0)
    root = parts[0];
  else if (!parts.empty())
    root = add(ExpressionKind::kOpaque, range.begin, range.end, range.begin, parts);
  x_at = at;
  x_end = end;
  x_statement = outer;
  if (root >= 0 && statement >= 0)
    x_function.statements[static_cast<std::size_t>(statement)].expressions.push_back(root);
  return root;
}

void Parser::constant(std::size_t begin, std::size_t end) {
  const bool outer = std::exchange(x_constant, true);
  expression({begin, end}, -1);
  x_constant = outer;
}

std::string_view Parser::binary_operator(std::size_t& tokens) const {
  tokens = 1;
  const Token& t = x_syntax[x_at];
  if (x_at >= x_end || t.kind != source::TokenKind::kPunctuator) return "";
  if (t.is(">") && x_at + 1 < x_end && x_syntax[x_at + 1].begin == t.end) {
    if (x_syntax.is(x_at + 1, ">")) {
      tokens = 2;
      return ">>";
    }
    if (x_syntax.is(x_at + 1, ">=")) {
      tokens = 2;
      return ">>=";
    }
  }
  return t.text;
}

// Assignments and a ? b : c, which are weakest.
int Parser::conditional() {
  if (++x_depth > kMostDeep) {
    --x_depth;
    x_at = x_end;
    return -1;
  }
  const std::size_t begin = x_at;
  int left = binary(1);
  std::size_t tokens = 1;
  const std::string_view op = binary_operator(tokens);
  if (left >= 0 && op == "?") {
    const std::size_t at = x_at++;
    const int yes = conditional();
    if (yes >= 0 && x_at < x_end && x_syntax.is(x_at, ":")) {
      ++x_at;
      const int no = conditional();
      left = add(ExpressionKind::kConditional, begin, x_at, at, {left, yes, no});
    } else {
      left = add(ExpressionKind::kOpaque, begin, x_at, at, {left, yes});
    }
  } else if (left >= 0 && is_assignment(op)) {
    const std::size_t at = x_at;
    x_at += tokens;
    const int right = conditional();
    left = add(ExpressionKind::kAssignment, begin, x_at, at, {left, right});
  }
  --x_depth;
  return left;
}

int Parser::binary(int strength) {
  const std::size_t begin = x_at;
  int left = unary();
  while (left >= 0) {
    std::size_t tokens = 1;
    const std::string_view op = binary_operator(tokens);
    const int found = strength_of(op);
    if (found == 0 || found < strength) break;
    const std::size_t at = x_at;
    x_at += tokens;
    const int right = binary(found + 1);
    if (right < 0) {
      left = add(ExpressionKind::kOpaque, begin, x_at, at, {left});
      break;
    }
    left = add(ExpressionKind::kBinary, begin, x_at, at, {left, right});
  }
  return left;
}

bool Parser::is_cast(std::size_t open) const {
  const std::size_t close = x_syntax.match(open);
  if (close >= x_end || close == open + 1) return false;
  const Token& next = x_syntax[close + 1];
  const bool operand = close + 1 < x_end && (next.is_identifier() || next.is_any({"(", "~", "!"}) ||
                                             next.kind == source::TokenKind::kNumber ||
                                             next.kind == source::TokenKind::kString);
  const bool sign = close + 1 < x_end && next.is_any({"-", "+", "*", "&", "{"});
  if (!operand && !sign) return false;
  bool type_word = false, other = false;
  for (std::size_t i = open + 1; i < close; ++i) {
    const Token& t = x_syntax[i];
    type_word |= is_type_word(t) || (t.is("*") && i + 1 == close);
    if (t.is("<")) {
      const std::size_t end =
          template_end(x_syntax, i, [&](std::string_view n) { return is_variable(n); });
      if (end >= close) return false;
      i = end;
    } else {
      other |= !t.is_identifier() && !t.is_any({"::", "*", "&"});
    }
  }
  if (other) return false;
  if (type_word) return true;
  // (T)x, where T is no variable: (a)(b) may be a call, (a)-b a difference.
  return operand && close == open + 2 && !is_variable(x_syntax[open + 1].text);
}

int Parser::unary() {
  const std::size_t begin = x_at;
  if (x_at >= x_end) return -1;
  const Token& t = x_syntax[x_at];
  if (t.is_any({"-", "+", "!", "~", "*", "&", "++", "--"})) {
    if (++x_depth > kMostDeep) {
      --x_depth;
      x_at = x_end;
      return -1;
    }
    ++x_at;
    const int inner = unary();
    --x_depth;
    return inner < 0 ? -1 : add(ExpressionKind::kPrefix, begin, x_at, begin, {inner});
  }
  if (t.is("(") && is_cast(x_at)) {
    x_at = x_syntax.match(x_at) + 1;
    if (x_syntax.is(x_at, "{")) return postfix(primary());
    const int inner = unary();
    return add(ExpressionKind::kCast, begin, x_at, begin, {inner});
  }
  return postfix(primary());
}

// Between the bracket before the cursor and its counterpart.
void Parser::list(int self, std::size_t close) {
  const std::size_t end = std::exchange(x_end, close);
  std::vector<int> parts;
  while (x_at < close) {
    const std::size_t before = x_at;
    const int part = conditional();
    if (part >= 0) parts.push_back(part);
    while (x_at < close && !x_syntax.is(x_at, ",")) {
      if (x_syntax[x_at].is_any({"(", "[", "{"})) x_at = x_syntax.match(x_at);
      ++x_at;
      // More than was understood: what was read of it is no part to be replaced.
      if (part >= 0 && !parts.empty() && parts.back() == part) parts.pop_back();
    }
    if (x_at < close || x_at == before) ++x_at;
  }
  x_at = close + 1;
  x_end = end;
  for (const int part : parts) x_function.expressions[static_cast<std::size_t>(part)].parent = self;
  auto& all = x_function.expressions[static_cast<std::size_t>(self)].parts;
  all.insert(all.end(), parts.begin(), parts.end());
}

// <<<grid, block>>>(x), behind what is launched.
int Parser::launch(int kernel) {
  std::size_t close = x_at + 1;
  const auto ends = [&](std::size_t i) {
    return x_syntax.is(i, ">") && x_syntax.is(i + 1, ">") && x_syntax.is(i + 2, ">") &&
           x_syntax.is(i + 3, "(");
  };
  for (; close < x_end && !ends(close); ++close)
    if (x_syntax[close].is_any({"(", "[", "{"})) close = x_syntax.match(close);
  if (close >= x_end || x_syntax.match(close + 3) >= x_end) return -1;
  const std::size_t open = close + 3;
  const std::size_t begin = x_function.expressions[static_cast<std::size_t>(kernel)].begin;
  const int self = add(ExpressionKind::kCall, begin, x_syntax.match(open) + 1, open, {kernel});
  ++x_at;
  list(self, close);
  x_at = open + 1;
  list(self, x_syntax.match(open));
  return self;
}

int Parser::postfix(int inner) {
  while (inner >= 0 && x_at < x_end) {
    const Token& t = x_syntax[x_at];
    const std::size_t begin = x_function.expressions[static_cast<std::size_t>(inner)].begin;
    if (t.is("<<<")) {
      inner = launch(inner);
    } else if (t.is("(") || t.is("[") || t.is("{")) {
      const ExpressionKind callee = x_function.expressions[static_cast<std::size_t>(inner)].kind;
      if (t.is("{") && callee != ExpressionKind::kName) break;
      const std::size_t open = x_at, close = x_syntax.match(open);
      if (close >= x_end) break;
      const ExpressionKind kind = t.is("(")   ? ExpressionKind::kCall
                                  : t.is("[") ? ExpressionKind::kIndex
                                              : ExpressionKind::kBraces;
      ++x_at;
      const int self = add(kind, begin, close + 1, open, {inner});
      list(self, close);
      inner = self;
    } else if (t.is(".") || t.is("->")) {
      ++x_at;
      if (x_syntax.is(x_at, "template")) ++x_at;
      if (!x_syntax[x_at].is_identifier()) break;
      const std::size_t name = x_at++;
      if (x_at < x_end && x_syntax.is(x_at, "<")) {
        // A member of this name is none of the variables.
        const std::size_t close =
            template_end(x_syntax, x_at, [](std::string_view) { return false; });
        if (close < x_end && x_syntax.is(close + 1, "(")) {
          template_arguments(x_at, close);
          x_at = close + 1;
        }
      }
      inner = add(ExpressionKind::kMember, begin, x_at, name, {inner});
    } else if (t.is("++") || t.is("--")) {
      const std::size_t op = x_at++;
      inner = add(ExpressionKind::kPostfix, begin, x_at, op, {inner});
    } else {
      break;
    }
  }
  return inner;
}

void Parser::template_arguments(std::size_t open, std::size_t close) {
  const bool outer = std::exchange(x_constant, true);
  for (const Range& part : divided(x_syntax, open + 1, close)) {
    const std::size_t at = std::exchange(x_at, part.begin), end = std::exchange(x_end, part.end);
    conditional();
    x_at = at;
    x_end = end;
  }
  x_constant = outer;
}

int Parser::name() {
  const std::size_t begin = x_at;
  if (x_syntax.is(x_at, "::")) ++x_at;
  while (x_at < x_end && x_syntax[x_at].is_identifier()) {
    ++x_at;
    if (x_at < x_end && x_syntax.is(x_at, "<")) {
      const std::size_t close =
          template_end(x_syntax, x_at, [&](std::string_view n) { return is_variable(n); });
      // What follows template arguments in an expression: a call, or, of a kernel's name, another argument.
      if (close < x_end && x_syntax[close + 1].is_any({"(", "::", "{", "<<<", ",", ")", ";"})) {
        template_arguments(x_at, close);
        x_at = close + 1;
      }
    }
    if (x_at + 1 >= x_end || !x_syntax.is(x_at, "::")) break;
    ++x_at;
    if (x_syntax.is(x_at, "template")) ++x_at;
  }
  return x_at == begin ? -1 : add(ExpressionKind::kName, begin, x_at, begin, {});
}

int Parser::primary() {
  if (x_at >= x_end) return -1;
  const std::size_t begin = x_at;
  const Token& t = x_syntax[x_at];
  if (t.kind == source::TokenKind::kNumber) {
    ++x_at;
    return add(ExpressionKind::kNumber, begin, x_at, begin, {});
  }
  if (t.kind == source::TokenKind::kString || t.kind == source::TokenKind::kCharacter) {
    while (x_at < x_end && x_syntax[x_at].kind == t.kind) ++x_at;
    return add(ExpressionKind::kOpaque, begin, x_at, begin, {});
  }
  if (t.is("(")) {
    const std::size_t close = x_syntax.match(begin);
    if (close >= x_end) return -1;
    ++x_at;
    const int self = add(ExpressionKind::kParenthesis, begin, close + 1, begin, {});
    list(self, close);
    return self;
  }
  if (t.is("{")) {
    const std::size_t close = x_syntax.match(begin);
    if (close >= x_end) return -1;
    ++x_at;
    const int self = add(ExpressionKind::kBraces, begin, close + 1, begin, {});
    list(self, close);
    return self;
  }
  if (t.is("[")) return lambda();
  if (t.is_any({"sizeof", "alignof", "decltype", "noexcept", "typeid"})) {
    ++x_at;
    if (x_syntax.is(x_at, "(")) x_at = x_syntax.match(x_at) + 1;
    return add(ExpressionKind::kOpaque, begin, x_at, begin, {});
  }
  if (t.is_any({"throw", "new", "delete", "operator", "co_await", "co_yield"})) return -1;
  if (t.is("typename")) ++x_at;
  if (x_syntax[x_at].is_identifier() || x_syntax.is(x_at, "::")) return name();
  return -1;
}

// [..] <..> (..) mutable -> T {..}: the body is the function's, too.
int Parser::lambda() {
  const std::size_t begin = x_at;
  std::size_t i = x_syntax.match(begin) + 1;
  if (i >= x_end) return -1;
  if (x_syntax.is(i, "<")) {
    const std::size_t close = x_syntax.close_angle(i);
    if (close >= x_end) return -1;
    i = close + 1;
  }
  std::size_t parameters_at = x_syntax.size();
  while (i < x_end && !x_syntax.is(i, "{")) {
    if (x_syntax.is(i, "(")) {
      if (parameters_at == x_syntax.size()) parameters_at = i;
      i = x_syntax.match(i);
    } else if (x_syntax[i].is_any({")", ";", ","})) {
      return -1;
    }
    ++i;
  }
  if (i >= x_end || x_syntax.match(i) >= x_end) return -1;
  const std::size_t open = i, close = x_syntax.match(open);
  const auto before = x_function.variables.size();
  const std::size_t at = x_at, end = x_end;
  const int statement = x_statement;
  const bool constant = std::exchange(x_constant, false);
  if (parameters_at < x_syntax.size()) {
    parameters(parameters_at);
    for (std::size_t v = before; v < x_function.variables.size(); ++v) {
      x_function.variables[v].from = open;
      x_function.variables[v].to = close;
    }
  }
  block(open, statement);
  x_at = at;
  x_end = end;
  x_statement = statement;
  x_constant = constant;
  x_at = close + 1;
  return add(ExpressionKind::kOpaque, begin, x_at, begin, {});
}

}  // namespace attn_diag::repair
