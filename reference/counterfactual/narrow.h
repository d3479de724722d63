// Rounding to narrow types, and what it makes of an error.
#pragma once

#include "attn_diag/reference/deviation.h"

namespace attn_diag::reference {

double round_to(Narrow type, double x);

// Rounds a value that is known to within `error`. If both ends round alike, the result is that, without an error;
// else value and error cover what lies between.
void round_both(Narrow type, double& value, double& error);

}  // namespace attn_diag::reference
