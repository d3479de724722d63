// Text of others - names and attributes in files, messages of user code - as terminals, JSON and XML can take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag {

// The code point that the text begins with, and its bytes in UTF-8; no bytes if it is no UTF-8.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;
};
CodePoint first_code_point(std::string_view text);

// Control characters, and those that turn the direction of writing: nothing that a reader sees.
bool is_control(std::uint32_t code_point);

// On one line, with control characters as "\n", "\x1b" or "\u202e" and bytes that are no UTF-8 as "\xff".
std::string one_line(std::string_view text);

// What a terminal is sent: as one_line(), but line ends and tabs stay, and where `colour` is set the sequences
// by which reports colour.
std::string printable(std::string_view text, bool colour);

// Words as a shell takes them.
std::string shell_quote(std::string_view word);
std::string shell_line(const std::vector<std::string>& words);

}  // namespace attn_diag
