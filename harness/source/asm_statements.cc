// asm volatile("..." : out : in : clobbered): inline PTX.
#include <fmt/format.h>

#include "harness/source/pass.h"

namespace attn_diag::source {

void translate_asm(Pass& pass) {
  const Syntax& s = pass.syntax;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!pass.is_open(i) || !(s.is(i, "asm") || s.is(i, "__asm__") || s.is(i, "__asm"))) continue;
    std::size_t open = i + 1;
    while (s.is(open, "volatile") || s.is(open, "__volatile__") || s.is(open, "__volatile")) ++open;
    if (!s.is(open, "(")) continue;
    std::string text;
    for (std::size_t j = open + 1; s[j].kind == TokenKind::kString; ++j)
      text += string_value(s[j].text);
    if (text.find_first_not_of(" \t\n;") == std::string::npos) continue;
    pass.error(i, fmt::format("unsupported: inline PTX: {}", text));
  }
}

}  // namespace attn_diag::source
