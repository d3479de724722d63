// Bugs of the recurrence that l may have alone, o alone, or both.
#pragma once

#include <utility>

#include "reference/counterfactual/entry.h"

namespace attn_diag::reference {

inline constexpr std::pair<bool, bool> kSums[] = {
    {false, true}, {true, false}, {true, true}};  // l, o

inline ParameterValue of(bool l, bool o) {
  return named("of", l * 2 + o, l && o ? "l and o" : l ? "l" : "o");
}

}  // namespace attn_diag::reference
