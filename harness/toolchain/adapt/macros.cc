#include "harness/toolchain/adapt/macros.h"

#include <algorithm>
#include <utility>

#include "harness/toolchain/source/source_error.h"

namespace attn_diag::adapt {
namespace {

using source::Token;
using source::TokenKind;
using Tokens = std::vector<Token>;

constexpr int kMostDepth = 8;
constexpr std::size_t kMostTokens = 200'000;

Tokens tokens_of(std::string text, std::deque<std::string>& texts) {
  texts.push_back(std::move(text));
  try {
    return source::tokenize(texts.back(), "macro").tokens;
  } catch (const source::SourceError&) {
    return {};
  }
}

bool opens(const Token& t) { return t.is("(") || t.is("[") || t.is("{"); }
bool closes(const Token& t) { return t.is(")") || t.is("]") || t.is("}"); }

// Past the ")" of the "(" at `open`, and the arguments between; `open` itself where it has no end.
std::size_t read_arguments(const Tokens& tokens, std::size_t open, std::vector<Tokens>& arguments) {
  arguments.assign(1, {});
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (opens(tokens[i]) && depth++ == 0) continue;
    if (closes(tokens[i]) && --depth == 0) return i + 1;
    if (tokens[i].is(",") && depth == 1)
      arguments.emplace_back();
    else
      arguments.back().push_back(tokens[i]);
  }
  return open;
}

}  // namespace

bool LaunchMacros::launches(const std::string& body) const {
  for (const char* word : {"<<<", "cudaLaunch", "template"})
    if (body.find(word) != std::string::npos) return true;
  return std::any_of(x_macros.begin(), x_macros.end(), [&](const auto& known) {
    return body.find(known.first + "(") != std::string::npos;
  });
}

void LaunchMacros::define(const std::string& name, const std::string& rest) {
  undefine(name);
  const std::size_t open = rest.find('('), close = rest.find(')');
  if (open == std::string::npos || close == std::string::npos) return;
  Macro macro;
  std::string word;
  for (std::size_t i = open + 1; i <= close; ++i) {
    if (rest[i] == ' ' || rest[i] == '\t') continue;
    if (rest[i] != ',' && i != close) {
      word += rest[i];
      continue;
    }
    if (!word.empty()) macro.parameters.push_back(word == "..." ? "__VA_ARGS__" : word);
    word.clear();
  }
  macro.body = rest.substr(close + 1);
  if (launches(macro.body)) x_macros.insert_or_assign(name, std::move(macro));
}

bool LaunchMacros::begins_at(const Tokens& tokens, std::size_t at) const {
  return tokens[at].is_identifier() && at + 1 < tokens.size() && tokens[at + 1].is("(") &&
         x_macros.count(std::string(tokens[at].text)) > 0;
}

Tokens LaunchMacros::expand_call(const Macro& macro, const std::vector<Tokens>& arguments,
                                 std::deque<std::string>& texts, int depth) {
  const auto argument = [&](const Token& t) {
    Tokens out;
    for (std::size_t k = 0; k < macro.parameters.size(); ++k) {
      if (!t.is_identifier() || !t.is(macro.parameters[k])) continue;
      const std::size_t last = t.is("__VA_ARGS__") ? arguments.size() : k + 1;
      for (std::size_t i = k; i < std::min(last, arguments.size()); ++i) {
        if (i > k) out.insert(out.end(), tokens_of(",", texts).front());
        out.insert(out.end(), arguments[i].begin(), arguments[i].end());
      }
      return std::pair{true, out};
    }
    return std::pair{false, out};
  };
  const Tokens body = tokens_of(macro.body, texts);
  Tokens put;
  for (std::size_t i = 0; i < body.size(); ++i) {
    // attend_##D: the words on both sides are one.
    const std::size_t marks = body[i].is("##")                                                ? 1
                              : body[i].is("#") && i + 1 < body.size() && body[i + 1].is("#") ? 2
                                                                                              : 0;
    if (marks > 0 && i + marks < body.size() && !put.empty()) {
      const auto [is, value] = argument(body[i + marks]);
      std::string joined(put.back().text);
      put.pop_back();
      if (!is) joined += body[i + marks].text;
      if (is && !value.empty()) joined += value.front().text;
      const Tokens one = tokens_of(joined, texts);
      put.insert(put.end(), one.begin(), one.end());
      if (is && value.size() > 1) put.insert(put.end(), value.begin() + 1, value.end());
      i += marks;
      continue;
    }
    const auto [is, value] = argument(body[i]);
    if (is)
      put.insert(put.end(), value.begin(), value.end());
    else
      put.push_back(body[i]);
  }
  Tokens out;
  for (std::size_t i = 0; i < put.size();) {
    if (!begins_at(put, i)) {
      out.push_back(put[i++]);
      continue;
    }
    std::vector<Tokens> inner;
    const std::size_t end = read_arguments(put, i + 1, inner);
    x_made += put.size();
    if (depth >= kMostDepth || x_made > kMostTokens || end == i + 1) return {};
    const Tokens more = expand_call(x_macros.at(std::string(put[i].text)), inner, texts, depth + 1);
    out.insert(out.end(), more.begin(), more.end());
    i = end;
  }
  x_made += out.size();
  return x_made > kMostTokens ? Tokens{} : out;
}

Tokens LaunchMacros::expand(const Tokens& tokens, std::size_t& at, std::deque<std::string>& texts) {
  const Token& name = tokens[at];
  std::vector<Tokens> arguments;
  const std::size_t end = read_arguments(tokens, at + 1, arguments);
  if (end == at + 1) return {};
  Tokens out = expand_call(x_macros.at(std::string(name.text)), arguments, texts, 0);
  // Tokens of different texts stand apart where glued they would be one word.
  std::size_t place = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool word = out[i].is_identifier() || out[i].kind == TokenKind::kNumber;
    const bool after_word =
        i > 0 && (out[i - 1].is_identifier() || out[i - 1].kind == TokenKind::kNumber);
    place += (word && after_word) || (i > 0 && out[i - 1].is(",")) ? 1 : 0;
    out[i].begin = place;
    place = out[i].end = place + out[i].text.size();
    out[i].line = name.line;
    out[i].file = name.file;
  }
  at = end;
  return out;
}

}  // namespace attn_diag::adapt
