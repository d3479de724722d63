#include "harness/toolchain/source/translate.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/toolchain/source/pass.h"

namespace attn_diag::source {

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n')
      quoted += "\\n";
    else
      quoted += c;
  }
  return quoted + '"';
}

std::string Pass::place(std::size_t token) const {
  return fmt::format("{}, {}", quote(syntax.file(token)), syntax.line(token));
}

Translation translate(std::string_view preprocessed, std::string_view file) {
  Translation failed;
  try {
    const TokenList list = tokenize(preprocessed, file);
    const Syntax syntax(list);
    Pass pass(preprocessed, syntax);
    translate_launches(pass);
    translate_shared_memory(pass);
    translate_local_arrays(pass);
    translate_qualifiers(pass);
    translate_pragmas(pass);
    translate_asm(pass);
    translate_kernel_casts(pass);
    try {
      if (pass.out.errors.empty()) pass.out.text = pass.edits.apply(preprocessed);
    } catch (const OverlappingEdits& overlap) {
      std::size_t token = 0;
      while (token + 1 < syntax.size() && syntax[token + 1].begin <= overlap.at) ++token;
      pass.error(token, "this is no C++ that can be translated: two parts of it claim this place");
    }
    return std::move(pass.out);
  } catch (const SourceError& e) {
    failed.errors.push_back(e.where());
  }
  return failed;
}

}  // namespace attn_diag::source
