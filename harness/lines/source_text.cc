#include "harness/lines/source_text.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "harness/toolchain/source/source_error.h"

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

// What stands behind "for ("; the number of tokens: there is none.
std::size_t loop_at(const std::vector<Token>& tokens) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i].is("for") && tokens[i + 1].is("(")) return i + 2;
  return tokens.size();
}

// The arguments of "for i in range(...)" of Python, each from its first token to behind its last.
using Range = std::pair<std::size_t, std::size_t>;
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

// Behind the bracket that closes the one at i.
std::size_t behind_bracket(const std::vector<Token>& tokens, std::size_t i) {
  int depth = 0;
  for (; i < tokens.size(); ++i) {
    if (tokens[i].is_any({"(", "[", "{"})) ++depth;
    if (tokens[i].is_any({")", "]", "}"}) && --depth == 0) return i + 1;
  }
  return i;
}

// Where the parentheses begin that end before the brace at i, as those of a function's parameters do; 0: none do.
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

// Behind the statement that begins at i.
std::size_t behind_statement(const std::vector<Token>& tokens, std::size_t i) {
  while (i < tokens.size() && tokens[i].kind == TokenKind::kDirective) ++i;
  if (i >= tokens.size()) return i;
  if (tokens[i].is("{")) return behind_bracket(tokens, i);
  const bool is_if = tokens[i].is("if");
  if (is_if || tokens[i].is_any({"for", "while", "switch"})) {
    while (i < tokens.size() && !tokens[i].is("(")) ++i;
    i = behind_statement(tokens, behind_bracket(tokens, i));
    if (is_if && i < tokens.size() && tokens[i].is("else")) return behind_statement(tokens, i + 1);
    return i;
  }
  if (tokens[i].is("do")) i = behind_statement(tokens, i + 1);
  while (i < tokens.size() && !tokens[i].is_any({";", "}"}))
    i = tokens[i].is_any({"(", "[", "{"}) ? behind_bracket(tokens, i) : i + 1;
  return i < tokens.size() && tokens[i].is(";") ? i + 1 : i;
}

// Whether the line gives the variable a value: "n = 4", "int n = 4", "n += 4", "++n".
bool assigns(const std::vector<Token>& tokens, const std::string& variable) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is(variable) || !is_variable(tokens, i)) continue;
    if (i > 0 && tokens[i - 1].is_any({"++", "--"})) return true;
    if (i + 1 >= tokens.size()) continue;
    const std::string_view next = tokens[i + 1].text;
    if (next == "++" || next == "--") return true;
    if (next.back() == '=' && next != "==" && next != "<=" && next != ">=" && next != "!=")
      return true;
  }
  return false;
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

bool is_barrier(const std::vector<Token>& tokens, std::size_t i) {
  const Token& token = tokens[i];
  const auto has = [&](std::string_view part) { return has_part(token, part); };
  if (token.kind == TokenKind::kString)
    return (has("bar.sync") || has("barrier.") || has("bar.warp.sync") || has("try_wait")) &&
           is_assembly(tokens, i);
  return token.is_identifier() &&
         (token.is_any({"sync", "wait", "arrive_and_wait", "consumer_wait", "bar_sync"}) ||
          has("__syncthreads") || has("__syncwarp") ||
          (has("barrier") && (has("sync") || has("wait"))));
}

// What stands behind the name of a call: its arguments, those of its template first.
std::vector<Token> arguments_behind(const std::vector<Token>& tokens, std::size_t i) {
  std::vector<Token> out;
  int depth = 0;
  for (++i; i < tokens.size() && !tokens[i].is_any({";", "{", "}"}); ++i) {
    const bool opens = tokens[i].is_any({"(", "<", "["}),
               closes = tokens[i].is_any({")", ">", "]"});
    depth += opens ? 1 : closes ? -1 : 0;
    if (depth < 0 || (depth == 0 && !closes)) break;
    if ((!opens || depth > 1) && (!closes || depth > 0)) out.push_back(tokens[i]);
    if (depth == 0 && tokens[i].is(")")) break;
  }
  return out;
}

bool has_number(const std::vector<Token>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [](const Token& token) { return token.kind == TokenKind::kNumber; });
}

// Whether a function is called there, or a macro stands there.
bool is_use(const std::vector<Token>& tokens, std::size_t i) {
  if (!tokens[i].is_identifier() || i + 1 >= tokens.size()) return false;
  if (tokens[i + 1].is_any({"<", ";"})) return true;
  if (!tokens[i + 1].is("(")) return false;
  const std::size_t end = behind_bracket(tokens, i + 1);  // where it is not defined there
  return end >= tokens.size() || !tokens[end].is("{");
}

// From the brace of the function that the line is in to behind its last; none: no tokens.
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

// Of a copy of the file the same places, with white space for what is no code: comments, and what strings hold.
std::string code_of_cpp(const std::string& text, const std::vector<Token>& tokens) {
  std::string code = text;
  const auto blank = [&](std::size_t begin, std::size_t end) {
    for (; begin < end; ++begin)
      if (code[begin] != '\n' && code[begin] != '\r') code[begin] = ' ';
  };
  std::size_t at = 0;
  for (const Token& token : tokens) {
    blank(at, token.begin);
    at = token.end;
    const std::size_t first = text.find('"', token.begin), last = text.rfind('"', token.end - 1);
    if (token.kind == TokenKind::kString && first < last) blank(first + 1, last);
  }
  blank(at, code.size());
  return code;
}

std::string code_of_python(const std::string& text) {
  std::string code = text;
  std::string open;  // the quotes of the string that it is in
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto is_at = [&](std::string_view what) {
      return text.compare(i, what.size(), what) == 0;
    };
    if (!open.empty()) {
      if (is_at(open)) {
        i += open.size() - 1;
        open.clear();
      } else if (code[i] == '\n') {
        if (open.size() == 1) open.clear();
      } else {
        if (code[i] == '\\' && i + 1 < code.size() && code[i + 1] != '\n') code[i++] = ' ';
        code[i] = ' ';
      }
    } else if (code[i] == '#') {
      for (; i < code.size() && code[i] != '\n'; ++i) code[i] = ' ';
    } else if (code[i] == '"' || code[i] == '\'') {
      open.assign(is_at(std::string(3, code[i])) ? 3 : 1, code[i]);
      i += open.size() - 1;
    }
  }
  return code;
}

// The statements of a file, each from its first token to behind its last. Of loops and conditions the heads.
std::vector<Range> statements_of(const std::vector<Token>& tokens) {
  std::vector<Range> out;
  std::vector<int> outer;  // how deep in parentheses each open brace is
  int depth = 0;
  bool is_head = false;
  std::size_t begin = 0;
  const auto end_at = [&](std::size_t end) {
    if (begin < end) out.emplace_back(begin, end);
    begin = end;
    is_head = false;
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::kDirective) {
      if (depth == 0) end_at(i);
      if (depth == 0) begin = i + 1;
    } else if (tokens[i].is("{")) {
      end_at(i);
      begin = i + 1;
      outer.push_back(std::exchange(depth, 0));
    } else if (tokens[i].is("}")) {
      end_at(i);
      begin = i + 1;
      depth = outer.empty() ? 0 : outer.back();
      if (!outer.empty()) outer.pop_back();
    } else if (tokens[i].is_any({"(", "["})) {
      ++depth;
    } else if (tokens[i].is_any({")", "]"})) {
      depth = std::max(depth - 1, 0);
      if (depth == 0 && is_head) end_at(i + 1);
    } else if (depth == 0 && tokens[i].is(";")) {
      end_at(i + 1);
    } else if (depth == 0 && tokens[i].is_any({"for", "while", "if", "switch"})) {
      is_head = true;
    }
  }
  end_at(tokens.size());
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

bool is_variable(const std::vector<Token>& tokens, std::size_t i) {
  if (!tokens[i].is_identifier()) return false;
  const bool is_call = i + 1 < tokens.size() && tokens[i + 1].is_any({"(", "<"});
  const bool is_member = i > 0 && tokens[i - 1].is_any({".", "->", "::"});
  return !is_call && !is_member;
}

bool is_loop(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  return loop_at(tokens) < tokens.size() || !range_arguments(tokens).empty();
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

bool launches(std::string_view line) { return line.find("<<<") != line.npos; }

bool has_name(std::string_view line, const std::vector<std::string>& names) {
  const std::vector<Token> tokens = tokens_of(line);
  return std::any_of(tokens.begin(), tokens.end(), [&](const Token& token) {
    return std::find(names.begin(), names.end(), token.text) != names.end();
  });
}

std::vector<std::string> tested_names(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  std::size_t i = 0;
  while (i + 1 < tokens.size() && !(tokens[i].is("if") && tokens[i + 1].is("("))) ++i;
  int depth = 0;
  for (++i; i < tokens.size(); ++i) {
    depth += tokens[i].is("(") ? 1 : tokens[i].is(")") ? -1 : 0;
    if (depth == 0) break;
    const bool has_member = i + 1 < tokens.size() && tokens[i + 1].is_any({".", "->", "::"});
    if (is_variable(tokens, i) && !has_member) names.emplace_back(tokens[i].text);
  }
  return names;
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
    std::size_t end = i + 1;
    while (end < tokens.size() && tokens[end].is("[")) end = behind_bracket(tokens, end);
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
  for (i += 2; i < tokens.size() && !tokens[i].is(";"); ++i) {
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

bool chooses_by_name(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 2; i < tokens.size(); ++i)
    if (tokens[i].is("?") && is_variable(tokens, i - 1) &&
        tokens[i - 2].is_any({"=", "(", ",", "return"}))
      return true;
  return false;
}

std::vector<std::string> subtracted_names(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> names;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    if (tokens[i - 1].is("-") && is_variable(tokens, i)) names.emplace_back(tokens[i].text);
  return names;
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
  std::size_t i = 0;
  while (i + 1 < tokens.size() && !(tokens[i].is("if") && tokens[i + 1].is("("))) ++i;
  if (i + 1 >= tokens.size()) return false;
  const std::size_t end = behind_bracket(tokens, i + 1);
  const bool leaves = end < tokens.size() && tokens[end].is_any({"return", "continue", "break"});
  return std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(i),
                     tokens.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](const Token& token) { return token.is(leaves ? ">" : "<="); });
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
      while (type > 0 && !tokens[type - 1].is_any({";", "{", "("})) --type;
      while (tokens[type].is_any({"const", "static", "constexpr", "__shared__"})) ++type;
      if (type + 1 >= i || !tokens[type + 1].is_identifier()) continue;
    }
    if (is_integer(tokens[type])) return true;
    if (tokens[type].is_identifier() && !tokens[type].is_any({"return", "else", "auto", "const"}))
      return false;
  }
  return std::nullopt;
}

bool SourceText::is_integer(const std::string& file, int number, std::string_view variable) {
  for (int at = number; at > 0 && at > number - kFurthest; --at)
    if (const std::optional<bool> declared = declares_integer(line(file, at), variable))
      return *declared;
  return false;
}

bool takes_minimum(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i)
    if (tokens[i].is(variable) && tokens[i + 1].is("="))
      for (std::size_t j = i + 2; j < tokens.size() && !tokens[j].is_any({";", "="}); ++j)
        if (tokens[j].is_any({"fminf", "fmin", "min", "minimum", "__hmin", "__hmin2"})) return true;
  return false;
}

bool may_choose(std::string_view line, std::string_view variable, double number) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!(variable.empty() ? tokens[i].is_identifier() : tokens[i].is(variable))) continue;
    std::size_t at = i + 1;
    while (at < tokens.size() && tokens[at].is("[")) at = behind_bracket(tokens, at);
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

std::string stored_name(std::string_view line) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 1; i + 2 < tokens.size(); ++i)
    if (tokens[i].is("=") && tokens[i - 1].is("]") && tokens[i + 1].is_identifier() &&
        tokens[i + 2].is(";"))
      return std::string(tokens[i + 1].text);
  return "";
}

bool is_plain_subscript(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i)
    if (tokens[i].is_any({"load", "store"}) && tokens[i + 1].is("(") &&
        tokens[i + 2].is(variable) && tokens[i + 3].is_any({",", ")"}))
      return true;
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

std::vector<std::string> subscript_names(std::string_view line, std::string_view variable) {
  const std::vector<Token> tokens = tokens_of(line);
  std::vector<std::string> out;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    for (std::size_t j = i + 1; j < tokens.size() && tokens[j].is("[");) {
      const std::size_t end = behind_bracket(tokens, j);
      for (; j < end; ++j)
        if (tokens[j].is_identifier() &&
            std::find(out.begin(), out.end(), tokens[j].text) == out.end())
          out.emplace_back(tokens[j].text);
    }
  }
  return out;
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
    std::size_t begin = i + 1, end = begin;
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
    if (!tokens[i].is(variable) || !tokens[i + 1].is("+")) continue;
    const std::size_t end = name_at(tokens, i + 2);
    if (end > i + 2 && end < tokens.size() && tokens[end].is_any({",", ")"})) return true;
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
    const std::size_t end =
        is_operand(tokens[i + 2]) ? std::max(name_at(tokens, i + 2), i + 3) : i + 2;
    return end == i + 2 || end >= tokens.size() || !tokens[end].is_any({",", ";", ")"});
  }
  return false;
}

SourceText::File& SourceText::file_of(const std::string& file) {
  const auto [found, is_new] = x_files.try_emplace(file);
  File& one = found->second;
  if (!is_new) return one;
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  one.text = text.str();
  one.written = lines_of(one.text);
  const bool is_python = file.ends_with(".py");
  try {
    one.tokens = source::tokenize(one.text, file);
    one.code = is_python ? one.written : lines_of(code_of_cpp(one.text, one.tokens.tokens));
  } catch (const source::SourceError&) {
    one.code = one.written;  // its lines are there all the same
  }
  if (!is_python) one.statements = statements_of(one.tokens.tokens);
  if (is_python) one.code = lines_of(code_of_python(one.text));
  return one;
}

void SourceText::note_bodies(const std::string& file) {
  File& one = file_of(file);
  if (one.bodies_known) return;
  one.bodies_known = true;
  const std::vector<Token>& tokens = one.tokens.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::kDirective) {
      const std::vector<Token> words = tokens_of(tokens[i].text.substr(1));
      if (words.size() > 1 && words[0].is("define"))
        x_bodies[std::string(words[1].text)].emplace_back(words.begin() + 2, words.end());
      if (words.size() > 1 && words[0].is("include") && words[1].kind == TokenKind::kString)
        note_included(file, source::string_value(words[1].text));
    }
    const std::size_t header = tokens[i].is("{") ? parentheses_before(tokens, i) : 0;
    if (header == 0) continue;
    std::size_t name = header - 1;
    // "const auto wait = [&](int n) {"
    if (tokens[name].is("]")) {
      while (name > 0 && !tokens[name].is("[")) --name;
      if (name < 2 || !tokens[name - 1].is("=")) continue;
      name -= 2;
    }
    if (!tokens[name].is_identifier() || tokens[name].is_any({"if", "for", "while", "switch"}))
      continue;
    const std::size_t end = behind_bracket(tokens, i);
    x_bodies[std::string(tokens[name].text)].emplace_back(
        tokens.begin() + static_cast<std::ptrdiff_t>(i),
        tokens.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

void SourceText::note_included(const std::string& by, const std::string& name) {
  // Beside it, or from a folder above.
  std::filesystem::path folder = std::filesystem::path(by).parent_path();
  for (int steps = 0; steps < 4; ++steps, folder = folder.parent_path()) {
    std::error_code failed;
    const std::filesystem::path path = (folder / name).lexically_normal();
    if (std::filesystem::is_regular_file(path, failed)) return note_bodies(path.string());
    if (folder == folder.parent_path()) return;
  }
}

const std::vector<std::vector<Token>>* SourceText::bodies_of(std::string_view name) const {
  const auto found = x_bodies.find(name);
  return found == x_bodies.end() ? nullptr : &found->second;
}

bool SourceText::is_barrier_at(const std::vector<Token>& tokens, std::size_t i, int depth) const {
  if (is_barrier(tokens, i)) return true;
  const std::vector<std::vector<Token>>* bodies =
      depth > 0 && is_use(tokens, i) ? bodies_of(tokens[i].text) : nullptr;
  return bodies != nullptr &&
         std::any_of(bodies->begin(), bodies->end(), [&](const std::vector<Token>& body) {
           for (std::size_t at = 0; at < body.size(); ++at)
             if (is_barrier_at(body, at, depth - 1)) return true;
           return false;
         });
}

SourceText::WaitsFor SourceText::waits_for(const std::vector<Token>& tokens, std::size_t i,
                                           int depth) const {
  std::string text(tokens[i].text);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto has = [&](const char* part) { return text.find(part) != text.npos; };
  if (tokens[i].kind == TokenKind::kString) {
    if ((!has("cp.async.wait") && !has("cp.async.bulk.wait")) || !is_assembly(tokens, i))
      return WaitsFor::kNone;
    if (has("wait_all")) return WaitsFor::kAll;
    std::size_t at = text.find("wait_group");
    at = at == text.npos ? at : text.find_first_of("%0123456789", at);
    if (at == text.npos) return WaitsFor::kNone;
    if (text[at] == '%') {
      // ":: "n"(1)"
      const bool given = i + 2 < tokens.size() && tokens[i + 1].is(":");
      std::size_t value = given ? i + 1 : tokens.size();
      while (value < tokens.size() && !tokens[value].is("(")) ++value;
      if (value + 1 >= tokens.size() || tokens[value + 1].kind != TokenKind::kNumber)
        return WaitsFor::kByArgument;
      return tokens[value + 1].is("0") ? WaitsFor::kAll : WaitsFor::kSome;
    }
    return text[at] == '0' ? WaitsFor::kAll : WaitsFor::kSome;
  }
  if (!tokens[i].is_identifier()) return WaitsFor::kNone;
  if (!is_use(tokens, i)) return WaitsFor::kNone;
  const std::vector<std::vector<Token>>* bodies = bodies_of(tokens[i].text);
  const std::vector<Token> arguments = arguments_behind(tokens, i);
  const auto by_argument = [&] {
    const bool one =
        !arguments.empty() && std::none_of(arguments.begin(), arguments.end(),
                                           [](const Token& token) { return token.is(","); });
    if (!one) return WaitsFor::kNone;  // not known
    return arguments.size() == 1 && arguments[0].is("0") ? WaitsFor::kAll : WaitsFor::kSome;
  };
  if (bodies != nullptr) {
    bool all = false, some = false, argument = false;
    for (const std::vector<Token>& body : *bodies)
      for (std::size_t at = 0; at < body.size() && depth > 0; ++at) {
        const WaitsFor one = waits_for(body, at, depth - 1);
        const bool named = one == WaitsFor::kSome && body[at].is_identifier() &&
                           !has_number(arguments_behind(body, at));
        all = all || one == WaitsFor::kAll;
        some = some || (one == WaitsFor::kSome && !named);
        argument = argument || one == WaitsFor::kByArgument || named;
      }
    if (argument || (all && some)) return by_argument();
    return all ? WaitsFor::kAll : some ? WaitsFor::kSome : WaitsFor::kNone;
  }
  const bool member = i > 0 && tokens[i - 1].is_any({".", "->"});
  if (!has("wait")) return WaitsFor::kNone;
  if (has("wait_all")) return WaitsFor::kAll;
  if (text == "wait") return member ? WaitsFor::kSome : WaitsFor::kAll;
  if (has("consumer")) return WaitsFor::kSome;
  return has("async") || has("pipeline") || has("prior") || has("group") || has("copy")
             ? by_argument()
             : WaitsFor::kNone;
}

const std::string& SourceText::line(const std::string& file, int number) {
  static const std::string none;
  const std::vector<std::string>& lines = file_of(file).code;
  const auto i = static_cast<std::size_t>(number);
  return i == 0 || i > lines.size() ? none : lines[i - 1];
}

const std::string& SourceText::statement(const std::string& file, int number) {
  File& one = file_of(file);
  const auto [known, is_new] = one.by_line.try_emplace(number);
  std::string& text = known->second;
  if (!is_new) return text;
  text = line(file, number);
  const std::vector<Token>& tokens = one.tokens.tokens;
  int first = number, last = number;
  for (const auto& [begin, end] : one.statements) {
    if (tokens[begin].line > number || tokens[end - 1].line < number) continue;
    first = std::min(first, tokens[begin].line);
    last = std::max(last, tokens[end - 1].line);
  }
  if (first == last) return text;
  text.clear();
  for (const auto& [begin, end] : one.statements) {
    if (tokens[begin].line > number || tokens[end - 1].line < number) continue;
    for (std::size_t i = begin; i < end; ++i) {
      const bool apart = i > begin && tokens[i].begin > tokens[i - 1].end;
      if (apart || (i == begin && !text.empty())) text += ' ';
      text += tokens[i].kind == TokenKind::kString ? std::string_view("\"\"") : tokens[i].text;
    }
  }
  return text;
}

const std::string& SourceText::written(const std::string& file, int number) {
  static const std::string none;
  const std::vector<std::string>& lines = file_of(file).written;
  const auto i = static_cast<std::size_t>(number);
  return i == 0 || i > lines.size() ? none : lines[i - 1];
}

bool SourceText::is_comment(const std::string& file, int number) {
  const auto is_blank = [](const std::string& text) {
    return text.find_first_not_of(" \t\r") == text.npos;
  };
  return is_blank(line(file, number)) && !is_blank(written(file, number));
}

int SourceText::end_of_statement(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto first = std::find_if(tokens.begin(), tokens.end(),
                                  [&](const Token& token) { return token.line >= number; });
  if (first == tokens.end() || first->line != number) return number;
  // "int n = 4; for (...)": that of the loop.
  auto begin = first;
  while (begin != tokens.end() && begin->line == number &&
         !begin->is_any({"for", "while", "if", "do", "switch"}))
    ++begin;
  if (begin == tokens.end() || begin->line != number) begin = first;
  const std::size_t end =
      behind_statement(tokens, static_cast<std::size_t>(begin - tokens.begin()));
  return std::max(number, tokens[end - 1].line);
}

std::vector<Statement> SourceText::statements_around(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  std::vector<Statement> out;
  for (std::size_t i = 0; i < tokens.size() && tokens[i].line <= number; ++i) {
    const bool loop = tokens[i].is_any({"for", "while", "do"});
    if (!loop && !tokens[i].is_any({"if", "switch"})) continue;
    const Statement one = {tokens[i].line, tokens[behind_statement(tokens, i) - 1].line, loop};
    if (one.has(number)) out.push_back(one);
  }
  return out;
}

int SourceText::assigned_above(const std::string& file, int number, const std::string& variable) {
  for (int at = number - 1; at > 0 && at > number - kFurthest; --at) {
    const std::string& words = line(file, at);
    if (!words.empty() && words[0] == '}') return 0;
    if (assigns(tokens_of(words), variable)) return at;
  }
  return 0;
}

std::vector<int> SourceText::lines_that_launch(const std::string& file) {
  std::vector<int> found;
  const int count = static_cast<int>(file_of(file).code.size());
  for (int at = 1; at <= count; ++at)
    if (launches(line(file, at))) found.push_back(at);
  return found;
}

int SourceText::end_of_block(const std::string& file, int number) {
  const auto margin = [&](int at) { return line(file, at).find_first_not_of(" \t"); };
  const std::size_t own = margin(number);
  const int count = static_cast<int>(file_of(file).code.size());
  int last = 0;
  for (int at = number + 1; at <= count && own != std::string::npos; ++at) {
    const std::size_t theirs = margin(at);
    if (theirs == std::string::npos || line(file, at)[theirs] == '#') continue;
    if (theirs <= own) break;
    if (line(file, at).substr(theirs) != "pass") last = at;
  }
  return last;
}

int SourceText::behind_block(const std::string& file, int number) {
  const auto margin = [&](int at) { return line(file, at).find_first_not_of(" \t"); };
  const std::size_t own = margin(number);
  const int count = static_cast<int>(file_of(file).code.size());
  for (int at = number + 1; at <= count && own != std::string::npos; ++at) {
    const std::size_t theirs = margin(at);
    if (theirs != std::string::npos && theirs <= own && line(file, at)[theirs] != '#' &&
        line(file, at).substr(theirs) != "pass")
      return at;
  }
  return 0;
}

bool SourceText::is_shared(const std::string& file, std::string_view variable) {
  bool declares = false;
  for (const Token& token : file_of(file).tokens.tokens) {
    if (token.is("__shared__")) declares = true;
    if (token.is(";")) declares = false;
    if (declares && token.is(variable)) return true;
  }
  return false;
}

std::vector<int> SourceText::lines_that_store(const std::string& file, std::string_view variable) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  std::vector<int> out;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(variable)) continue;
    std::size_t end = i + 1;
    while (end + 1 < tokens.size() && tokens[end].is_any({".", "->"}) &&
           tokens[end + 1].is_identifier())
      end += 2;
    if (end >= tokens.size() || !tokens[end].is("[")) continue;
    while (end < tokens.size() && tokens[end].is("[")) end = behind_bracket(tokens, end);
    const bool assigns = end < tokens.size() && tokens[end].is_any({"=", "+=", "-=", "*=", "/="});
    const bool hands_on = i > 1 && tokens[i - 1].is("&") && tokens[i - 2].is_any({"(", ","});
    if ((assigns || hands_on) && (out.empty() || out.back() != tokens[i].line))
      out.push_back(tokens[i].line);
  }
  return out;
}

std::vector<int> SourceText::lines_that_call(const std::string& file, int number,
                                             std::string_view part, std::string_view variable) {
  std::vector<int> above, below;
  const int count = static_cast<int>(file_of(file).code.size());
  for (int at = 1; at <= count; ++at) {
    if (line(file, at).find(part) == std::string::npos) continue;
    const std::vector<std::vector<std::string>> arguments = arguments_of(line(file, at), part);
    if (arguments.empty() ||
        std::find(arguments[0].begin(), arguments[0].end(), variable) == arguments[0].end())
      continue;
    (at <= number ? above : below).push_back(at);
  }
  std::reverse(above.begin(), above.end());
  above.insert(above.end(), below.begin(), below.end());
  return above;
}

bool SourceText::has_barrier(const std::string& file, int after, int before, bool of_block) {
  note_bodies(file);
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].line > after && tokens[i].line < before &&
        !(of_block && (has_part(tokens[i], "__syncwarp") || has_part(tokens[i], "bar.warp"))) &&
        is_barrier_at(tokens, i, kDepth))
      return true;
  return false;
}

std::vector<int> SourceText::waits_for_copies(const std::string& file, int number) {
  note_bodies(file);
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  std::vector<int> above, behind;
  int end = number;
  for (const Statement& around : statements_around(file, number))
    if (around.loop) end = std::max(end, around.end);
  const auto [first, last] = function_around(tokens, number);
  for (std::size_t i = first; i < last && tokens[i].line <= end; ++i) {
    const int at = tokens[i].line;
    const WaitsFor what = waits_for(tokens, i, kDepth);
    if (at == number || what == WaitsFor::kNone || what == WaitsFor::kAll) continue;
    std::vector<int>& out = at < number ? above : behind;
    if (out.empty() || out.back() != at) out.push_back(at);
  }
  std::reverse(above.begin(), above.end());
  above.insert(above.end(), behind.begin(), behind.end());
  return above;
}

std::vector<int> SourceText::returns_above(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  std::vector<int> out;
  std::vector<bool> open;  // braces, and whether a lambda's body is in them
  std::size_t body = 0;    // how many are open where a function's begins; 0: in none
  for (std::size_t i = 0; i < tokens.size() && tokens[i].line < number; ++i) {
    if (tokens[i].is("{")) {
      const std::size_t header = parentheses_before(tokens, i);
      const bool is_lambda = header > 0 && tokens[header - 1].is("]");
      const bool is_function = header > 0 && body == 0 && !is_lambda;
      open.push_back((!open.empty() && open.back()) || is_lambda);
      if (is_function) {
        body = open.size();
        out.clear();
      }
    } else if (tokens[i].is("}") && !open.empty()) {
      if (open.size() == body) {
        body = 0;
        out.clear();
      }
      open.pop_back();
    } else if (tokens[i].is("return") && i + 1 < tokens.size() && tokens[i + 1].is(";") &&
               body > 0 && !open.back()) {
      out.push_back(tokens[i].line);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

bool SourceText::passes_barrier(const std::string& file, int after, int before) {
  note_bodies(file);
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int at = tokens[i].line;
    if (at <= after || at >= before || !is_barrier_at(tokens, i, kDepth)) continue;
    const std::vector<Statement> around = statements_around(file, at);
    if (std::all_of(around.begin(), around.end(),
                    [&](const Statement& one) { return one.has(after) || one.has(before); }))
      return true;
  }
  return false;
}

}  // namespace attn_diag::lines
