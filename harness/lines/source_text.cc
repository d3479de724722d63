#include "harness/lines/source_text.h"

#include <cstddef>
#include <fstream>

#include "harness/toolchain/source/source_error.h"
#include "harness/toolchain/source/token.h"

namespace attn_diag::lines {
namespace {

using source::Token;
using source::TokenKind;

std::vector<Token> tokens_of(std::string_view line) {
  try {
    return source::tokenize(line, "").tokens;
  } catch (const source::SourceError&) {
    return {};  // a string that goes on in the next line
  }
}

bool is_operand(const Token& token) {
  return token.is_identifier() || token.kind == TokenKind::kNumber;
}

// A name, as limits.end or its->end, that begins at i: where it ends; i: there is none.
std::size_t name_at(const std::vector<Token>& tokens, std::size_t i) {
  if (i >= tokens.size() || !tokens[i].is_identifier()) return i;
  ++i;
  while (i + 1 < tokens.size() && tokens[i].is_any({".", "->", "::"}) &&
         tokens[i + 1].is_identifier())
    i += 2;
  return i;
}

// Of "for (" what stands behind it; the number of tokens: there is none.
std::size_t loop_at(const std::vector<Token>& tokens) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i].is("for") && tokens[i + 1].is("(")) return i + 2;
  return tokens.size();
}

}  // namespace

bool is_plain_loop(std::string_view line, bool any_step) {
  const std::vector<Token> tokens = tokens_of(line);
  std::size_t i = loop_at(tokens);
  // What it begins with.
  for (; i < tokens.size() && !tokens[i].is(";"); ++i) {
    if (!tokens[i].is("=")) continue;
    const bool zero = i + 1 < tokens.size() && tokens[i + 1].is("0");
    const std::size_t end = zero ? i + 2 : name_at(tokens, i + 1);
    if (end == i + 1 || end >= tokens.size() || !tokens[end].is_any({";", ","})) return false;
  }
  if (i >= tokens.size()) return false;
  // Below what it goes on.
  std::size_t end = name_at(tokens, i + 1);
  if (end == i + 1 || end >= tokens.size() || !tokens[end].is("<")) return false;
  const std::size_t limit = end + 1;
  end = name_at(tokens, limit);
  if (end == limit || end >= tokens.size() || !tokens[end].is(";")) return false;
  // Its step.
  std::size_t operators = 0;
  for (i = end + 1; i < tokens.size() && !tokens[i].is(")"); ++i) {
    if (tokens[i].is_identifier() || (any_step && is_operand(tokens[i]))) continue;
    if (!tokens[i].is_any({"++", "+=", ","})) return false;
    operators += tokens[i].is(",") ? 0 : 1;
  }
  return operators == 1;
}

bool begins_late(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = loop_at(tokens); i + 4 < tokens.size() && !tokens[i].is(";"); ++i)
    if (tokens[i].is("=") && tokens[i + 1].kind == TokenKind::kNumber && !tokens[i + 1].is("0")) {
      const std::size_t end = name_at(tokens, i + 3);
      return tokens[i + 2].is(";") && end > i + 3 && end < tokens.size() &&
             tokens[end].is_any({"<", "<=", "!="});
    }
  return false;
}

bool takes_minimum(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i)
    if (tokens[i].is(variable) && tokens[i + 1].is("="))
      for (std::size_t j = i + 2; j < tokens.size() && !tokens[j].is_any({";", "="}); ++j)
        if (tokens[j].is_any({"fminf", "fmin", "min", "__hmin", "__hmin2"})) return true;
  return false;
}

bool is_plain_subscript(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  bool found = false;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(variable) || !tokens[i + 1].is("[")) continue;
    found = true;
    int depth = 1;
    for (std::size_t j = i + 2; j < tokens.size() && depth > 0; ++j) {
      if (tokens[j].is("["))
        ++depth;
      else if (tokens[j].is("]"))
        --depth;
      else if (!is_operand(tokens[j]) && !tokens[j].is_any({".", "->", "::"}))
        return false;
    }
  }
  return found;
}

bool computes(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    const Token& next = tokens[i + 1];
    if (next.text.size() > 1 && next.text.back() == '=' && !next.is_any({"==", "<=", ">=", "!="}))
      return true;
    if (!next.is("=")) continue;
    const std::size_t end =
        is_operand(tokens[i + 2]) ? std::max(name_at(tokens, i + 2), i + 3) : i + 2;
    return end == i + 2 || end >= tokens.size() || !tokens[end].is_any({",", ";", ")"});
  }
  return false;
}

const std::string& SourceText::line(const std::string& file, int number) {
  static const std::string none;
  const auto [found, is_new] = x_files.try_emplace(file);
  if (is_new) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) found->second.push_back(line);
  }
  const auto i = static_cast<std::size_t>(number);
  return i == 0 || i > found->second.size() ? none : found->second[i - 1];
}

}  // namespace attn_diag::lines
