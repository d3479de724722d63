#pragma once

#include <string>

namespace attn_diag::reference {

// "0.125", "3": as short as it reads back to six digits.
std::string number_text(double value);

}  // namespace attn_diag::reference
