// Rounding to narrow types, and what it makes of an error.
#pragma once

#include "attn_diag/reference/deviation.h"

namespace attn_diag::reference {

double round_to(Narrow type, double x);

// Rounds `value`, which rounding in the kernel may have taken by `error`: where both ends round alike, to
// that, without an error; else value and error are those of what lies between.
void round_both(Narrow type, double& value, double& error);

}  // namespace attn_diag::reference
