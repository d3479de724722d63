#include "harness/lines/crash_lines.h"

#include <algorithm>

#include "harness/lines/source_text.h"
#include "harness/toolchain/source/source_error.h"
#include "harness/toolchain/source/token.h"

namespace attn_diag::lines {

namespace {

using source::Token;

std::vector<Token> tokens_of_line(const std::string& line) {
  try {
    return source::tokenize(line, "").tokens;
  } catch (const source::SourceError&) {
    return {};  // half of a literal
  }
}

bool is_variable(const std::vector<Token>& tokens, std::size_t i) {
  if (!tokens[i].is_identifier()) return false;
  const bool is_call = i + 1 < tokens.size() && tokens[i + 1].is_any({"(", "<"});
  const bool is_member = i > 0 && tokens[i - 1].is_any({".", "->", "::"});
  return !is_call && !is_member;
}

// The variables of an address: within brackets, before them, of a "*" and before "->". Those of a divisor: behind "/"
// and "%".
std::vector<std::string> variables_of(const std::vector<Token>& tokens, CrashOf of) {
  std::vector<std::string> names;
  const auto add = [&](std::size_t i) {
    const std::string name(tokens[i].text);
    if (is_variable(tokens, i) && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  // A name, or all names of a parenthesis.
  const auto add_operand = [&](std::size_t i) {
    if (i < tokens.size() && !tokens[i].is("(")) return add(i);
    int depth = 0;
    for (; i < tokens.size(); ++i) {
      depth += tokens[i].is("(") ? 1 : tokens[i].is(")") ? -1 : 0;
      if (depth == 0) return;
      add(i);
    }
  };
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (of == CrashOf::kDivisor) {
      if (tokens[i].is_any({"/", "%", "/=", "%="})) add_operand(i + 1);
      continue;
    }
    if (tokens[i].is("[")) {
      ++depth;
      if (i > 0) add(i - 1);
    } else if (tokens[i].is("]")) {
      --depth;
    } else if (depth > 0) {
      add(i);
    } else if (tokens[i].is("*") && (i == 0 || (!tokens[i - 1].is_identifier() &&
                                                tokens[i - 1].kind != source::TokenKind::kNumber &&
                                                !tokens[i - 1].is_any({")", "]"})))) {
      add_operand(i + 1);
    } else if (tokens[i].is("->") && i > 0) {
      add(i - 1);
    }
  }
  return names;
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

// The nearest line above in the same function; 0: none.
int assigned_above(SourceText& text, const std::string& file, int line,
                   const std::string& variable) {
  constexpr int kFurthest = 400;
  for (int at = line - 1; at > 0 && at > line - kFurthest; --at) {
    const std::string& words = text.line(file, at);
    if (!words.empty() && words[0] == '}') return 0;
    if (assigns(tokens_of_line(words), variable)) return at;
  }
  return 0;
}

}  // namespace

LineDivergence crash_lines(const std::vector<host::SourcePlace>& stack, CrashOf of,
                           const std::string& what) {
  LineDivergence out;
  SourceText text;
  const auto suggest = [&](const host::SourcePlace& at, int line, const std::string& variable,
                           const std::string& why) {
    const std::string& words = text.line(at.file, line);
    const std::size_t begin = words.find_first_not_of(" \t");
    if (begin == std::string::npos) return;
    const bool known =
        std::any_of(out.suspects.begin(), out.suspects.end(), [&](const LineSuspect& suspect) {
          return suspect.place.line == line && suspect.place.file == at.file;
        });
    if (known) return;
    LineSuspect suspect;
    suspect.place = {at.file, at.function, line, 0, "", variable};
    suspect.place.text = words.substr(begin, words.find_last_not_of(" \t\r") + 1 - begin);
    suspect.why = why;
    out.suspects.push_back(std::move(suspect));
  };
  if (stack.empty()) return out;
  const host::SourcePlace& at = stack.front();
  std::vector<std::pair<std::string, int>> makers;
  bool from_caller = false;
  if (of != CrashOf::kOther)
    for (const std::string& name : variables_of(tokens_of_line(text.line(at.file, at.line)), of)) {
      const int line = assigned_above(text, at.file, at.line, name);
      from_caller = from_caller || line == 0;
      if (line != 0) makers.emplace_back(name, line);
    }
  for (const auto& [name, line] : makers)
    if (of != CrashOf::kDivisor && goes_up_to(text.line(at.file, line)))
      suggest(at, line, name, "lets the index go one step too far");
  suggest(at, at.line, "", of == CrashOf::kBounds ? "is out of bounds" : "crashes");
  if (out.suspects.empty()) return out;
  for (const auto& [name, line] : makers)
    suggest(at, line, name,
            of == CrashOf::kDivisor ? "makes what it divides by" : "makes what it accesses");
  // What those are made of.
  for (const auto& [name, made] : makers) {
    const std::vector<Token> tokens = tokens_of_line(text.line(at.file, made));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!is_variable(tokens, i)) continue;
      const std::string of_it(tokens[i].text);
      if (const int line = assigned_above(text, at.file, made, of_it); line != 0)
        suggest(at, line, of_it, "makes what " + name + " is made of");
    }
  }
  // What has no value there is an argument.
  if (from_caller && stack.size() > 1) suggest(stack[1], stack[1].line, "", "calls it");
  out.answer = LineAnswer::kUnsure;
  out.reason = of == CrashOf::kBounds
                   ? "attn-diag check finds the first access out of bounds there, before the crash"
                   : "the code under test crashed in the first line; what it is made of stands below";
  out.what = what;
  return out;
}

}  // namespace attn_diag::lines
