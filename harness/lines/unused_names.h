// Variables that a function computes and then does nothing with, and those that it uses and never computes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/toolchain/source/token.h"

namespace attn_diag::lines {

struct UnusedName {
  std::string name;
  int line = 0;  // the last that gives it, or an element of it, a value
};

// Of the tokens from `begin` up to `end`, a function: what it declares and assigns to, and names nowhere else but where
// it is assigned to: l of "float l = 0; for (...) l += p[i]; }". Also a real number that is computed where it is
// declared: "const float alpha = exp(m - m_new);". By order of lines.
std::vector<UnusedName> unused_names(const std::vector<source::Token>& tokens, std::size_t begin,
                                     std::size_t end);

struct UnchangedName {
  std::string name, beside;
  int line = 0;  // the first that changes `beside`, which is declared in the same statement
};

// Of the same function: real numbers that begin with 0 or -inf, and nothing else is ever assigned to them, although they
// are used: l of "float m = -INFINITY, l = 0;" where m alone is computed anew. Not what a function may change through
// its address or a reference. By order of lines.
std::vector<UnchangedName> unchanged_names(const std::vector<source::Token>& tokens,
                                           std::size_t begin, std::size_t end);

}  // namespace attn_diag::lines
