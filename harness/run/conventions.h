// From a kernel's declared conventions to those of docs/conventions.md: the one place where what was
// recorded is converted.
#pragma once

#include "attn_diag/harness/capture.h"
#include "attn_diag/kernels/support.h"

namespace attn_diag {

// Converts lse, S, m, running_m and the partials of a capture whose coverage is settled. Partials that
// cannot be converted, because the l they were divided by was not recorded, become exempt.
void apply_conventions(const Conventions& conventions, Capture& capture);

}  // namespace attn_diag
