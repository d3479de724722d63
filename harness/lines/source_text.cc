#include "harness/lines/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "harness/lines/line_tokens.h"
#include "harness/toolchain/source/source_error.h"

namespace attn_diag::lines {
namespace {

using source::Token;
using source::TokenKind;

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

// "-INFINITY;", "-FLT_MAX;", "-1e9f;", "NEG_INF;", with that end.
bool is_minus_infinite(const std::vector<Token>& tokens, std::size_t at,
                       std::string_view end = ";") {
  const bool minus = at < tokens.size() && tokens[at].is("-");
  if (minus) ++at;
  if (at + 1 >= tokens.size() || !tokens[at + 1].is(end)) return false;
  std::string text(tokens[at].text);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  if (tokens[at].is_identifier())
    return minus ? text.find("INF") != text.npos || text.find("MAX") != text.npos
                 : text.find("NEG") != text.npos && text.find("INF") != text.npos;
  return minus && std::strtod(text.c_str(), nullptr) >= 1e4;
}

// Whether what is assigned from here on is a choice, one side of which is minus infinity: "j < n ? s : -INFINITY;".
bool chooses_minus_infinity(const std::vector<Token>& tokens, std::size_t at) {
  for (; at + 1 < tokens.size() && !tokens[at].is_any({";", "{", "}"}); ++at)
    if ((tokens[at].is(":") && is_minus_infinite(tokens, at + 1)) ||
        (tokens[at].is("?") && is_minus_infinite(tokens, at + 1, ":")))
      return true;
  return false;
}

}  // namespace

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

std::string SourceText::trimmed(const std::string& file, int number) {
  const std::string& words = written(file, number);
  const std::size_t begin = words.find_first_not_of(" \t");
  return begin == std::string::npos
             ? ""
             : words.substr(begin, words.find_last_not_of(" \t\r") + 1 - begin);
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

bool SourceText::has_assembly(const std::string& file, int number) {
  const auto has = [&](const std::string& text) {
    return text.starts_with("__asm") || text.find("asm(") != text.npos ||
           text.find("asm volatile") != text.npos;
  };
  return has(statement(file, number)) || has(written(file, number));
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

std::vector<int> SourceText::decided_by_literal(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  std::vector<int> out;
  for (std::size_t i = begin; i + 3 < end; ++i)
    if (tokens[i].is("if") && tokens[i + 1].is("(") && tokens[i + 3].is(")") &&
        tokens[i + 2].is_any({"true", "false", "0", "1"}))
      out.push_back(tokens[i].line);
  return out;
}

std::vector<int> SourceText::without_effect(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  std::vector<int> out;
  for (std::size_t i = begin; i + 1 < end; ++i) {
    const bool loop = tokens[i].is("for");
    if (!loop && !tokens[i].is("if")) continue;
    const std::size_t head = i + (tokens[i + 1].is("constexpr") ? 2 : 1);
    if (!tokens[head].is("(")) continue;
    const std::size_t body = behind_bracket(tokens, head);
    if (body >= end || !tokens[body].is(";") || tokens[body + 1].is("else")) continue;
    // A loop that calls or reads something may wait for it; one without a variable of its own steps another's.
    bool waits = !(tokens[head + 1].is_identifier() && tokens[head + 2].is_identifier());
    for (std::size_t n = head + 1; n < body; ++n)
      waits = waits || tokens[n].is_any({"(", "[", "->"}) ||
              (tokens[n].is(".") &&
               !tokens[n - 1].is_any({"threadIdx", "blockIdx", "blockDim", "gridDim"}));
    if (!loop || !waits) out.push_back(tokens[i].line);
  }
  return out;
}

std::vector<int> SourceText::calls_without_effect(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  std::vector<int> out;
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].is("{")) continue;
    const std::size_t body = tokens[i + 1].is(";") ? i + 2 : i + 1;
    const std::size_t header = tokens[body].is("}") ? parentheses_before(tokens, i) : 0;
    if (header < 2 || !tokens[header - 2].is("void") || tokens[header + 1].is(")")) continue;
    for (std::size_t n = begin; n + 1 < end; ++n)
      if (tokens[n].is(tokens[header - 1].text) && tokens[n + 1].is_any({"(", "<"})) {
        out.push_back(tokens[i + 1].line);
        break;
      }
  }
  return out;
}

std::vector<UnusedName> SourceText::computed_for_nothing(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  return unused_names(tokens, begin, end);
}

std::vector<UnchangedName> SourceText::never_computed(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  return unchanged_names(tokens, begin, end);
}

std::vector<SourceText::Unpaired> SourceText::unpaired_calls(const std::string& file, int number) {
  struct Pair {
    std::string_view first, last;
  };
  constexpr Pair kPairs[] = {{"producer_acquire", "producer_commit"},
                             {"consumer_wait", "consumer_release"}};
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  const auto is_call = [&](std::size_t i, std::string_view object, std::string_view method) {
    return i > 1 && i + 1 < tokens.size() && tokens[i].is(method) && tokens[i + 1].is("(") &&
           tokens[i - 1].is_any({".", "->"}) && tokens[i - 2].is(object);
  };
  std::vector<Unpaired> out;
  for (std::size_t i = begin + 2; i < end; ++i)
    for (const Pair& pair : kPairs) {
      const bool is_first = tokens[i].is(pair.first);
      if (!is_first && !tokens[i].is(pair.last)) continue;
      const std::string_view object = tokens[i - 2].text;
      const std::string_view present = is_first ? pair.first : pair.last;
      const std::string_view missing = is_first ? pair.last : pair.first;
      if (!is_call(i, object, present)) continue;
      bool paired = false;
      for (std::size_t n = 0; n < tokens.size() && !paired; ++n)
        paired = is_call(n, object, missing);
      if (paired) continue;
      std::size_t open = i;
      for (int depth = 0; open > begin && depth >= 0;)
        if (--open; tokens[open].is_any({"{", "}"})) depth += tokens[open].is("}") ? 1 : -1;
      const std::size_t close = behind_bracket(tokens, open) - 1;
      const int line = is_first ? tokens[close - 1].line : tokens[open + 1].line;
      if (std::none_of(out.begin(), out.end(),
                       [&](const Unpaired& one) { return one.line == line; }))
        out.push_back({line, fmt::format("{}.{}()", object, missing),
                       fmt::format("{}.{}()", object, present)});
    }
  return out;
}

std::vector<int> SourceText::masks_of(const std::string& file, int number,
                                      std::string_view variable) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  std::vector<int> out;
  for (std::size_t i = begin; i < end; ++i) {
    if (!tokens[i].is(variable)) continue;
    std::size_t at = i + 1;
    while (at < end && tokens[at].is("[")) at = behind_bracket(tokens, at);
    if (at >= end || !tokens[at].is("=")) continue;
    if (chooses_minus_infinity(tokens, at + 1)) {
      if (std::find(out.begin(), out.end(), tokens[i].line) == out.end())
        out.push_back(tokens[i].line);
      continue;
    }
    if (!is_minus_infinite(tokens, at + 1)) continue;
    const std::vector<Statement> around = statements_around(file, tokens[i].line);
    const auto mask = std::find_if(around.rbegin(), around.rend(),
                                   [](const Statement& one) { return !one.loop; });
    if (mask != around.rend() && std::find(out.begin(), out.end(), mask->begin) == out.end())
      out.push_back(mask->begin);
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

std::vector<int> SourceText::lines_of_function(const std::string& file, std::string_view name) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  std::set<int> lines;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(name) || !tokens[i + 1].is("(")) continue;
    std::size_t begin = behind_bracket(tokens, i + 1);
    while (begin < tokens.size() && tokens[begin].is_any({"const", "noexcept"})) ++begin;
    if (begin >= tokens.size() || !tokens[begin].is("{")) continue;
    const std::size_t end = behind_bracket(tokens, begin);
    for (std::size_t in = begin + 1; in + 1 < end; ++in) lines.insert(tokens[in].line);
  }
  return {lines.begin(), lines.end()};
}

std::vector<SourceText::Lambda> SourceText::lambdas_around(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  std::vector<Lambda> out;
  for (std::size_t i = 1; i + 2 < tokens.size() && tokens[i].line <= number; ++i) {
    if (!tokens[i].is_identifier() || !tokens[i + 1].is("=") || !tokens[i + 2].is("[")) continue;
    Lambda lambda{std::string(tokens[i].text), {}, {}};
    std::size_t body = behind_bracket(tokens, i + 2);
    if (body < tokens.size() && tokens[body].is("(")) {
      const std::size_t open = body;
      body = behind_bracket(tokens, open);
      for (std::size_t in = open + 1; in + 1 < body; ++in)
        if (tokens[in].is_identifier() && tokens[in + 1].is_any({",", ")"}))
          lambda.parameters.emplace_back(tokens[in].text);
    }
    while (body < tokens.size() && !tokens[body].is_any({"{", ";"})) ++body;
    if (body >= tokens.size() || !tokens[body].is("{")) continue;
    const std::size_t end = behind_bracket(tokens, body) - 1;
    if (end >= tokens.size() || tokens[end].line < number) continue;
    lambda.calls = lines_that_name(file, number, lambda.name);
    std::erase_if(lambda.calls, [&](int call) { return call <= tokens[end].line; });
    out.push_back(std::move(lambda));
  }
  return out;
}

std::vector<int> SourceText::lines_that_name(const std::string& file, int number,
                                             std::string_view variable) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  std::set<int> lines;
  for (std::size_t i = begin; i < end; ++i)
    if (tokens[i].is(variable) && !tokens[i - 1].is_any({".", "->"})) lines.insert(tokens[i].line);
  return {lines.begin(), lines.end()};
}

std::vector<int> SourceText::ends_of_functions_that_ignore(const std::string& file,
                                                           std::string_view name) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto has = [&](std::size_t begin, std::size_t end) {
    return std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                       tokens.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Token& token) { return token.is(name); });
  };
  std::vector<int> out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t header = tokens[i].is("{") ? parentheses_before(tokens, i) : 0;
    if (header == 0 || !tokens[header - 1].is_identifier()) continue;
    const std::size_t end = behind_bracket(tokens, i);
    if (has(header, i) && !has(i, end)) out.push_back(tokens[end - 1].line);
    i = end - 1;
  }
  return out;
}

int SourceText::function_begin(const std::string& file, int number) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  return begin < end ? tokens[begin].line : number;
}

std::vector<int> SourceText::lines_that_launch(const std::string& file) {
  std::vector<int> found;
  const int count = static_cast<int>(file_of(file).code.size());
  for (int at = 1; at <= count; ++at)
    if (launches(line(file, at))) found.push_back(at);
  return found;
}

bool SourceText::launches_within(const std::string& file, int number) {
  if (launches(statement(file, number))) return true;
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  int end = number;  // of what is open behind the line
  for (std::size_t i = 0; i < tokens.size() && tokens[i].line <= number; ++i)
    if (tokens[i].line == number && tokens[i].is_any({"(", "{"}))
      if (const std::size_t behind = behind_bracket(tokens, i); behind <= tokens.size())
        end = std::max(end, tokens[behind - 1].line);
  for (int at = number + 1; at <= end; ++at)
    if (launches(line(file, at))) return true;
  return false;
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
  int depth = 0;  // an extent, a template argument, an alignment
  for (const Token& token : file_of(file).tokens.tokens) {
    if (token.is("__shared__")) declares = true, depth = 0;
    if (token.is(";")) declares = false;
    if (token.is_any({"[", "(", "<", "{"})) ++depth;
    if (token.is_any({"]", ")", ">", "}"})) --depth;
    if (declares && depth == 0 && token.is(variable)) return true;
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
    end = behind_subscripts(tokens, end);
    const bool assigns = end < tokens.size() && tokens[end].is_any({"=", "+=", "-=", "*=", "/="});
    std::size_t begin = i;  // "&to.v[0]"
    while (begin > 1 && tokens[begin - 1].is_any({".", "->"})) begin -= 2;
    const bool hands_on =
        begin > 1 && tokens[begin - 1].is("&") && tokens[begin - 2].is_any({"(", ","});
    if ((assigns || hands_on) && (out.empty() || out.back() != tokens[i].line))
      out.push_back(tokens[i].line);
  }
  return out;
}

int SourceText::declares_fragment_above(const std::string& file, int number,
                                        std::string_view variable) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  int found = 0;
  for (std::size_t i = 0; i + 1 < tokens.size() && tokens[i].line <= number; ++i) {
    if (!tokens[i].is("fragment") || !tokens[i + 1].is("<")) continue;
    for (std::size_t at = i + 2; at < tokens.size() && !tokens[at].is_any({";", "{", "}"}); ++at)
      if (tokens[at].is(variable)) found = tokens[i].line;
  }
  return found;
}

std::vector<SourceText::Mover> SourceText::moved_by_block(const std::string& file, int number,
                                                          std::string_view variable) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [begin, end] = function_around(tokens, number);
  std::set<std::string_view> of_block;
  const auto is_of_block = [&](std::size_t at) {
    return of_block.count(tokens[at].text) != 0 ||
           (tokens[at].is("blockIdx") && tokens[at + 2].is_any({"y", "z"}));
  };
  std::vector<Mover> found;
  for (std::size_t i = begin + 1; i + 1 < end && tokens[i].line <= number; ++i) {
    const bool moves = tokens[i + 1].is("+=");
    if (!tokens[i].is_identifier() || (!moves && !tokens[i + 1].is("="))) continue;
    const std::size_t behind = end_of_expression(tokens, i + 2, end);
    bool by_block = false;
    for (std::size_t at = i + 2; at < behind && at + 2 < end; ++at)
      by_block = by_block || is_of_block(at);
    const bool is_pointer = moves || tokens[i - 1].is_any({"*", "__restrict__", "__restrict"});
    if (is_pointer && tokens[i].is(variable)) return {};
    if (by_block && is_pointer)
      found.push_back({std::string(tokens[i].text), tokens[i].line});
    else if (by_block)
      of_block.insert(tokens[i].text);
  }
  return found;
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

int SourceText::declared_above(const std::string& file, int number, std::string_view variable) {
  for (int at = number; at > 0 && at > number - kFurthest; --at)
    if (declares_integer(line(file, at), variable).has_value()) return at;
  return 0;
}

int SourceText::member_declared_above(const std::string& file, int number,
                                      std::string_view member) {
  for (int at = number; at > 0 && at > number - kFurthest; --at)
    if (declares_integer(line(file, at), member).has_value() &&
        !extents_of(line(file, at), member).empty())
      return at;
  return 0;
}

bool SourceText::is_integer(const std::string& file, int number, std::string_view variable) {
  const int at = declared_above(file, number, variable);
  return at != 0 && declares_integer(line(file, at), variable) == true;
}

}  // namespace attn_diag::lines
