#include "harness/lines/unused_names.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "harness/lines/line_tokens.h"

namespace attn_diag::lines {
namespace {

using source::Token;
using Tokens = std::vector<Token>;

struct Uses {
  bool declared = false, used = false;
  int line = 0;
  std::size_t own_until = 0;  // within an assignment to it
};

bool assigns_at(const Tokens& tokens, std::size_t at, std::size_t end) {
  return at < end && tokens[at].is_any({"=", "+=", "-=", "*=", "/="});
}

bool is_real_type(const Token& token) {
  return token.is_any({"float", "double", "half", "__half", "__nv_bfloat16", "float2", "float4",
                       "half2", "__half2"});
}

// Where the statement with the token begins.
std::size_t statement_begin(const Tokens& tokens, std::size_t i, std::size_t begin) {
  int depth = 0;
  while (i > begin) {
    const Token& before = tokens[i - 1];
    if (before.is_any({")", "]"})) ++depth;
    if (before.is_any({"(", "["}) && --depth < 0) break;
    if (depth == 0 && before.is_any({";", "{", "}"})) break;
    --i;
  }
  return i;
}

// "const float a = f(x), b": whether the name is declared there, and of which type.
const Token* type_of_declaration(const Tokens& tokens, std::size_t i, std::size_t begin) {
  const Token& before = tokens[i - 1];
  const bool is_next = before.is(",");
  if (!is_next && !before.is_identifier()) return nullptr;
  if (before.is_any({"return", "else", "case", "goto", "sizeof", "typename", "do"})) return nullptr;
  if (!is_next) return &before;
  std::size_t first = statement_begin(tokens, i, begin);
  while (first < i && tokens[first].is_any({"const", "constexpr", "unsigned", "static"})) ++first;
  return first + 1 < i && tokens[first].is_identifier() && tokens[first + 1].is_identifier()
             ? &tokens[first]
             : nullptr;
}

bool computes_something(const Tokens& tokens, std::size_t begin, std::size_t end) {
  return std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                     tokens.begin() + static_cast<std::ptrdiff_t>(end), [](const Token& token) {
                       return token.is_any({"(", "*", "/"});
                     });
}

}  // namespace

std::vector<UnusedName> unused_names(const Tokens& tokens, std::size_t begin, std::size_t end) {
  std::map<std::string_view, Uses> all;
  for (std::size_t i = begin + 1; i < end; ++i) {
    if (!tokens[i].is_identifier() || tokens[i - 1].is_any({".", "->", "::"})) continue;
    Uses& uses = all[tokens[i].text];
    if (i < uses.own_until) continue;
    const std::size_t at = behind_subscripts(tokens, i + 1);
    const bool assigned = assigns_at(tokens, at, end);
    const std::size_t behind = assigned ? end_of_expression(tokens, at + 1, end) : at;
    if (const Token* const type = type_of_declaration(tokens, i, begin)) {
      if (!assigned && (at >= end || !tokens[at].is_any({";", ","}))) uses.used = true;
      uses.declared = true;
      if (assigned && is_real_type(*type) && computes_something(tokens, at + 1, behind))
        uses.line = tokens[i].line;
    } else if (assigned && tokens[i - 1].is_any({";", "{", "}", ")", "else"})) {
      uses.line = tokens[i].line;
      uses.own_until = behind;
    } else {
      uses.used = true;
    }
  }
  std::vector<UnusedName> out;
  for (const auto& [name, uses] : all)
    if (uses.declared && !uses.used && uses.line != 0)
      out.push_back({std::string(name), uses.line});
  std::sort(out.begin(), out.end(),
            [](const UnusedName& a, const UnusedName& b) { return a.line < b.line; });
  return out;
}

}  // namespace attn_diag::lines
