// The little of C++'s syntax that the source pass needs: brackets, statements, function bodies.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/toolchain/source/token.h"

namespace attn_diag::source {

// Places are indices of tokens.
struct Function {
  std::size_t begin = 0;  // of the declaration
  std::size_t name = 0;
  std::size_t parameters = 0;       // "("
  std::size_t open = 0, close = 0;  // "{" and "}" of the body
  bool is_kernel = false;           // __global__
  bool is_device = false;           // __device__ or __global__
};

// `[begin, end)`, with its ";" at `end`.
struct Statement {
  std::size_t begin = 0, end = 0;
};

class Syntax {
 public:
  // `list` must outlive it. Throws SourceError for brackets without their counterpart.
  explicit Syntax(const TokenList& list);

  // Also beyond the ends of the text, where there is an empty token: code looks a token or two ahead and back.
  const Token& operator[](std::size_t i) const { return i < size() ? x_list.tokens[i] : kNothing; }
  std::size_t size() const { return x_list.tokens.size(); }
  const std::string& file(std::size_t i) const { return x_list.files[(*this)[i].file]; }
  int line(std::size_t i) const { return (*this)[i].line; }
  bool is(std::size_t i, std::string_view text) const { return (*this)[i].is(text); }

  // The counterpart of a bracket ( [ { or ) ] }; of anything else size().
  std::size_t match(std::size_t i) const { return i < size() ? x_match[i] : size(); }
  // The "<" of the template arguments that end with ">" at i, or size() if there is none.
  std::size_t open_angle(std::size_t i) const;
  // The ">" of those that begin with "<" at i, or size().
  std::size_t close_angle(std::size_t i) const;
  // The first token of the declaration or statement that token i, outside brackets, is part of.
  std::size_t statement_begin(std::size_t i) const;
  // Its ";", or the "{" of its body; size() if there is none.
  std::size_t statement_end(std::size_t i) const;

  // Those that end with ";" in a function's body and the blocks within it, in the order of the text, without
  // members of local classes.
  std::vector<Statement> statements(const Function& function) const;

  // Functions with a body, without lambdas and local classes' members, in the order of the text.
  const std::vector<Function>& functions() const { return x_functions; }
  // The function around token i, or null.
  const Function* function_around(std::size_t i) const;

 private:
  static inline const Token kNothing{};

  void match_brackets();
  bool opens_class(std::size_t open) const;
  void find_statements(std::size_t open, std::vector<Statement>& found) const;
  void find_functions(std::size_t begin, std::size_t end);
  bool add_function(std::size_t begin, std::size_t open);
  std::size_t skip_template_heads(std::size_t i, std::size_t end) const;
  bool opens_scope(std::size_t begin, std::size_t open) const;

  const TokenList& x_list;
  std::vector<std::size_t> x_match;
  std::vector<Function> x_functions;
};

// "half s[64][72]": tokens with one blank where there was white space.
std::string words(std::string_view text, const Syntax& syntax, std::size_t begin, std::size_t end);

}  // namespace attn_diag::source
