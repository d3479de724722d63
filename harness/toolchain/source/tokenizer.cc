#include <array>
#include <cctype>

#include "harness/toolchain/source/source_error.h"
#include "harness/toolchain/source/token.h"

namespace attn_diag::source {
namespace {

bool starts_identifier(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool continues_identifier(char c) { return starts_identifier(c) || is_digit(c); }

// Longest first. "<<<" is CUDA's; ">>>" is not here, since it may close templates.
constexpr std::array<std::string_view, 29> kPunctuators = {
    "<<<", "<<=", "<=>", "...", "->*", "::", "->", "<<", "<=", ">=", "==", "!=", "&&", "||", "++",
    "--",  "+=",  "-=",  "*=",  "/=",  "%=", "&=", "|=", "^=", ".*", "##", "<%", "%>", "<:"};

class Tokenizer {
 public:
  Tokenizer(std::string_view text, std::string_view file) : x_text(text) {
    x_list.files.emplace_back(file);
  }

  TokenList run() {
    while (skip_space()) next();
    return std::move(x_list);
  }

 private:
  char at(std::size_t offset) const {
    const std::size_t i = x_at + offset;
    return i < x_text.size() ? x_text[i] : '\0';
  }
  bool looking_at(std::string_view what) const { return x_text.substr(x_at).starts_with(what); }

  [[noreturn]] void fail(int line, const std::string& message) const {
    throw SourceError(x_list.files[x_file], line, message);
  }

  void advance(std::size_t count) {
    for (std::size_t i = 0; i < count && x_at < x_text.size(); ++i, ++x_at) {
      if (x_text[x_at] != '\n') continue;
      ++x_line;
      x_line_start = true;
    }
  }

  // The length of a line splice here, or 0.
  std::size_t splice() const {
    if (at(0) != '\\') return 0;
    if (at(1) == '\n') return 2;
    return at(1) == '\r' && at(2) == '\n' ? 3 : 0;
  }

  // To the next token; false at the end.
  bool skip_space() {
    while (x_at < x_text.size()) {
      const char c = at(0);
      if (const std::size_t length = splice()) {
        const bool line_start = x_line_start;
        advance(length);
        x_line_start = line_start;
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        advance(1);
      } else if (looking_at("//")) {
        skip_line();
      } else if (looking_at("/*")) {
        const std::size_t end = x_text.find("*/", x_at + 2);
        if (end == std::string_view::npos) fail(x_line, "comment without end: */ is missing");
        const bool line_start = x_line_start;
        advance(end + 2 - x_at);
        x_line_start = line_start;
      } else {
        return true;
      }
    }
    return false;
  }

  // To the end of the line, over splices.
  void skip_line() {
    while (x_at < x_text.size() && at(0) != '\n') {
      const std::size_t length = splice();
      advance(length != 0 ? length : 1);
    }
  }

  void add(TokenKind kind, std::size_t begin, int line) {
    Token token;
    token.kind = kind;
    token.is_system = x_system;
    token.file = x_file;
    token.line = line;
    token.begin = begin;
    token.end = x_at;
    token.text = x_text.substr(begin, x_at - begin);
    x_list.tokens.push_back(token);
  }

  void next() {
    const std::size_t begin = x_at;
    const int line = x_line;
    const bool line_start = x_line_start;
    x_line_start = false;
    if (at(0) == '#' && line_start) {
      skip_line();
      if (!line_marker(x_text.substr(begin, x_at - begin))) add(TokenKind::kDirective, begin, line);
      return;
    }
    if (starts_identifier(at(0))) {
      while (true) {
        if (continues_identifier(at(0)))
          advance(1);
        else if (splice() != 0 && continues_identifier(at(splice())))
          advance(splice());
        else
          break;
      }
      const std::string_view word = x_text.substr(begin, x_at - begin);
      const bool prefix = word == "L" || word == "u8" || word == "u" || word == "U";
      if (at(0) == '"' &&
          (word == "R" || word == "LR" || word == "u8R" || word == "uR" || word == "UR"))
        return raw_string(begin, line);
      if (at(0) == '"' && prefix) return quoted('"', TokenKind::kString, begin, line);
      if (at(0) == '\'' && prefix) return quoted('\'', TokenKind::kCharacter, begin, line);
      return add(TokenKind::kIdentifier, begin, line);
    }
    if (is_digit(at(0)) || (at(0) == '.' && is_digit(at(1)))) return number(begin, line);
    if (at(0) == '"') return quoted('"', TokenKind::kString, begin, line);
    if (at(0) == '\'') return quoted('\'', TokenKind::kCharacter, begin, line);
    punctuator(begin, line);
  }

  void number(std::size_t begin, int line) {
    while (true) {
      const char c = at(0);
      const bool exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
      if (exponent && (at(1) == '+' || at(1) == '-'))
        advance(2);
      else if (continues_identifier(c) || c == '.')
        advance(1);
      else if (c == '\'' && continues_identifier(at(1)))
        advance(2);
      else if (splice() != 0 && continues_identifier(at(splice())))
        advance(splice());
      else
        break;
    }
    add(TokenKind::kNumber, begin, line);
  }

  void skip_suffix() {
    while (continues_identifier(at(0))) advance(1);
  }

  void quoted(char quote, TokenKind kind, std::size_t begin, int line) {
    advance(1);
    while (at(0) != quote) {
      if (x_at >= x_text.size() || at(0) == '\n')
        fail(line, std::string("literal without end: ") + quote + " is missing");
      advance(splice() != 0 ? splice() : at(0) == '\\' ? 2 : 1);
    }
    advance(1);
    skip_suffix();
    add(kind, begin, line);
  }

  void raw_string(std::size_t begin, int line) {
    const std::size_t open = x_text.find('(', x_at);
    if (open == std::string_view::npos || open - x_at > 17)
      fail(line, "raw string without its opening parenthesis");
    std::string close = ")";
    close += x_text.substr(x_at + 1, open - x_at - 1);
    close += '"';
    const std::size_t end = x_text.find(close, open);
    if (end == std::string_view::npos)
      fail(line, "raw string without end: " + close + " is missing");
    advance(end + close.size() - x_at);
    x_line_start = false;
    skip_suffix();
    add(TokenKind::kString, begin, line);
  }

  void punctuator(std::size_t begin, int line) {
    std::size_t length = 1;
    for (const std::string_view candidate : kPunctuators) {
      if (!looking_at(candidate)) continue;
      length = candidate.size();
      break;
    }
    if (length == 3 && looking_at("<<<") && !x_list.tokens.empty() &&
        x_list.tokens.back().is("operator"))
      length = 2;                                                       // operator<< <...>
    if (looking_at("<::") && at(3) != ':' && at(3) != '>') length = 1;  // as C++ has it: A<::B>
    advance(length);
    add(TokenKind::kPunctuator, begin, line);
  }

  // # 12 "x.cu" 1 3 or #line 12 "x.cu": what follows is that line. The newline after it is still ahead.
  bool line_marker(std::string_view directive) {
    std::size_t i = 1;
    const auto skip_blanks = [&] {
      while (i < directive.size() && (directive[i] == ' ' || directive[i] == '\t')) ++i;
    };
    skip_blanks();
    if (directive.substr(i).starts_with("line")) i += 4;
    skip_blanks();
    if (i >= directive.size() || !is_digit(directive[i])) return false;
    constexpr int kMost = 100'000'000;  // lines are counted on from here
    int line = 0;
    while (i < directive.size() && is_digit(directive[i]))
      line = std::min(kMost, 10 * line + (directive[i++] - '0'));
    skip_blanks();
    x_line = line - 1;
    if (i >= directive.size() || directive[i] != '"') return true;
    const std::size_t begin = i++;
    while (i < directive.size() && directive[i] != '"') i += directive[i] == '\\' ? 2 : 1;
    const std::string name = string_value(directive.substr(begin, i + 1 - begin));
    if (name != x_list.files[x_file]) {
      x_file = 0;
      while (x_file < x_list.files.size() && x_list.files[x_file] != name) ++x_file;
      if (x_file == x_list.files.size()) x_list.files.push_back(name);
    }
    x_system =
        directive.substr(std::min(i + 1, directive.size())).find('3') != std::string_view::npos;
    return true;
  }

  std::string_view x_text;
  TokenList x_list;
  std::size_t x_at = 0;
  int x_line = 1;
  std::uint32_t x_file = 0;
  bool x_system = false;
  bool x_line_start = true;
};

}  // namespace

TokenList tokenize(std::string_view text, std::string_view file) {
  return Tokenizer(text, file).run();
}

std::string string_value(std::string_view literal) {
  const std::size_t quote = literal.find('"');
  if (quote > 0 && literal[quote - 1] == 'R') {
    const std::size_t open = literal.find('('), close = literal.rfind(')');
    return std::string(literal.substr(open + 1, close - open - 1));
  }
  std::string value;
  for (std::size_t i = quote + 1; i < literal.size() && literal[i] != '"'; ++i) {
    if (literal[i] != '\\') {
      value += literal[i];
      continue;
    }
    const char c = ++i < literal.size() ? literal[i] : '\0';
    if (c == '\n') continue;
    if (c >= '0' && c <= '7') {
      int code = 0;
      for (int n = 0; n < 3 && i < literal.size() && literal[i] >= '0' && literal[i] <= '7'; ++n)
        code = 8 * code + (literal[i++] - '0');
      --i;
      value += static_cast<char>(code);
    } else if (c == 'x') {
      unsigned code = 0;
      while (i + 1 < literal.size() &&
             std::isxdigit(static_cast<unsigned char>(literal[i + 1])) != 0) {
        const char d = literal[++i];
        code = 16 * code + static_cast<unsigned>(is_digit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
      }
      value += static_cast<char>(code);
    } else {
      constexpr std::string_view kNames = "abfnrtv", kValues = "\a\b\f\n\r\t\v";
      const std::size_t known = kNames.find(c);
      value += known == std::string_view::npos ? c : kValues[known];
    }
  }
  return value;
}

}  // namespace attn_diag::source
