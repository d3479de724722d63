// Rounding to narrow types, and what it makes of an error.
#pragma once

#include "attn_diag/reference/deviation.h"

namespace attn_diag::reference {

double round_to(Narrow type, double x);

// Rounds `value`, which rounding in the kernel may have taken by `error`; the error becomes the farthest
// that the kernel's rounded number can be: 0 while both round alike.
void round_both(Narrow type, double& value, double& error);

}  // namespace attn_diag::reference
