#include "harness/lines/crash_lines.h"

#include <algorithm>
#include <utility>

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

std::vector<std::string> variables_in(const std::vector<Token>& tokens) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (is_variable(tokens, i)) names.emplace_back(tokens[i].text);
  return names;
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

bool points_into_shared(SourceText& text, const std::string& file,
                        const std::pair<std::string, int>& maker) {
  bool moves = false;
  for (const std::string& name : made_of(text.line(file, maker.second), maker.first, moves))
    if (text.is_shared(file, name)) return true;
  return false;
}

// Operators of arithmetic within the brackets behind the name, or, without brackets, behind the "=" behind it.
int count_operators(const std::vector<Token>& tokens, const std::string& name, bool in_brackets) {
  int operators = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(name) || !tokens[i + 1].is(in_brackets ? "[" : "=")) continue;
    int depth = 0, here = 0;
    for (std::size_t j = i + 1; j < tokens.size() && !tokens[j].is(";"); ++j) {
      depth += tokens[j].is("[") ? 1 : tokens[j].is("]") ? -1 : 0;
      if (in_brackets && depth == 0) break;
      here += tokens[j].is_any({"+", "-", "*", "/", "%"}) ? 1 : 0;
    }
    operators = std::max(operators, here);
  }
  return operators;
}

// A pointer that was made nearby of more than it is indexed with: "float* row = x + i * n;", "row[d]".
bool computes_pointer(const std::string& maker, const std::string& name,
                      const std::vector<Token>& crash) {
  const std::vector<Token> tokens = tokens_of_line(maker);
  const auto points = [&](std::size_t i) {
    return tokens[i].is(name) && i > 0 && tokens[i - 1].is_any({"*", "__restrict__", "const"});
  };
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (points(i)) return count_operators(tokens, name, false) > count_operators(crash, name, true);
  return false;
}

bool is_constant(SourceText& text, const host::SourcePlace& at, int line) {
  const std::string& words = text.line(at.file, line);
  return words.find("constexpr") != std::string::npos ||
         words.find("template") != std::string::npos;
}

// A loop that counts up to what is known when it is compiled.
bool counts_to_constant(SourceText& text, const host::SourcePlace& at, int line) {
  const std::string& loop = text.statement(at.file, line);
  if (!is_loop(loop) || goes_up_to(loop)) return false;
  const std::vector<std::string> limits = loop_limits(loop);
  return std::all_of(limits.begin(), limits.end(), [&](const std::string& name) {
    const int made = text.assigned_above(at.file, line, name);
    return made == 0 || is_constant(text, at, made);
  });
}

bool begins_loop(const std::vector<Token>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.is_any({"for", "while", "do"});
  });
}

void suggest_line(SourceText& text, const host::SourcePlace& at, int line,
                  const std::string& variable, const std::string& why, LineDivergence& out) {
  std::string words = text.trimmed(at.file, line);
  if (words.empty() || text.is_comment(at.file, line)) return;
  const bool known =
      std::any_of(out.suspects.begin(), out.suspects.end(), [&](const LineSuspect& suspect) {
        return suspect.place.line == line && suspect.place.file == at.file;
      });
  if (known) return;
  LineSuspect suspect;
  suspect.place = {at.file, at.function, line, 0, "", variable};
  suspect.place.text = std::move(words);
  suspect.why = why;
  out.suspects.push_back(std::move(suspect));
}

}  // namespace

LineDivergence endless_lines(const std::vector<host::SourcePlace>& stack, const std::string& what) {
  LineDivergence out;
  SourceText text;
  for (const host::SourcePlace& at : stack)
    for (int line = at.line; line > 0 && line > at.line - SourceText::kFurthest; --line) {
      const std::string& words = text.line(at.file, line);
      if (line < at.line && !words.empty() && words[0] == '}') break;
      if (begins_loop(tokens_of_line(words)) && text.end_of_statement(at.file, line) >= at.line)
        suggest_line(text, at, line, "", "is a loop around where it was", out);
    }
  if (out.suspects.empty()) return out;
  suggest_line(text, stack.front(), stack.front().line, "", "is where it was", out);
  out.answer = LineAnswer::kUnsure;
  out.reason =
      "it was stopped within these loops, the innermost first; any of them may be the one that "
      "does not end";
  out.what = what;
  return out;
}

LineDivergence crash_lines(const std::vector<host::SourcePlace>& stack, CrashOf of,
                           const std::string& what) {
  LineDivergence out;
  SourceText text;
  const auto suggest = [&](const host::SourcePlace& at, int line, const std::string& variable,
                           const std::string& why) {
    suggest_line(text, at, line, variable, why, out);
  };
  if (stack.empty()) return out;
  using Makers = std::vector<std::pair<std::string, int>>;
  bool from_caller = false;
  const auto makers_of = [&](const host::SourcePlace& at, const std::vector<std::string>& names) {
    Makers makers;
    for (const std::string& name : names) {
      if (declares_counter(text.line(at.file, at.line), name)) continue;
      const int line = text.assigned_above(at.file, at.line, name);
      from_caller = from_caller || line == 0;
      if (line != 0) makers.emplace_back(name, line);
    }
    return makers;
  };
  // What a helper accesses it was given, if it makes nothing of that itself: it comes of its caller.
  std::size_t frame = 0;
  Makers makers;
  for (; of != CrashOf::kOther && makers.empty() && frame < stack.size(); ++frame) {
    const std::vector<Token> tokens =
        tokens_of_line(text.line(stack[frame].file, stack[frame].line));
    makers = makers_of(stack[frame], frame == 0 ? variables_of(tokens, of) : variables_in(tokens));
  }
  frame = makers.empty() ? 0 : frame - 1;
  const host::SourcePlace& at = stack[frame];
  for (const auto& [name, line] : makers)
    if (of != CrashOf::kDivisor && goes_up_to(text.line(at.file, line)))
      suggest(at, line, name, "lets the index go one step too far");
  for (const auto& [name, line] : makers)
    if (of == CrashOf::kAddress && frame == 0 && !points_into_shared(text, at.file, {name, line}) &&
        computes_pointer(text.line(at.file, line), name,
                         tokens_of_line(text.line(at.file, at.line))))
      suggest(at, line, name, "makes the pointer that is gone through");
  const std::string what_it_does = of == CrashOf::kBounds ? "is out of bounds" : "crashes";
  suggest(at, at.line, "", frame == 0 ? what_it_does : "calls what " + what_it_does);
  if (out.suspects.empty()) return out;
  for (std::size_t i = 0; i < frame; ++i) suggest(stack[i], stack[i].line, "", what_it_does);
  // A loop that only counts, a constant, and a pointer into shared memory are seldom at fault.
  const auto is_unlikely = [&](const std::pair<std::string, int>& maker) {
    return of != CrashOf::kDivisor &&
           (is_plain_loop(text.line(at.file, maker.second), true) ||
            is_constant(text, at, maker.second) || counts_to_constant(text, at, maker.second) ||
            points_into_shared(text, at.file, maker));
  };
  const auto unlikely = std::stable_partition(
      makers.begin(), makers.end(), [&](const auto& maker) { return !is_unlikely(maker); });
  const auto suggest_makers = [&](Makers::iterator begin, Makers::iterator end) {
    for (auto maker = begin; maker != end; ++maker)
      suggest(at, maker->second, maker->first,
              of == CrashOf::kDivisor ? "makes what it divides by" : "makes what it accesses");
    // What those are made of, and so on; of two branches that give a variable its value both.
    constexpr int kLevels = 3, kBranches = 2;
    Makers level(begin, end);
    for (int depth = 0; depth < kLevels; ++depth) {
      Makers next;
      for (const auto& [name, made] : level) {
        const std::vector<Token> tokens = tokens_of_line(text.statement(at.file, made));
        for (std::size_t i = 0; i < tokens.size(); ++i) {
          const std::string of_it(tokens[i].text);
          if (!is_variable(tokens, i) || of_it == name) continue;
          int line = text.assigned_above(at.file, made, of_it);
          for (int branch = 0; branch < kBranches && line != 0; ++branch) {
            suggest(at, line, of_it, "makes what " + name + " is made of");
            const std::pair<std::string, int> maker(of_it, line);
            if (std::find(next.begin(), next.end(), maker) == next.end()) next.push_back(maker);
            line = depth == 0 || is_loop(text.line(at.file, line))
                       ? 0
                       : text.assigned_above(at.file, line, of_it);
          }
        }
      }
      level = std::move(next);
    }
  };
  suggest_makers(makers.begin(), unlikely);
  suggest_makers(unlikely, makers.end());
  // What has no value there is an argument.
  if (from_caller && stack.size() > frame + 1 && !stack[frame + 1].file.starts_with("/usr/"))
    suggest(stack[frame + 1], stack[frame + 1].line, "", "calls it");
  out.answer = LineAnswer::kUnsure;
  out.reason =
      of == CrashOf::kBounds
          ? "attn-diag check finds the first access out of bounds there, before the crash"
          : "the code under test crashed in the first line; what it is made of stands below";
  out.what = what;
  return out;
}

}  // namespace attn_diag::lines
