// Integer expressions of constants, by which kernels name their tiles and blocks.
#include <charconv>
#include <string>

#include "harness/toolchain/adapt/code.h"
#include "harness/toolchain/source/source_error.h"

namespace attn_diag::adapt {
namespace {

using source::Token;
using source::TokenKind;
using Value = std::optional<std::int64_t>;

Value size_of_type(const std::string& type) {
  if (type == "half" || type == "__half" || type == "__nv_bfloat16" || type == "nv_bfloat16" ||
      type == "uint16_t")
    return 2;
  if (type == "float" || type == "int" || type == "half2" || type == "__half2") return 4;
  if (type == "double" || type == "float2") return 8;
  if (type == "float4" || type == "int4" || type == "uint4") return 16;
  if (type == "char" || type == "uint8_t" || type == "bool") return 1;
  return std::nullopt;
}

class Evaluator {
 public:
  Evaluator(const std::vector<Token>& tokens, Lookup lookup, const void* context)
      : x_tokens(tokens), x_lookup(lookup), x_context(context) {}

  Value whole() {
    const Value value = binary(0);
    return x_at == x_tokens.size() ? value : std::nullopt;
  }

 private:
  static int precedence(std::string_view op) {
    if (op == "||") return 1;
    if (op == "&&") return 2;
    if (op == "==" || op == "!=") return 3;
    if (op == "<" || op == ">" || op == "<=" || op == ">=") return 4;
    if (op == "<<") return 5;
    if (op == "+" || op == "-") return 6;
    if (op == "*" || op == "/" || op == "%") return 7;
    return 0;
  }

  static Value apply(std::string_view op, std::int64_t a, std::int64_t b) {
    if (op == "||") return (a != 0 || b != 0) ? 1 : 0;
    if (op == "&&") return (a != 0 && b != 0) ? 1 : 0;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    if (op == "<") return a < b;
    if (op == ">") return a > b;
    if (op == "<=") return a <= b;
    if (op == ">=") return a >= b;
    if (op == "<<") return b >= 0 && b < 40 ? Value(a * (std::int64_t{1} << b)) : std::nullopt;
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (b == 0) return std::nullopt;
    return op == "/" ? a / b : a % b;
  }

  Value binary(int least) {
    Value left = unary();
    while (x_at < x_tokens.size()) {
      const std::string_view op = x_tokens[x_at].text;
      const int own = precedence(op);
      if (own == 0 || own <= least) break;
      ++x_at;
      const Value right = binary(own);
      left = left && right ? apply(op, *left, *right) : std::nullopt;
    }
    if (least == 0 && take("?")) {
      const Value yes = binary(0);
      if (!take(":")) return std::nullopt;
      const Value no = binary(0);
      return !left ? std::nullopt : *left != 0 ? yes : no;
    }
    return left;
  }

  bool take(std::string_view text) {
    if (x_at >= x_tokens.size() || !x_tokens[x_at].is(text)) return false;
    ++x_at;
    return true;
  }

  Value unary() {
    if (x_at >= x_tokens.size()) return std::nullopt;
    if (take("-")) {
      const Value value = unary();
      return value ? Value(-*value) : std::nullopt;
    }
    if (take("+")) return unary();
    if (take("!")) {
      const Value value = unary();
      return value ? Value(*value == 0) : std::nullopt;
    }
    if (take("(")) {
      const Value value = binary(0);
      return take(")") ? value : std::nullopt;
    }
    const Token& token = x_tokens[x_at++];
    if (token.kind == TokenKind::kNumber) return number(token.text);
    if (!token.is_identifier()) return std::nullopt;
    if (token.is("true")) return 1;
    if (token.is("false")) return 0;
    if (token.is("sizeof") && take("(")) {
      const std::string type(x_tokens[x_at++].text);
      return take(")") ? size_of_type(type) : std::nullopt;
    }
    std::string name(token.text);
    while (take("::")) {
      if (x_at >= x_tokens.size()) return std::nullopt;
      name = std::string(x_tokens[x_at++].text);  // constants are known by their last name
    }
    return x_lookup(name, x_context);
  }

  static Value number(std::string_view text) {
    int base = 10;
    if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X") {
      base = 16;
      text.remove_prefix(2);
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (error != std::errc{} || rest.find_first_not_of("uUlLzZ") != std::string_view::npos)
      return std::nullopt;
    return value;
  }

  const std::vector<Token>& x_tokens;
  Lookup x_lookup;
  const void* x_context;
  std::size_t x_at = 0;
};

}  // namespace

std::optional<std::int64_t> evaluate(std::string_view expression, Lookup lookup,
                                     const void* context) {
  // Names may stand for each other in a circle.
  thread_local int depth = 0;
  if (depth > 32) return std::nullopt;
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } const deeper;
  try {
    const source::TokenList list = source::tokenize(expression, "expression");
    if (list.tokens.empty()) return std::nullopt;
    return Evaluator(list.tokens, lookup, context).whole();
  } catch (const source::SourceError&) {
    return std::nullopt;
  }
}

}  // namespace attn_diag::adapt
