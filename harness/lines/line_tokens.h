// A line of code, or several, taken apart.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/toolchain/source/token.h"

namespace attn_diag::lines {

using Range =
    std::pair<std::size_t, std::size_t>;  // of tokens: the first, and the one behind the last

// None, where a string goes on in the next line.
std::vector<source::Token> tokens_of(std::string_view line);
// Behind the bracket that closes the one at i.
std::size_t behind_bracket(const std::vector<source::Token>& tokens, std::size_t i);
// Behind the brackets that begin there, of "a[i][j] = x;"; the place itself where none do.
std::size_t behind_subscripts(const std::vector<source::Token>& tokens, std::size_t at);
// The "," or ";", or the bracket, that ends the expression which begins at i; `end` where none does before that.
std::size_t end_of_expression(const std::vector<source::Token>& tokens, std::size_t i,
                              std::size_t end);
// Where the parentheses begin that end before the brace at i, as those of a function's parameters do; 0: none do.
std::size_t parentheses_before(const std::vector<source::Token>& tokens, std::size_t i);
// Whether a token is within an asm statement.
bool is_assembly(const std::vector<source::Token>& tokens, std::size_t i);
bool has_part(const source::Token& token, std::string_view part);
// Whether a function is called there, or a macro stands there.
bool is_use(const std::vector<source::Token>& tokens, std::size_t i);
// From the brace of the function that the line is in to behind its last; none: no tokens.
Range function_around(const std::vector<source::Token>& tokens, int line);

}  // namespace attn_diag::lines
