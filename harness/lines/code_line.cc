#include "harness/lines/code_line.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "harness/lines/line_tokens.h"

namespace attn_diag::lines {
namespace {

using source::Token;
using source::TokenKind;

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

// What stands behind "for ("; the number of tokens: there is none.
std::size_t loop_at(const std::vector<Token>& tokens) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i].is("for") && tokens[i + 1].is("(")) return i + 2;
  return tokens.size();
}

// The arguments of "for i in range(...)" of Python, each from its first token to behind its last.
std::vector<Range> range_arguments(const std::vector<Token>& tokens) {
  std::vector<Range> out;
  std::size_t i = 0;
  while (i + 3 < tokens.size() && !(tokens[i].is("for") && tokens[i + 2].is("in"))) ++i;
  if (i + 3 >= tokens.size()) return out;
  for (i += 3; i + 1 < tokens.size() && !tokens[i].is("(");) ++i;
  if (i + 1 >= tokens.size() || !tokens[i - 1].is_any({"range", "static_range"})) return out;
  int depth = 0;
  std::size_t begin = ++i;
  for (; i < tokens.size(); ++i) {
    const bool closes = tokens[i].is_any({")", "]"});
    if (depth == 0 && (closes || tokens[i].is(","))) {
      if (begin < i) out.emplace_back(begin, i);
      begin = i + 1;
      if (closes) break;
    }
    depth += tokens[i].is_any({"(", "["}) ? 1 : closes ? -1 : 0;
  }
  return out;
}

bool is_infinity(const Token& token) {
  return token.is_any({"INFINITY", "FLT_MAX", "CUDART_INF_F"});
}

// Where the first condition begins: "if (". Of a line without one the last token, or 0.
std::size_t if_at(const std::vector<Token>& tokens) {
  std::size_t i = 0;
  while (i + 1 < tokens.size() && !(tokens[i].is("if") && tokens[i + 1].is("("))) ++i;
  return i;
}

// "f<A, 2>(x)", and not "a < b".
bool has_template_arguments(const std::vector<Token>& tokens, std::size_t i) {
  if (i + 1 >= tokens.size() || !tokens[i + 1].is("<")) return false;
  int depth = 0;
  for (std::size_t at = i + 1; at < tokens.size(); ++at) {
    if (tokens[at].is("<")) ++depth;
    if (tokens[at].is(">") && --depth == 0)
      return at + 1 < tokens.size() && tokens[at + 1].is_any({"(", "::", "{", "<"});
    if (tokens[at].is_any({";", "(", "&&", "||", "?"})) return false;
  }
  return false;
}

}  // namespace

bool is_variable(const std::vector<Token>& tokens, std::size_t i) {
  if (!tokens[i].is_identifier()) return false;
  const bool is_call =
      i + 1 < tokens.size() && (tokens[i + 1].is("(") || has_template_arguments(tokens, i));
  const bool is_member = i > 0 && tokens[i - 1].is_any({".", "->", "::"});
  return !is_call && !is_member;
}

bool is_loop(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  return loop_at(tokens) < tokens.size() || !range_arguments(tokens).empty();
}

bool declares_counter(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = loop_at(tokens) + 1; i < tokens.size() && !tokens[i].is(";"); ++i)
    if (tokens[i].is(variable) && i + 1 < tokens.size() && tokens[i + 1].is_any({"=", "{"}) &&
        (tokens[i - 1].is_identifier() || tokens[i - 1].is_any({"&", "*", ","})))
      return tokens[i - 1].is_identifier() || !tokens[loop_at(tokens) + 1].is("=");
  return false;
}

bool is_plain_loop(std::string_view line, bool any_step) {
  const std::vector<Token> tokens = tokens_of(line);
  if (const std::vector<Range> range = range_arguments(tokens); !range.empty()) {
    for (std::size_t i = 0; i < range.size(); ++i) {
      const auto [begin, end] = range[i];
      const bool number = end == begin + 1 && tokens[begin].kind == TokenKind::kNumber &&
                          (i == 2 ? any_step : i == 0 && range.size() > 1 && tokens[begin].is("0"));
      if (!number && name_at(tokens, begin) != end) return false;
    }
    return true;
  }
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

std::optional<bool> halves_as_usual(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::size_t> ends;  // of the three parts of its header
  std::size_t i = loop_at(tokens);
  for (; i < tokens.size() && ends.size() < 2; ++i)
    if (tokens[i].is(";")) ends.push_back(i);
  if (ends.size() < 2) return std::nullopt;
  // ">>=" may be two tokens, as ">>" may close templates.
  std::string header[2];
  int part = 0;
  for (i = ends[0] + 1; i < tokens.size() && !tokens[i].is(")"); ++i)
    if (i == ends[1])
      part = 1;
    else if (!(tokens[i].is_identifier() && i < ends[1] + 2 &&
               (i == ends[0] + 1 || i == ends[1] + 1)))
      header[part] += tokens[i].text;
  const auto& [test, step] = header;
  if (step == "<<=1" || step == "*=2")
    return test.find('/') == test.npos && test.find(">>") == test.npos;
  if (!step.starts_with(">>=") && !step.starts_with("/=")) return std::nullopt;
  return (step == ">>=1" || step == "/=2") &&
         (test.empty() || test == ">0" || test == ">=1" || test == "!=0");
}

std::string shuffle_lane(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].text.find("shfl") == std::string_view::npos || !tokens[i + 1].is("(")) continue;
    const std::size_t end = behind_bracket(tokens, i + 1);
    if (end < i + 5 || !tokens[end - 3].is(",")) return "";
    return std::string(tokens[end - 2].text);
  }
  return "";
}

int shuffle_step(std::string_view line) { return std::atoi(shuffle_lane(line).c_str()); }

bool begins_late(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  if (const std::vector<Range> range = range_arguments(tokens); range.size() > 1) {
    const auto [begin, end] = range.front();
    return end == begin + 1 && tokens[begin].kind == TokenKind::kNumber && !tokens[begin].is("0");
  }
  for (std::size_t i = loop_at(tokens); i + 4 < tokens.size() && !tokens[i].is(";"); ++i)
    if (tokens[i].is("=") && tokens[i + 1].kind == TokenKind::kNumber && !tokens[i + 1].is("0")) {
      const std::size_t end = name_at(tokens, i + 3);
      return tokens[i + 2].is(";") && end > i + 3 && end < tokens.size() &&
             tokens[end].is_any({"<", "<=", "!="});
    }
  return false;
}

bool begins_kernel(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  if (tokens.size() == 1 && tokens[0].is("{")) return true;
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const Token& token) { return token.is("__global__"); });
}

bool is_assertion(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  return tokens.size() > 1 && tokens[0].is("assert") && tokens[1].is("(");
}

bool is_plain_argument(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    const auto goes_on = [](const Token& token) {
      return is_operand(token) || token.is_any({"+", ".", "->", "::"});
    };
    std::size_t begin = i, end = i;
    while (begin > 0 && goes_on(tokens[begin - 1])) --begin;
    while (end < tokens.size() && goes_on(tokens[end])) ++end;
    if (begin > 0 && end < tokens.size() && tokens[begin - 1].is_any({"(", ","}) &&
        tokens[end].is_any({")", ","}))
      return true;
  }
  return false;
}

std::optional<std::vector<std::string>> shared_size_names(std::string_view launch) {
  const std::vector<source::Token> tokens = tokens_of(launch);
  std::size_t i = 0;
  while (i < tokens.size() && !tokens[i].is("<<<")) ++i;
  std::vector<std::string> names;
  int value = 0, depth = 0;
  for (++i; i < tokens.size(); ++i) {
    if (tokens[i].is("sizeof")) {  // of a type
      while (i < tokens.size() && !tokens[i].is(")")) ++i;
      continue;
    }
    if (tokens[i].is_any({"(", "[", "{"})) ++depth;
    if (tokens[i].is_any({")", "]", "}"})) --depth;
    if (depth < 0 || (depth == 0 && tokens[i].is(">") && i + 2 < tokens.size() &&
                      tokens[i + 1].is(">") && tokens[i + 2].is(">")))
      break;
    if (depth == 0 && tokens[i].is(",")) ++value;
    if (value == 2 && is_variable(tokens, i)) names.emplace_back(tokens[i].text);
  }
  if (value < 2) return std::nullopt;
  return names;
}

bool rounds_blocks_down(std::string_view launch) {
  const std::vector<Token> tokens = tokens_of(launch);
  std::size_t i = 0;
  while (i < tokens.size() && !tokens[i].is("<<<")) ++i;
  int depth = 0;
  for (++i; i < tokens.size(); ++i) {
    if (tokens[i].is_any({"(", "{"})) ++depth;
    if (tokens[i].is_any({")", "}"})) --depth;
    if (depth < 0 || (depth == 0 && tokens[i].is(","))) return false;
    if (!tokens[i].is("/")) continue;
    // "(n + 31) / 32" is rounded up, "n / 32" and "(n * m) / 32" are not.
    const std::size_t opens = parentheses_before(tokens, i);
    const auto adds = [](const Token& token) { return token.is("+"); };
    if (opens == 0 ? is_variable(tokens, i - 1)
                   : std::none_of(tokens.begin() + static_cast<std::ptrdiff_t>(opens),
                                  tokens.begin() + static_cast<std::ptrdiff_t>(i), adds))
      return true;
  }
  return false;
}

bool launches(std::string_view line) { return line.find("<<<") != line.npos; }

bool has_name(std::string_view line, const std::vector<std::string>& names) {
  const std::vector<Token> tokens = tokens_of(line);
  return std::any_of(tokens.begin(), tokens.end(), [&](const Token& token) {
    return std::find(names.begin(), names.end(), token.text) != names.end();
  });
}

std::vector<std::string> plainly_compared(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::size_t begin = 0, end = 0;
  for (std::size_t i = 0; i + 1 < tokens.size() && end == 0; ++i) {
    if (tokens[i].is("if") && tokens[i + 1].is("(")) {
      begin = i + 1;
      end = behind_bracket(tokens, begin);
    } else if (tokens[i].is_any({"=", "return", ","})) {
      begin = i + 1;
    } else if (tokens[i].is("?")) {
      end = i;
    }
  }
  std::vector<std::string> names;
  bool compares = false;
  for (std::size_t i = begin; i < end; ++i) {
    const Token& token = tokens[i];
    const bool relation = token.is_any({"<", "<=", ">", ">="});
    compares = compares || relation;
    if (token.is_identifier())
      names.emplace_back(token.text);
    else if (!relation && !token.is_any({"(", ")", "&&", "||"}))
      return {};
  }
  return compares ? names : std::vector<std::string>{};
}

std::vector<std::string> tested_names(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  std::size_t i = if_at(tokens);
  int depth = 0;
  for (++i; i < tokens.size(); ++i) {
    depth += tokens[i].is("(") ? 1 : tokens[i].is(")") ? -1 : 0;
    if (depth == 0) break;
    const bool has_member = i + 1 < tokens.size() && tokens[i + 1].is_any({".", "->", "::"});
    if (is_variable(tokens, i) && !has_member) names.emplace_back(tokens[i].text);
  }
  return names;
}

std::vector<std::string> variables_of(std::string_view expression) {
  return tested_names("if (" + std::string(expression) + ")");
}

std::string tested_bits(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::size_t i = if_at(tokens);
  if (i + 1 >= tokens.size()) return "";
  const std::size_t end = behind_bracket(tokens, i + 1);
  std::string flag;
  bool bits = false;
  for (i += 2; i + 1 < end; ++i) {
    const bool shifts = tokens[i].is(tokens[i - 1].text) || tokens[i].is(tokens[i + 1].text);
    if (tokens[i].is_any({"<=", ">=", "==", "!="}) || (tokens[i].is_any({"<", ">"}) && !shifts))
      return "";
    bits = bits || tokens[i].is("&");
    if (!is_variable(tokens, i) || tokens[i - 1].is(".") || tokens[i].is("threadIdx")) continue;
    if (!flag.empty() || tokens[i + 1].is_any({".", "->", "::", "("})) return "";
    flag = tokens[i].text;
  }
  return bits ? flag : "";
}

std::vector<std::string> assigned_names(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    if (tokens[i].is("=") && tokens[i - 1].is_identifier()) names.emplace_back(tokens[i - 1].text);
  return names;
}

std::vector<std::vector<std::string>> arguments_of(std::string_view line, std::string_view part) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::vector<std::string>> out;
  std::size_t i = 0;
  while (i + 1 < tokens.size() &&
         !(tokens[i].text.find(part) != std::string_view::npos && tokens[i + 1].is("(")))
    ++i;
  if (i + 1 >= tokens.size()) return out;
  out.emplace_back();
  int depth = 0;
  for (i += 1; i < tokens.size(); ++i) {
    if (tokens[i].is_any({"(", "["})) ++depth;
    if (tokens[i].is_any({")", "]"}) && --depth == 0) break;
    if (tokens[i].is(",") && depth == 1)
      out.emplace_back();
    else if (tokens[i].is_identifier())
      out.back().emplace_back(tokens[i].text);
  }
  return out;
}

std::vector<std::string> stored_arrays(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is_identifier() || !tokens[i + 1].is("[")) continue;
    std::size_t end = behind_subscripts(tokens, i + 1);
    while (end < tokens.size() && tokens[end].is(")"))
      ++end;  // "*reinterpret_cast<float4*>(&a[i])"
    if (end + 1 < tokens.size() && tokens[end].is(".")) end += 2;
    if (end < tokens.size() && tokens[end].is_any({"=", "+=", "-=", "*=", "/="}))
      names.emplace_back(tokens[i].text);
  }
  return names;
}

std::vector<std::string> made_of(std::string_view line, std::string_view variable, bool& moves) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  std::size_t i = 0;
  while (i + 1 < tokens.size() && !(tokens[i].is(variable) && tokens[i + 1].is("="))) ++i;
  int depth = 0;  // "a = f(x, y), b = z;": up to the comma between the two
  for (i += 2; i < tokens.size() && !tokens[i].is(";"); ++i) {
    depth += tokens[i].is_any({"(", "[", "{"}) ? 1 : tokens[i].is_any({")", "]", "}"}) ? -1 : 0;
    if (depth == 0 && tokens[i].is(",")) break;
    moves = moves || tokens[i].is_any({"+", "["});
    if (is_variable(tokens, i)) names.emplace_back(tokens[i].text);
  }
  return names;
}

bool goes_up_to(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::size_t i = loop_at(tokens);
  while (i < tokens.size() && !tokens[i].is(";")) ++i;
  for (++i; i < tokens.size() && !tokens[i].is(";"); ++i)
    if (tokens[i].is("<=")) return true;
  return false;
}

std::string chosen_by(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 2; i < tokens.size(); ++i)
    if (tokens[i].is("?") && is_variable(tokens, i - 1) &&
        tokens[i - 2].is_any({"=", "(", ",", "return"}))
      return std::string(tokens[i - 1].text);
  return {};
}

std::vector<std::string> subtracted_names(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    if (tokens[i - 1].is("-") && is_variable(tokens, i)) names.emplace_back(tokens[i].text);
  return names;
}

std::vector<std::string> minuends(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::size_t end = tokens[i + 1].is("[") ? behind_bracket(tokens, i + 1) : i + 1;
    if (end < tokens.size() && tokens[end].is("-") && is_variable(tokens, i))
      names.emplace_back(tokens[i].text);
  }
  return names;
}

std::vector<std::string> called_names(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i].is_identifier() && tokens[i + 1].is("(") &&
        !tokens[i].is_any({"if", "for", "while", "switch", "return", "sizeof"}))
      names.emplace_back(tokens[i].text);
  return names;
}

std::vector<std::string> objects_of_calls(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i)
    if (tokens[i].is_identifier() && tokens[i + 1].is_any({".", "->"}) && tokens[i + 3].is("("))
      names.emplace_back(tokens[i].text);
  return names;
}

bool computes_last(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i].is(variable) && tokens[i + 1].is("=")) {
      const std::size_t end = end_of_expression(tokens, i + 2, tokens.size());
      return end > i + 4 && tokens[end - 2].is("-") && tokens[end - 1].is("1");
    }
  return false;
}

std::vector<std::string> loop_limits(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  const std::vector<std::string> counters = assigned_names(line);
  std::vector<std::string> names;
  std::size_t i = loop_at(tokens);
  while (i < tokens.size() && !tokens[i].is(";")) ++i;
  for (++i; i < tokens.size() && !tokens[i].is(";"); ++i)
    if (is_variable(tokens, i) &&
        std::find(counters.begin(), counters.end(), tokens[i].text) == counters.end())
      names.emplace_back(tokens[i].text);
  return names;
}

bool lets_the_end_through(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::size_t i = if_at(tokens);
  if (i + 1 >= tokens.size()) return false;
  const std::size_t end = behind_bracket(tokens, i + 1);
  const bool leaves = end < tokens.size() && tokens[end].is_any({"return", "continue", "break"});
  for (; i < end; ++i)  // not the two of "x >> 1"
    if (tokens[i].is(leaves ? ">" : "<=") && !tokens[i - 1].is(">") &&
        (i + 1 == end || !tokens[i + 1].is(">")))
      return true;
  return false;
}

std::pair<std::vector<std::string>, std::vector<std::string>> larger_of_guard(
    std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::size_t i = if_at(tokens);
  if (i + 1 >= tokens.size()) return {};
  std::size_t begin = i + 2, end = behind_bracket(tokens, i + 1);
  bool passes = !(end < tokens.size() && tokens[end].is_any({"return", "continue", "break"}));
  if (end == 0 || end > tokens.size()) return {};
  --end;
  // "!(row < rows)", "((row < rows))".
  while (begin + 1 < end) {
    const bool negates = tokens[begin].is("!");
    const std::size_t open = begin + (negates ? 1 : 0);
    if (!tokens[open].is("(") || behind_bracket(tokens, open) != end) break;
    passes = passes != negates;
    begin = open + 1;
    --end;
  }
  std::optional<std::size_t> relation;
  for (std::size_t at = begin; at < end; ++at) {
    if (tokens[at].is_any({"&&", "||", "?", "==", "!="})) return {};
    if (!tokens[at].is_any({"<", "<=", ">", ">="})) continue;
    if (relation) return {};
    relation = at;
  }
  if (!relation) return {};
  const bool left_is_less = tokens[*relation].is_any({"<", "<="});
  const auto names = [&](std::size_t from, std::size_t to) {
    std::vector<std::string> out;
    for (std::size_t at = from; at < to; ++at)
      if (is_variable(tokens, at)) out.emplace_back(tokens[at].text);
    return out;
  };
  auto left = names(begin, *relation), right = names(*relation + 1, end);
  if (left.empty() || right.empty()) return {};
  if (left_is_less == passes) std::swap(left, right);
  return {left, right};
}

bool rounds_down(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  std::size_t i = 0;
  while (i + 1 < tokens.size() && !(tokens[i].is(variable) && tokens[i + 1].is("="))) ++i;
  if (i + 1 >= tokens.size()) return false;
  bool divides = false;
  for (; i + 1 < tokens.size() && !tokens[i].is(";"); ++i) {
    if (tokens[i].is("/") || (tokens[i].is(">") && tokens[i + 1].is(">")))
      divides = divides || tokens[i - 1].is_identifier();
    if (tokens[i].is_any({"+", "-", "%"})) return false;
  }
  return divides;
}

std::optional<bool> declares_integer(std::string_view line, std::string_view variable) {
  const auto is_integer = [](const Token& token) {
    return token.is_any({"int", "unsigned", "signed", "long", "short", "char", "bool", "size_t",
                         "ssize_t", "ptrdiff_t", "int8_t", "uint8_t", "int16_t", "uint16_t",
                         "int32_t", "uint32_t", "int64_t", "uint64_t", "uint"});
  };
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    std::size_t type = i - 1;
    // One of several: the type stands where the statement begins.
    if (tokens[type].is(",")) {
      for (int depth = 0; type > 0; --type) {
        const Token& before = tokens[type - 1];
        if (depth == 0 && before.is_any({";", "{", "("})) break;
        depth += before.is(")") ? 1 : before.is("(") ? -1 : 0;
      }
      while (tokens[type].is_any({"const", "static", "constexpr", "__shared__"})) ++type;
      if (type + 1 >= i || !tokens[type + 1].is_identifier()) continue;
    }
    if (is_integer(tokens[type])) return true;
    if (tokens[type].is_identifier() && !tokens[type].is_any({"return", "else", "auto", "const"}))
      return false;
  }
  return std::nullopt;
}

bool declares_real(std::string_view line, std::string_view variable) {
  if (declares_integer(line, variable) != false) return false;
  const std::vector<Token> tokens = tokens_of(line);
  bool real = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is(variable)) return real;
    if (tokens[i].is_any({";", "{"})) real = false;
    real = real || tokens[i].is_any({"float", "double", "half", "__half"});
  }
  return false;
}

bool takes_minimum(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    std::size_t at = behind_subscripts(tokens, i + 1);
    if (at >= tokens.size() || !tokens[at].is("=")) continue;
    for (std::size_t j = at + 1; j < tokens.size() && !tokens[j].is_any({";", "="}); ++j)
      if (tokens[j].is_any({"fminf", "fmin", "min", "minimum", "__hmin", "__hmin2"})) return true;
  }
  return false;
}

bool begins_infinite(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    std::size_t at = behind_subscripts(tokens, i + 1);
    if (at >= tokens.size() || !tokens[at].is_any({"=", "{"})) continue;
    for (++at;
         at < tokens.size() && (tokens[at].is_any({"{", "-", ","}) || is_infinity(tokens[at]));
         ++at)
      if (is_infinity(tokens[at]) && !tokens[at - 1].is("-")) return true;
  }
  return false;
}

bool may_choose(std::string_view line, std::string_view variable, double number) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!(variable.empty() ? tokens[i].is_identifier() : tokens[i].is(variable))) continue;
    std::size_t at = behind_subscripts(tokens, i + 1);
    if (at >= tokens.size() || !tokens[at].is("=")) continue;
    bool chooses = false;
    for (; at < tokens.size() && !tokens[at].is(";"); ++at) {
      chooses = chooses || tokens[at].is("?");
      if (!chooses || tokens[at].kind != TokenKind::kNumber) continue;
      const bool negative = tokens[at - 1].is("-");
      const bool alone = tokens[at - (negative ? 2 : 1)].is_any({"?", ":"});
      const double written = std::strtod(std::string(tokens[at].text).c_str(), nullptr);
      if (alone && (negative ? -written : written) == number) return true;
    }
  }
  return false;
}

std::string stored_name(std::string_view line, std::string_view array) {
  const std::vector<Token> tokens = tokens_of(line);
  bool is_of_array = array.empty();
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (tokens[i].is(";")) is_of_array = array.empty();
    if (tokens[i].is(array)) is_of_array = true;
    if (is_of_array && i > 0 && tokens[i].is("=") && tokens[i - 1].is("]") &&
        tokens[i + 1].is_identifier() && tokens[i + 2].is(";"))
      return std::string(tokens[i + 1].text);
  }
  return "";
}

std::vector<std::string> divisor_arrays(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].is("/")) continue;
    std::size_t at = i + 1;
    while (at + 2 < tokens.size() && tokens[at + 1].is_any({".", "->"})) at += 2;
    if (at + 1 < tokens.size() && tokens[at].is_identifier() && tokens[at + 1].is("["))
      names.emplace_back(tokens[at].text);
  }
  return names;
}

namespace {

// Where the subscripts begin of the variable at i; of "(&tile[0][0])[n]" those behind the parenthesis.
std::size_t subscripts_of(const std::vector<Token>& tokens, std::size_t i) {
  std::size_t end = i + 1;
  if (i < 2 || !tokens[i - 1].is("&") || !tokens[i - 2].is("(")) return end;
  end = behind_subscripts(tokens, end);
  const bool goes_on = end + 1 < tokens.size() && tokens[end].is(")") && tokens[end + 1].is("[");
  return goes_on ? end + 1 : i + 1;
}

}  // namespace

bool is_plain_subscript(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i)
    if (tokens[i].is_any({"load", "store"}) && tokens[i + 1].is("(") &&
        tokens[i + 2].is(variable) && tokens[i + 3].is_any({",", ")"}))
      return true;
  bool found = false;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    const std::size_t begin = subscripts_of(tokens, i);
    if (begin >= tokens.size() || !tokens[begin].is("[")) continue;
    found = true;
    int depth = 1;
    for (std::size_t j = begin + 1; j < tokens.size() && depth > 0; ++j) {
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

std::vector<std::string> multiplied_in_subscripts(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    depth += tokens[i].is("[") ? 1 : tokens[i].is("]") ? -1 : 0;
    const bool multiplies =
        (i > 0 && tokens[i - 1].is("*")) || (i + 1 < tokens.size() && tokens[i + 1].is("*"));
    if (depth > 0 && multiplies && is_variable(tokens, i)) names.emplace_back(tokens[i].text);
  }
  return names;
}

std::vector<std::string> added_in_subscripts(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    depth += tokens[i].is("[") ? 1 : tokens[i].is("]") ? -1 : 0;
    if (i > 0 && depth > 0 && tokens[i - 1].is_any({"[", "+"}) &&
        tokens[i + 1].is_any({"]", "+"}) && is_variable(tokens, i))
      names.emplace_back(tokens[i].text);
  }
  return names;
}

bool makes_pointer(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 1; i + 3 < tokens.size(); ++i)
    if (tokens[i].is(variable) && tokens[i + 1].is("=") && !tokens[i + 3].is(";")) {
      std::size_t at = i - 1;
      while (at > 0 && tokens[at].is_any({"const", "__restrict__"})) --at;
      if (tokens[at].is("*")) return true;
    }
  return false;
}

std::vector<std::string> indexed_names(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> out;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i].is_identifier() && tokens[i + 1].is("[")) out.emplace_back(tokens[i].text);
  return out;
}

std::vector<std::string> indexed_members(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> out;
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i)
    if (tokens[i].is_identifier() && tokens[i + 1].is("[") && tokens[i - 1].is_any({".", "->"}))
      out.emplace_back(tokens[i].text);
  return out;
}

std::vector<std::string> row_names(std::string_view line, std::string_view array) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> out;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(array) || !tokens[i + 1].is("[")) continue;
    const std::size_t end = behind_bracket(tokens, i + 1);
    for (std::size_t j = i + 2; j < end; ++j) {
      if (!tokens[j].is("(")) continue;
      const std::size_t behind = behind_bracket(tokens, j);
      if (behind >= end || !tokens[behind].is("*")) continue;
      for (std::size_t in = j + 1; in + 1 < behind; ++in)
        if (tokens[in].is_identifier()) out.emplace_back(tokens[in].text);
    }
  }
  return out;
}

std::string extents_of(std::string_view line, std::string_view array) {
  const std::vector<Token> tokens = tokens_of(line);
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is(array)) continue;
    const std::size_t end = behind_subscripts(tokens, i + 1);
    while (++i < end) out += tokens[i].text;
    break;
  }
  return out;
}

std::vector<std::string> subscript_names(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> out;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    for (std::size_t j = subscripts_of(tokens, i); j < tokens.size() && tokens[j].is("[");) {
      const std::size_t end = behind_bracket(tokens, j);
      for (; j < end; ++j)
        if (tokens[j].is_identifier() &&
            std::find(out.begin(), out.end(), tokens[j].text) == out.end())
          out.emplace_back(tokens[j].text);
    }
  }
  return out;
}

std::string subscript_name(std::string_view line, std::string_view array, std::size_t number) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    if (!tokens[i].is(array)) continue;
    std::size_t at = subscripts_of(tokens, i);
    for (std::size_t n = 0; n < number && at < tokens.size() && tokens[at].is("["); ++n)
      at = behind_bracket(tokens, at);
    if (at + 2 < tokens.size() && tokens[at].is("[") && tokens[at + 1].is_identifier() &&
        tokens[at + 2].is("]"))
      return std::string(tokens[at + 1].text);
  }
  return {};
}

bool offsets_subscript(std::string_view line, std::string_view variable, std::size_t number) {
  const std::vector<Token> tokens = tokens_of(line);
  // A number that is no factor.
  const auto is_number = [&](std::size_t i) {
    return tokens[i].text[0] >= '1' && tokens[i].text[0] <= '9' &&
           !tokens[i - 1].is_any({"*", "/", "%"}) && !tokens[i + 1].is_any({"*", "/", "%"});
  };
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    std::size_t begin = subscripts_of(tokens, i), end = begin;
    for (std::size_t n = 0; begin < tokens.size() && tokens[begin].is("["); ++n, begin = end) {
      end = behind_bracket(tokens, begin);
      for (std::size_t j = begin + 2; n == number && j + 1 < end; ++j)
        if (tokens[j].is_any({"+", "-"}) && (is_number(j - 1) || is_number(j + 1))) return true;
    }
  }
  return false;
}

bool is_plain_offset(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    const std::size_t first = tokens[i].is(variable) ? name_at(tokens, i) + 1 : 0;
    if (first <= i + 1 || first >= tokens.size() || !tokens[first - 1].is("+")) continue;
    // "base + at + d"
    std::size_t end = name_at(tokens, first);
    while (end > first && end + 1 < tokens.size() && tokens[end].is("+") &&
           name_at(tokens, end + 1) > end + 1)
      end = name_at(tokens, end + 1);
    if (end > first && end < tokens.size() && tokens[end].is_any({",", ")"})) return true;
  }
  return false;
}

bool computes(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    const Token& next = tokens[i + 1];
    if (next.text.size() > 1 && next.text.back() == '=' && !next.is_any({"==", "<=", ">=", "!="}))
      return true;
    if (!next.is("=")) continue;
    if (i + 2 == tokens.size()) return true;  // what it is stands in the next line
    std::size_t end = is_operand(tokens[i + 2]) ? std::max(name_at(tokens, i + 2), i + 3) : i + 2;
    // "n = lengths[b];" computes as little.
    if (end + 2 < tokens.size() && tokens[end].is("[") && is_operand(tokens[end + 1]) &&
        tokens[end + 2].is("]"))
      end += 3;
    return end == i + 2 || end >= tokens.size() || !tokens[end].is_any({",", ";", ")"});
  }
  return false;
}

}  // namespace attn_diag::lines
