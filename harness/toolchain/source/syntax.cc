#include "harness/toolchain/source/syntax.h"

#include <algorithm>

#include "harness/toolchain/source/source_error.h"

namespace attn_diag::source {
namespace {

// Words that are followed by a parenthesis which is not that of a function's parameters.
bool takes_parenthesis(const Token& token) {
  return token.is_any({"__attribute__", "__launch_bounds__", "alignas", "__align__", "decltype",
                       "noexcept", "requires", "explicit", "__cluster_dims__", "__maxnreg__",
                       "__declspec", "sizeof", "typeof", "__typeof__", "asm", "__asm__"});
}

}  // namespace

Syntax::Syntax(const TokenList& list)
    : x_list(list), x_match(list.tokens.size(), list.tokens.size()) {
  match_brackets();
  find_functions(0, size());
}

void Syntax::match_brackets() {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < size(); ++i) {
    const Token& token = (*this)[i];
    if (token.kind != TokenKind::kPunctuator || token.text.size() != 1) continue;
    const char c = token.text[0];
    if (c == '(' || c == '[' || c == '{') open.push_back(i);
    if (c != ')' && c != ']' && c != '}') continue;
    const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open.empty() || !(*this)[open.back()].is(std::string_view(&wanted, 1)))
      throw SourceError(file(i), line(i), std::string("'") + c + "' closes no '" + wanted + "'");
    x_match[i] = open.back();
    x_match[open.back()] = i;
    open.pop_back();
  }
  if (open.empty()) return;
  throw SourceError(file(open.back()), line(open.back()),
                    "'" + std::string((*this)[open.back()].text) + "' is never closed");
}

std::size_t Syntax::open_angle(std::size_t i) const {
  std::size_t depth = 0;
  while (true) {
    const Token& token = (*this)[i];
    if (token.is_any({")", "]", "}"})) {
      i = match(i);
    } else if (token.is(">")) {
      ++depth;
    } else if (token.is("<")) {
      if (--depth == 0) return i;
    } else if (token.is_any({";", "{", "(", "["})) {
      return size();
    }
    if (i-- == 0) return size();
  }
}

std::size_t Syntax::close_angle(std::size_t i) const {
  std::size_t depth = 0;
  for (; i < size(); ++i) {
    const Token& token = (*this)[i];
    if (token.is_any({"(", "[", "{"})) {
      i = match(i);
    } else if (token.is("<")) {
      ++depth;
    } else if (token.is(">")) {
      if (--depth == 0) return i;
    } else if (token.is_any({";", ")", "]", "}"})) {
      return size();
    }
  }
  return size();
}

std::size_t Syntax::statement_begin(std::size_t i) const {
  while (i > 0) {
    const Token& before = (*this)[i - 1];
    if (before.is_any({";", "{"}) || before.kind == TokenKind::kDirective) return i;
    if (before.is("}")) return i;
    if (before.is(":") && i >= 2 &&
        (*this)[i - 2].is_any({"public", "private", "protected", "default"}))
      return i;
    if (before.is_any({")", "]"}))
      i = match(i - 1);
    else if (before.is_any({"(", "["}))
      return i;
    else
      --i;
  }
  return 0;
}

std::size_t Syntax::statement_end(std::size_t i) const {
  for (; i < size(); ++i) {
    const Token& token = (*this)[i];
    if (token.is(";") || token.is("}")) return i;
    if (token.is("{")) return i;
    if (token.is_any({"(", "["})) i = match(i);
  }
  return size();
}

// Whether the "{" at `open`, in a function's body, is that of a class or enumeration.
bool Syntax::opens_class(std::size_t open) const {
  for (std::size_t i = statement_begin(open); i < open; ++i) {
    if ((*this)[i].is_any({"struct", "class", "union", "enum"})) return true;
    if (is(i, "(") || is(i, "=")) return false;
  }
  return false;
}

void Syntax::find_statements(std::size_t open, std::vector<Statement>& found) const {
  std::size_t begin = open + 1;
  for (std::size_t i = begin; i < match(open); ++i) {
    if ((*this)[i].kind == TokenKind::kDirective) {
      begin = i + 1;
    } else if (is(i, "(") || is(i, "[")) {
      i = match(i);
    } else if (is(i, "{")) {
      if (!opens_class(i)) find_statements(i, found);
      i = match(i);
      begin = i + 1;
    } else if (is(i, ";")) {
      found.push_back({begin, i});
      begin = i + 1;
    }
  }
}

std::vector<Statement> Syntax::statements(const Function& function) const {
  std::vector<Statement> found;
  find_statements(function.open, found);
  return found;
}

const Function* Syntax::function_around(std::size_t i) const {
  auto after = std::upper_bound(x_functions.begin(), x_functions.end(), i,
                                [](std::size_t at, const Function& f) { return at < f.begin; });
  if (after == x_functions.begin()) return nullptr;
  --after;
  return i <= after->close ? &*after : nullptr;
}

std::size_t Syntax::skip_template_heads(std::size_t i, std::size_t end) const {
  while (i < end && is(i, "template") && is(i + 1, "<")) {
    const std::size_t close = close_angle(i + 1);
    if (close >= end) return i;
    i = close + 1;
    if (is(i, "requires") && is(i + 1, "(")) i = match(i + 1) + 1;
  }
  return i;
}

// Whether the "{" begins a namespace, a linkage block or a class.
bool Syntax::opens_scope(std::size_t begin, std::size_t open) const {
  std::size_t i = skip_template_heads(begin, open);
  while (i < open && (*this)[i].is_any({"inline", "static", "constexpr", "typedef", "const"})) ++i;
  if (i == open) return false;
  if (is(i, "namespace")) return true;
  if (is(i, "extern") && i + 2 == open && (*this)[i + 1].kind == TokenKind::kString) return true;
  if (!(*this)[i].is_any({"class", "struct", "union"})) return false;
  for (++i; i < open; ++i) {
    const Token& token = (*this)[i];
    if (takes_parenthesis(token) && is(i + 1, "("))
      i = match(i + 1);
    else if (token.is("["))
      i = match(i);
    else if (token.is(":"))
      return true;
    else if (token.is("("))
      return false;
  }
  return true;
}

// The declaration from `begin`, whose body opens at `open`; false if it is not a function's.
bool Syntax::add_function(std::size_t begin, std::size_t open) {
  Function function;
  function.begin = begin;
  std::size_t i = skip_template_heads(begin, open);
  std::size_t parameters = open;
  for (; i < open; ++i) {
    const Token& token = (*this)[i];
    if (token.is("__global__")) function.is_kernel = function.is_device = true;
    if (token.is("__device__")) function.is_device = true;
    if (token.is("operator")) {
      const std::size_t after = is(i + 1, "(") ? match(i + 1) + 1 : i + 1;
      for (std::size_t j = after; j < open; ++j)
        if (is(j, "(")) {
          parameters = j;
          break;
        }
      break;
    }
    if (token.is("=")) return false;
    if (takes_parenthesis(token) && is(i + 1, "(")) {
      i = match(i + 1);
    } else if (token.is("[")) {
      i = match(i);
    } else if (token.is("(")) {
      parameters = i;
      break;
    }
  }
  if (parameters == open || parameters == function.begin) return false;  // none, or without a name
  function.parameters = parameters;
  function.name = parameters - 1;
  function.open = open;
  function.close = match(open);
  x_functions.push_back(function);
  return true;
}

void Syntax::find_functions(std::size_t begin, std::size_t end) {
  std::size_t start = begin;
  for (std::size_t i = begin; i < end; ++i) {
    const Token& token = (*this)[i];
    if (token.is(";") || token.is("}") || token.kind == TokenKind::kDirective) {
      start = i + 1;
    } else if (token.is(":") && i > begin &&
               (*this)[i - 1].is_any({"public", "private", "protected"})) {
      start = i + 1;
    } else if (token.is("(") || token.is("[")) {
      i = match(i);
    } else if (token.is("{")) {
      if (opens_scope(start, i)) {
        find_functions(i + 1, match(i));
        i = match(i);
        start = is(i + 1, ";") ? i : i + 1;
        continue;
      }
      // A() : x{1} {}: an initialiser of a member, not the body.
      const Token& before = (*this)[i == 0 ? 0 : i - 1];
      bool in_initialisers = false;
      if (before.is_identifier() || before.is(">"))
        for (std::size_t j = start; j + 1 < i; ++j) {
          if (is(j, "(")) j = match(j);
          if (is(j, ")") && is(j + 1, ":")) in_initialisers = true;
        }
      if (in_initialisers) {
        i = match(i);
        continue;
      }
      const bool is_function = add_function(start, i);
      i = match(i);
      if (is_function) start = i + 1;
    }
  }
}

std::string words(std::string_view text, const Syntax& syntax, std::size_t begin, std::size_t end) {
  std::string result;
  for (std::size_t i = begin; i < end; ++i) {
    if (syntax[i].kind == TokenKind::kDirective) continue;
    if (i > begin && syntax[i].begin > syntax[i - 1].end) result += ' ';
    result += text.substr(syntax[i].begin, syntax[i].end - syntax[i].begin);
  }
  return result;
}

}  // namespace attn_diag::source
