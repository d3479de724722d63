#include "harness/lines/unused_names.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "harness/lines/line_tokens.h"

namespace attn_diag::lines {
namespace {

using source::Token;
using Tokens = std::vector<Token>;

struct Uses {
  bool declared = false, used = false, is_pointer = false;
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
    // "float o[4] = {}, m = 0": no block ends before a comma.
    if (before.is_any({")", "]"}) || (before.is("}") && (depth > 0 || tokens[i].is(",")))) {
      ++depth;
    } else if (before.is_any({"(", "["}) || (before.is("{") && depth > 0)) {
      if (--depth < 0) break;
    } else if (depth == 0 && before.is_any({";", "{", "}"})) {
      break;
    }
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

// "0.f", "-INFINITY", "{0.f, 0.f}": that a sum or a maximum begins with.
bool is_beginning(const Tokens& tokens, std::size_t begin, std::size_t end) {
  const auto is_zero = [](const Token& token) {
    return token.kind == source::TokenKind::kNumber &&
           token.text.find_first_not_of("0.fFuU") == token.text.npos;
  };
  bool minus = false, any = false;
  for (std::size_t i = begin; i < end; ++i) {
    const bool large = tokens[i].is_any({"INFINITY", "FLT_MAX"}) ||
                       (minus && tokens[i].kind == source::TokenKind::kNumber);
    if (!is_zero(tokens[i]) && !(minus && large) && !tokens[i].is_any({"-", "{", "}", ","}))
      return false;
    any = any || is_zero(tokens[i]) || large;
    minus = tokens[i].is("-");
  }
  return any;
}

struct Changes {
  std::size_t declared_by = 0;  // where the statement begins
  bool begins = false, used = false, changed = false, handed_on = false;
  bool by_itself = false;  // the first change takes what was there: "l = l * a + p;"
  int line = 0;            // of that
};

// "&x", "f(x, y)": whether it may be changed there. What is an argument may be passed by reference.
bool is_handed_on(const Tokens& tokens, std::size_t i, std::size_t behind) {
  const Token &before = tokens[i - 1], &after = tokens[behind];
  if (before.is("&") || before.is_any({"++", "--"}) || after.is_any({"++", "--"})) return true;
  return before.is_any({"(", ","}) && after.is_any({")", ","});
}

}  // namespace

std::vector<UnchangedName> unchanged_names(const Tokens& tokens, std::size_t begin,
                                           std::size_t end) {
  std::map<std::string_view, Changes> all;
  for (std::size_t i = begin + 1; i + 1 < end; ++i) {
    if (!tokens[i].is_identifier() || tokens[i - 1].is_any({".", "->", "::"})) continue;
    Changes& of = all[tokens[i].text];
    const std::size_t at = behind_subscripts(tokens, i + 1);
    if (at >= end) continue;
    const bool assigned = assigns_at(tokens, at, end);
    const std::size_t behind = assigned ? end_of_expression(tokens, at + 1, end) : at;
    const bool begins = tokens[at].is("=") && is_beginning(tokens, at + 1, behind);
    const Token* const type = type_of_declaration(tokens, i, begin);
    if (type != nullptr && !is_real_type(*type)) {
      of.handed_on = true;  // another variable of this name, or an integer
    } else if (type != nullptr) {
      const std::size_t statement = statement_begin(tokens, i, begin);
      if (of.declared_by != 0 || tokens[statement].is_any({"const", "constexpr"}))
        of.handed_on = true;
      of.declared_by = statement;
      of.begins = begins;
      if (!begins && assigned) of.changed = true;
    } else if (assigned) {
      of.begins = of.begins || begins;
      if (!begins && !of.changed) {
        of.line = tokens[i].line;
        of.by_itself = !tokens[at].is("=") ||
                       std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                   tokens.begin() + static_cast<std::ptrdiff_t>(behind),
                                   [name = tokens[i].text](const Token& t) { return t.is(name); });
      }
      of.changed = of.changed || !begins;
    } else {
      of.used = true;
      of.handed_on = of.handed_on || is_handed_on(tokens, i, at);
    }
  }
  std::vector<UnchangedName> out;
  for (const auto& [name, of] : all) {
    if (of.declared_by == 0 || !of.begins || !of.used || of.changed || of.handed_on) continue;
    // What is added up stands nearer to what is missing than what is only replaced.
    const Changes* nearest = nullptr;
    std::string_view beside;
    for (const auto& [other, change] : all) {
      if (change.declared_by != of.declared_by || !change.begins || change.line == 0) continue;
      if (nearest != nullptr && std::pair(!nearest->by_itself, nearest->line) <=
                                    std::pair(!change.by_itself, change.line))
        continue;
      nearest = &change;
      beside = other;
    }
    if (nearest != nullptr) out.push_back({std::string(name), std::string(beside), nearest->line});
  }
  std::sort(out.begin(), out.end(),
            [](const UnchangedName& a, const UnchangedName& b) { return a.line < b.line; });
  return out;
}

std::vector<UnusedName> unused_names(const Tokens& tokens, std::size_t begin, std::size_t end) {
  std::map<std::string_view, Uses> all;
  for (std::size_t i = begin + 1; i < end; ++i) {
    if (!tokens[i].is_identifier() || tokens[i - 1].is_any({".", "->", "::"})) continue;
    Uses& uses = all[tokens[i].text];
    if (i < uses.own_until) continue;
    const std::size_t at = behind_subscripts(tokens, i + 1);
    const bool assigned = assigns_at(tokens, at, end);
    const std::size_t behind = assigned ? end_of_expression(tokens, at + 1, end) : at;
    // "auto to = o + row; to[i] = x;": a pointer, by which something else is stored.
    if (at > i + 1) uses.used = uses.used || uses.is_pointer;
    if (const Token* const type = type_of_declaration(tokens, i, begin)) {
      uses.is_pointer = type->is("auto") && assigned;
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
