// Where threads wait, for each other or for copies, by the text of the source.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "harness/lines/line_tokens.h"
#include "harness/lines/source_text.h"

namespace attn_diag::lines {
namespace {

using source::Token;
using source::TokenKind;

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

// The first function, or macro, that a line calls; empty: none.
std::string called_function(const std::string& line) {
  const std::vector<Token> tokens = tokens_of(line);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (is_use(tokens, i) && tokens[i + 1].is("(")) return std::string(tokens[i].text);
  return "";
}

bool has_number(const std::vector<Token>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [](const Token& token) { return token.kind == TokenKind::kNumber; });
}

}  // namespace

bool SourceText::is_barrier_at(const std::vector<Token>& tokens, std::size_t i, int depth) const {
  if (is_barrier(tokens, i)) return true;
  return in_body(tokens, i, depth, &SourceText::is_barrier_at);
}

bool SourceText::in_body(const std::vector<Token>& tokens, std::size_t i, int depth,
                         IsAt is_at) const {
  const std::vector<std::vector<Token>>* bodies =
      depth > 0 && is_use(tokens, i) ? bodies_of(tokens[i].text) : nullptr;
  return bodies != nullptr &&
         std::any_of(bodies->begin(), bodies->end(), [&](const std::vector<Token>& body) {
           for (std::size_t at = 0; at < body.size(); ++at)
             if ((this->*is_at)(body, at, depth - 1)) return true;
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

bool SourceText::waits_at(const std::vector<Token>& tokens, std::size_t i, bool of_block) const {
  const bool of_warp = has_part(tokens[i], "__syncwarp") || has_part(tokens[i], "bar.warp");
  return !(of_block && of_warp) && is_barrier_at(tokens, i, kDepth);
}

bool SourceText::has_barrier(const std::string& file, int after, int before, bool of_block) {
  note_bodies(file);
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].line > after && tokens[i].line < before && waits_at(tokens, i, of_block))
      return true;
  return false;
}

int SourceText::barrier_above(const std::string& file, int number) {
  note_bodies(file);
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [first, last] = function_around(tokens, number);
  int found = 0;
  for (std::size_t i = first; i < last && tokens[i].line < number; ++i)
    if (waits_at(tokens, i, true)) found = tokens[i].line;
  return found;
}

bool SourceText::tells_at(const std::vector<Token>& tokens, std::size_t i, int depth) const {
  const bool member = i > 0 && tokens[i - 1].is_any({".", "->"}) && is_use(tokens, i);
  if (tokens[i].kind == TokenKind::kString)
    return has_part(tokens[i], "red.") || has_part(tokens[i], "atom.") ||
           has_part(tokens[i], "st.release");
  if (tokens[i].text.starts_with("atomic") ||
      (member && (tokens[i].is("store") || has_part(tokens[i], "fetch_"))) ||
      (member && tokens[i].is("sync") && has_part(tokens[i - 2], "grid")))
    return true;
  // "release(&lock);"
  return !member && in_body(tokens, i, depth, &SourceText::tells_at);
}

int SourceText::tells_other_blocks(const std::string& file, int number) {
  note_bodies(file);
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  const auto [first, last] = function_around(tokens, number);
  for (std::size_t i = first; i < last; ++i)
    if (tokens[i].line > number && tells_at(tokens, i, kDepth)) return tokens[i].line;
  return 0;
}

bool SourceText::has_grid_barrier(const std::string& file) {
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.is("this_grid") || token.is("grid_group");
  });
}

int SourceText::last_wait_for_copies(const std::string& file, int after, int before) {
  note_bodies(file);
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  int last = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].line > after && tokens[i].line < before &&
        waits_for(tokens, i, kDepth) != WaitsFor::kNone)
      last = tokens[i].line;
  return last;
}

std::vector<int> SourceText::same_call_beside(const std::string& file, int number) {
  constexpr int kNear = 12;
  const std::string called = called_function(line(file, number));
  std::vector<int> out;
  const int count = static_cast<int>(file_of(file).code.size());
  for (const int step : {-1, 1})
    for (int at = number + step; !called.empty() && at > 0 && at <= count; at += step) {
      const std::string& text = line(file, at);
      if (std::abs(at - number) > kNear || text.find("ommit") != text.npos ||
          text.find("COMMIT") != text.npos)
        break;
      if (called_function(text) == called &&
          !has_barrier(file, std::min(at, number), std::max(at, number)) &&
          last_wait_for_copies(file, std::min(at, number), std::max(at, number)) == 0)
        out.push_back(at);
    }
  return out;
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

bool SourceText::passes_barrier(const std::string& file, int after, int before, bool of_block) {
  note_bodies(file);
  const std::vector<Token>& tokens = file_of(file).tokens.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int at = tokens[i].line;
    if (at <= after || at >= before || !waits_at(tokens, i, of_block)) continue;
    const std::vector<Statement> around = statements_around(file, at);
    if (std::all_of(around.begin(), around.end(),
                    [&](const Statement& one) { return one.has(after) || one.has(before); }))
      return true;
  }
  return false;
}

}  // namespace attn_diag::lines
