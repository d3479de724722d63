#pragma once

#include <optional>
#include <string>

#include "attn_diag/reference/deviation.h"

namespace attn_diag::reference {

// The deviation that has every field of both that is not at its default; none where both set one
// field.
std::optional<Deviation> unite(const Deviation& a, const Deviation& b);

// "0.125", "3": as short as it reads back to six digits.
std::string number_text(double value);

}  // namespace attn_diag::reference
