// Why outputs are wrong, by the terms of what they were made of.
#pragma once

#include <vector>

#include "attn_diag/harness/lines.h"
#include "harness/lines/causes.h"

namespace attn_diag::lines {

// Fills answer, suspects, what and where. `elements`: those of the watched blocks that were judged, and those nobody
// stored; all of o, or all of lse.
void explain(const Terms& terms, const std::vector<OutputElement>& elements, LineDivergence& out);

}  // namespace attn_diag::lines
