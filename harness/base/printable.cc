#include "harness/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace attn_diag {
namespace {

std::string escaped(std::uint32_t code_point) {
  switch (code_point) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code_point < 0x80 ? fmt::format("\\x{:02x}", code_point)
                               : fmt::format("\\u{:04x}", code_point);
  }
}

// Bytes of a sequence that report::paint() writes.
std::size_t colour_sequence(std::string_view text) {
  for (const std::string_view code :
       {"\x1b[0m", "\x1b[1;31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[2m"})
    if (text.starts_with(code)) return code.size();
  return 0;
}

std::string escape(std::string_view text, std::string_view kept, bool colour) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    std::size_t bytes = std::max<std::size_t>(1, c.bytes);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (const std::size_t n = colour ? colour_sequence(text) : 0; n > 0) {
      bytes = n;
      out += text.substr(0, n);
    } else if (is_control(c.value) &&
               (c.value > 0x7f || kept.find(text.front()) == std::string_view::npos)) {
      out += escaped(c.value);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t n = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (n == 0 || n > text.size()) return {};
  std::uint32_t value = lead & (0x7fu >> n);
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, n};
}

bool is_control(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

std::string one_line(std::string_view text) { return escape(text, "", false); }

std::string printable(std::string_view text, bool colour) { return escape(text, "\n\t", colour); }

std::string shell_quote(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("@%+=:,./-_").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  // What would change a terminal or a line: as every shell of today spells it.
  if (one_line(word) != word) {
    std::string s = "$'";
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '\'' || c == '\\')
        s += {'\\', c};
      else
        s += byte < 0x20 || byte >= 0x7f ? fmt::format("\\{:03o}", byte) : std::string(1, c);
    }
    return s + "'";
  }
  std::string s = "'";
  for (char c : word) c == '\'' ? s += "'\\''" : s += c;
  return s + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quote(word);
  return line;
}

}  // namespace attn_diag
