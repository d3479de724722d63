// What the expressions of a user's function are, as far as its text says.
#pragma once

#include <string>
#include <string_view>

#include "harness/repair/code.h"

namespace attn_diag::repair {

// The operator of an expression: ">>", though it is two tokens.
std::string_view operator_of(const Code& code, const Expression& e);

// The variable that a name means at a token; null: none that is known.
const Variable* variable_at(const DeviceFunction& function, std::string_view name,
                            std::size_t token);

// "float", "int", "half*"; empty: not known. `expression`: of the function; -1: none.
std::string type_of(const Program& program, const Code& code, const DeviceFunction& function,
                    int expression);

bool is_pointer_or_array(std::string_view type);
bool is_relation(std::string_view op);  // "<", "=="

// "float" of "float[][]", and of "float".
std::string without_extents(std::string type);

// Gives variables that are declared "auto" the type of their first value, where that is known.
void deduce_types(Program& program);

}  // namespace attn_diag::repair
