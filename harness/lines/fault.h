// In which part of attention the cause of a wrong element is.
#pragma once

#include "attn_diag/harness/lines.h"
#include "harness/lines/causes.h"

namespace attn_diag::lines {

LineFault fault_of(const Terms& terms, const Cause& cause);

}  // namespace attn_diag::lines
