// Function-like macros of a user's source that launch kernels, or instantiate templates:
// #define LAUNCH(D) attend<D><<<grid, block>>>(q, k).
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "harness/toolchain/source/token.h"

namespace attn_diag::adapt {

class LaunchMacros {
 public:
  // `rest` is what stands behind "#define ", such as "LAUNCH(D) ...".
  void define(const std::string& name, const std::string& rest);
  void undefine(const std::string& name) { x_macros.erase(name); }

  // Whether tokens[at] is the name of one, with arguments behind it.
  bool begins_at(const std::vector<source::Token>& tokens, std::size_t at) const;
  // What the macro there stands for, with the macros in it expanded; `at` moves behind its arguments. `texts` keeps
  // the texts of tokens. Positions only say which tokens stand apart. Empty where it grows without end.
  std::vector<source::Token> expand(const std::vector<source::Token>& tokens, std::size_t& at,
                                    std::deque<std::string>& texts);

 private:
  struct Macro {
    std::vector<std::string> parameters;  // of "...": "__VA_ARGS__"
    std::string body;
  };
  using Tokens = std::vector<source::Token>;

  bool launches(const std::string& body) const;
  Tokens expand_call(const Macro& macro, const std::vector<Tokens>& arguments,
                     std::deque<std::string>& texts, int depth);

  std::map<std::string, Macro> x_macros;
  std::size_t x_made = 0;  // tokens, ever
};

}  // namespace attn_diag::adapt
