#include "harness/repair/declarations.h"

namespace attn_diag::repair {

using source::Syntax;
using source::Token;

namespace {

bool is_specifier(const Token& t) {
  return t.is_any({"const", "constexpr", "static", "volatile", "extern", "register", "inline",
                   "thread_local", "typename", "mutable", "struct", "__shared__", "__constant__",
                   "__device__", "__restrict__", "__restrict", "__forceinline__", "__host__"});
}

bool is_builtin(const Token& t) {
  return t.is_any({"unsigned", "signed", "long", "short", "int", "char", "float", "double", "bool",
                   "auto", "void", "wchar_t"});
}

bool ends_name(const Token& t) { return t.is_any({"=", ";", ",", "[", "(", "{", ":", ")"}); }

bool is_keyword(const Token& t) {
  return t.is_any({"return",       "if",       "else",    "for",     "while",     "do",
                   "switch",       "case",     "default", "break",   "goto",      "new",
                   "continue",     "delete",   "throw",   "sizeof",  "operator",  "using",
                   "typedef",      "template", "class",   "enum",    "union",     "this",
                   "true",         "false",    "nullptr", "asm",     "__asm__",   "decltype",
                   "alignof",      "goto",     "public",  "private", "protected", "namespace",
                   "static_assert"});
}

}  // namespace

std::size_t template_end(const Syntax& s, std::size_t open,
                         const std::function<bool(std::string_view)>& is_variable) {
  if (open == 0 || !s[open - 1].is_identifier() || is_variable(s[open - 1].text)) return s.size();
  const std::size_t close = s.close_angle(open);
  if (close >= s.size()) return s.size();
  for (std::size_t i = open + 1; i < close; ++i) {
    if (s[i].is_any({"&&", "||", ";", "?", "="})) return s.size();
    if (s[i].is_any({"(", "[", "{"})) i = s.match(i);
  }
  return close;
}

std::optional<DeclaredType> declared_type(
    const Syntax& s, std::size_t begin, std::size_t end,
    const std::function<bool(std::string_view)>& is_variable) {
  DeclaredType found;
  bool has_type = false, builtin = false;
  std::size_t i = begin;
  while (i < end) {
    const Token& t = s[i];
    if (t.is("alignas") || t.is("__align__") || t.is("__attribute__")) {
      if (!s.is(i + 1, "(")) return std::nullopt;
      i = s.match(i + 1) + 1;
    } else if (t.is("[") && s.is(i + 1, "[")) {
      i = s.match(i) + 1;
    } else if (is_specifier(t)) {
      found.constant |= t.is("constexpr");
      found.is_const |= t.is("const") || t.is("constexpr");
      found.shared |= t.is("__shared__");
      ++i;
    } else if (is_builtin(t) && (!has_type || builtin)) {
      if (!found.type.empty()) found.type += ' ';
      found.type += t.text;
      has_type = builtin = true;
      ++i;
    } else if (!has_type && (t.is("::") || (t.is_identifier() && !is_keyword(t)))) {
      if (t.is_identifier() && !s.is(i + 1, "::") && is_variable(t.text)) return std::nullopt;
      const std::size_t first = i;
      while (i < end) {
        if (s.is(i, "::")) ++i;
        if (s.is(i, "template")) ++i;
        if (!s[i].is_identifier()) return std::nullopt;
        ++i;
        if (s.is(i, "<")) {
          const std::size_t close = template_end(s, i, is_variable);
          if (close >= end) return std::nullopt;
          i = close + 1;
        }
        if (!s.is(i, "::")) break;
      }
      for (std::size_t j = first; j < i; ++j) found.type += s[j].text;
      has_type = true;
    } else {
      break;
    }
  }
  if (!has_type) return std::nullopt;
  found.end = i;
  // What a declarator begins with.
  while (i < end && (s[i].is_any({"*", "&", "&&"}) || is_specifier(s[i]))) ++i;
  if (s.is(i, "[") && found.type == "auto") return found;  // auto [a, b] = ...
  if (i >= end || !s[i].is_identifier() || is_keyword(s[i])) return std::nullopt;
  if (i + 1 < end && !ends_name(s[i + 1])) return std::nullopt;
  return found;
}

std::vector<Declarator::Range> divided(const Syntax& s, std::size_t begin, std::size_t end) {
  std::vector<Declarator::Range> parts;
  const auto none = [](std::string_view) { return false; };
  std::size_t from = begin;
  for (std::size_t i = begin; i < end; ++i) {
    if (s[i].is_any({"(", "[", "{"})) {
      i = s.match(i);
    } else if (s.is(i, "<")) {
      // Only where it is followed by what template arguments are followed by: "a < b, c > d" compares.
      const std::size_t close = template_end(s, i, none);
      if (close < end && s[close + 1].is_any({"(", "::", "{", ">", ",", "*", "&", ";", ")"}))
        i = close;
    } else if (s.is(i, ",")) {
      parts.push_back({from, i});
      from = i + 1;
    }
  }
  if (from < end || !parts.empty()) parts.push_back({from, end});
  return parts;
}

std::vector<Declarator> declarators(const Syntax& s, std::size_t begin, std::size_t end) {
  std::vector<Declarator> found;
  for (const Declarator::Range& part : divided(s, begin, end)) {
    Declarator d;
    std::size_t i = part.begin;
    while (i < part.end && (s[i].is_any({"*", "&", "&&"}) || is_specifier(s[i]))) {
      if (s.is(i, "*")) d.type_suffix += '*';
      ++i;
    }
    if (i >= part.end || !s[i].is_identifier()) continue;
    d.name = i++;
    while (i < part.end && s.is(i, "[")) {
      d.type_suffix += "[]";
      d.extents.push_back({i + 1, s.match(i)});
      i = s.match(i) + 1;
    }
    if (i < part.end) {
      if (s.is(i, "=")) ++i;
      d.initialiser = {i, part.end};
      d.has_initialiser = true;
    }
    found.push_back(std::move(d));
  }
  return found;
}

}  // namespace attn_diag::repair
