// Numbers in closed form, as hand-computed cases give them.
#pragma once

#include <string_view>

namespace attn_diag::reference::testing {

// The value of an expression of numbers, + - * / and parentheses, exp(x), ln(x) and inf, such as
// "(1 + 2*exp(-1))/3". Throws std::invalid_argument that says where it stops making sense.
double evaluate(std::string_view expression);

}  // namespace attn_diag::reference::testing
