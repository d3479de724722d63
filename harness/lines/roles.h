// What variables hold and what lines load, as people read it.
#pragma once

#include "attn_diag/harness/lines.h"
#include "harness/lines/terms.h"

namespace attn_diag::lines {

// Fills roles, reads and unread.
void describe(const Terms& terms, LineDivergence& out);

}  // namespace attn_diag::lines
