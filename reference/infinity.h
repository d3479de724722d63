#pragma once

#include <limits>

namespace attn_diag::reference {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace attn_diag::reference
