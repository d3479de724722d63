// #pragma unroll and nvcc's own, which mean nothing to a host compiler.
#include <cctype>

#include "harness/toolchain/source/pass.h"

namespace attn_diag::source {

void translate_pragmas(Pass& pass) {
  const Syntax& s = pass.syntax;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const Token& token = s[i];
    if (token.kind != TokenKind::kDirective || !pass.is_open(i)) continue;
    std::string_view rest = token.text;
    const auto next_word = [&] {
      std::size_t begin = 0;
      while (begin < rest.size() &&
             (std::isspace(static_cast<unsigned char>(rest[begin])) != 0 || rest[begin] == '#'))
        ++begin;
      std::size_t end = begin;
      while (end < rest.size() &&
             (std::isalnum(static_cast<unsigned char>(rest[end])) != 0 || rest[end] == '_'))
        ++end;
      const std::string_view word = rest.substr(begin, end - begin);
      rest.remove_prefix(end);
      return word;
    };
    if (next_word() != "pragma") continue;
    const std::string_view name = next_word();
    if (name == "unroll" || name == "nounroll" || name.starts_with("nv_") ||
        name == "hd_warning_disable") {
      pass.remove(i, i + 1);
      pass.item(ItemKind::kPragma, i, std::string(token.text));
    }
  }
}

}  // namespace attn_diag::source
