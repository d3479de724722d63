// What declarations look like: types, names, and where the first declarator begins.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/toolchain/source/syntax.h"

namespace attn_diag::repair {

// The start of a declaration: its type, and the token behind it (of "const float* x" that of "*").
struct DeclaredType {
  std::string type;  // "float", without const and where it lives
  std::size_t end = 0;
  bool constant = false;  // constexpr
  bool is_const = false;  // or constexpr
  bool shared = false;
};

// nullopt where [begin, end) does not begin with a type that a declarator follows. `is_variable` tells a product
// from a declaration: a * b;
std::optional<DeclaredType> declared_type(const source::Syntax& syntax, std::size_t begin,
                                          std::size_t end,
                                          const std::function<bool(std::string_view)>& is_variable);

// A declarator: "* x[4] = {0}".
struct Declarator {
  std::size_t name = 0;
  std::string type_suffix;  // "*", "[]"
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  std::vector<Range> extents;  // between brackets
  Range initialiser;           // without "=", with braces or parentheses; empty: none
  bool has_initialiser = false;
};

// The declarators from `begin`, up to a ";" or the end; those that are no names are left out.
std::vector<Declarator> declarators(const source::Syntax& syntax, std::size_t begin,
                                    std::size_t end);

// Where a list between brackets is divided by commas: the ranges between them. Template arguments are not taken
// apart: "f<a, b>(c), d" are two.
std::vector<Declarator::Range> divided(const source::Syntax& syntax, std::size_t begin,
                                       std::size_t end);

// The ">" of the template arguments that "<" at `open` begins, where it does not compare; size() where it does.
std::size_t template_end(const source::Syntax& syntax, std::size_t open,
                         const std::function<bool(std::string_view)>& is_variable);

}  // namespace attn_diag::repair
