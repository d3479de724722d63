// Tokens of C++ as CUDA writes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag::source {

enum class TokenKind : std::uint8_t {
  kIdentifier,  // also keywords
  kNumber,      // with digit separators and suffix
  kString,      // with prefix, raw delimiters and suffix
  kCharacter,
  kPunctuator,  // "<" and ">" stand alone, but "<<<", "<<", "<=", "->" and the like do not
  kDirective,   // a whole line from its "#", without line markers
};

struct Token {
  TokenKind kind = TokenKind::kPunctuator;
  bool is_system = false;  // in a system header, as line markers tell
  std::uint32_t file = 0;  // of TokenList::files
  std::int32_t line = 0;
  std::size_t begin = 0, end = 0;  // in the text
  std::string_view text;

  bool is(std::string_view spelling) const { return text == spelling; }
  bool is_any(std::initializer_list<std::string_view> spellings) const {
    return std::find(spellings.begin(), spellings.end(), text) != spellings.end();
  }
  bool is_identifier() const { return kind == TokenKind::kIdentifier; }
};

struct TokenList {
  std::vector<std::string> files;
  std::vector<Token> tokens;
};

// Tokens of a text, which must outlive them. Comments and line splices between tokens are white
// space. Line markers (# 12 "x.cu" 1 3), as a preprocessor leaves them, say which file and line follow;
// until the first, the text is line 1 of `file`. Throws SourceError for a literal without end.
TokenList tokenize(std::string_view text, std::string_view file);

// The value of a string literal without prefix: escapes resolved, raw strings as they are.
std::string string_value(std::string_view literal);

}  // namespace attn_diag::source
