#include "harness/lines/line_tokens.h"

#include "harness/toolchain/source/source_error.h"

namespace attn_diag::lines {

using source::Token;

std::vector<Token> tokens_of(std::string_view line) {
  try {
    return source::tokenize(line, "").tokens;
  } catch (const source::SourceError&) {
    return {};  // a string that goes on in the next line
  }
}

std::size_t behind_bracket(const std::vector<Token>& tokens, std::size_t i) {
  int depth = 0;
  for (; i < tokens.size(); ++i) {
    if (tokens[i].is_any({"(", "[", "{"})) ++depth;
    if (tokens[i].is_any({")", "]", "}"}) && --depth == 0) return i + 1;
  }
  return i;
}

std::size_t behind_subscripts(const std::vector<Token>& tokens, std::size_t at) {
  while (at < tokens.size() && tokens[at].is("[")) at = behind_bracket(tokens, at);
  return at;
}

std::size_t end_of_expression(const std::vector<Token>& tokens, std::size_t i, std::size_t end) {
  while (i < end && !tokens[i].is_any({",", ";", ")", "}"}))
    i = tokens[i].is_any({"(", "[", "{"}) ? behind_bracket(tokens, i) : i + 1;
  return i;
}

std::size_t parentheses_before(const std::vector<Token>& tokens, std::size_t i) {
  while (i > 0 && tokens[i - 1].is_any({"const", "noexcept", "mutable"})) --i;
  if (i == 0 || !tokens[i - 1].is(")")) return 0;
  int depth = 0;
  while (i-- > 0) {
    if (tokens[i].is(")")) ++depth;
    if (tokens[i].is("(") && --depth == 0) return i;
  }
  return 0;
}

bool is_assembly(const std::vector<Token>& tokens, std::size_t i) {
  while (i > 0 && !tokens[i - 1].is_any({";", "{", "}"})) --i;
  for (; i < tokens.size() && !tokens[i].is_any({";", "{", "}"}); ++i)
    if (tokens[i].is_any({"asm", "__asm__", "__asm"})) return true;
  return false;
}

bool has_part(const Token& token, std::string_view part) {
  return token.text.find(part) != token.text.npos;
}

bool is_use(const std::vector<Token>& tokens, std::size_t i) {
  if (!tokens[i].is_identifier() || i + 1 >= tokens.size()) return false;
  if (tokens[i + 1].is_any({"<", ";"})) return true;
  if (!tokens[i + 1].is("(")) return false;
  const std::size_t end = behind_bracket(tokens, i + 1);  // where it is not defined there
  return end >= tokens.size() || !tokens[end].is("{");
}

Range function_around(const std::vector<Token>& tokens, int line) {
  for (std::size_t i = 0; i < tokens.size() && tokens[i].line <= line; ++i) {
    const std::size_t header = tokens[i].is("{") ? parentheses_before(tokens, i) : 0;
    if (header == 0 || !tokens[header - 1].is_identifier()) continue;
    const std::size_t end = behind_bracket(tokens, i);
    if (end > i + 1 && tokens[end - 1].line >= line) return {i, end};
    i = end - 1;
  }
  return {0, 0};
}

}  // namespace attn_diag::lines
