// What the parts of the source pass share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/toolchain/source/edits.h"
#include "harness/toolchain/source/syntax.h"
#include "harness/toolchain/source/translate.h"

namespace attn_diag::source {

struct Pass {
  std::string_view text;
  const Syntax& syntax;
  Edits edits;
  Translation out;
  std::vector<bool> done;  // tokens that are replaced as parts of something larger

  Pass(std::string_view of, const Syntax& structure)
      : text(of), syntax(structure), done(structure.size()) {}

  bool is_open(std::size_t token) const { return !done[token] && !syntax[token].is_system; }
  std::string source(std::size_t begin, std::size_t end) const {
    return words(text, syntax, begin, end);
  }
  void error(std::size_t token, const std::string& message) {
    out.errors.push_back({syntax.file(token), syntax.line(token), message});
  }
  void item(ItemKind kind, std::size_t token, std::string what) {
    out.items.push_back({kind, syntax.file(token), syntax.line(token), std::move(what)});
  }
  // Replaces tokens, which no other part sees any more.
  void replace(std::size_t begin, std::size_t end, std::string with) {
    edits.replace(syntax[begin].begin, syntax[end - 1].end, std::move(with));
    for (std::size_t i = begin; i < end; ++i) done[i] = true;
  }
  void remove(std::size_t begin, std::size_t end) { replace(begin, end, ""); }
  // `"x.cu", 12` of a token: the user's place as arguments of a call.
  std::string place(std::size_t token) const;
};

// A C++ string literal of this text.
std::string quote(std::string_view text);

void translate_launches(Pass& pass);
void translate_shared_memory(Pass& pass);
void translate_local_arrays(Pass& pass);
// Behind declarations in a function of pointers made from these names.
void name_shared_pointers(Pass& pass, const Function& function, std::vector<std::string> names);
void translate_qualifiers(Pass& pass);
void translate_pragmas(Pass& pass);
void translate_kernel_casts(Pass& pass);
void translate_asm(Pass& pass);

}  // namespace attn_diag::source
