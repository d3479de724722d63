// Why outputs are wrong, by the terms of what they were made of.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/lines.h"
#include "harness/lines/causes.h"

namespace attn_diag::lines {

// Fills answer, suspects, what and where. `elements`: those of the watched blocks that were judged, and those nobody
// stored; all of o, or all of lse.
void explain(const Terms& terms, const std::vector<OutputElement>& elements, LineDivergence& out);

// "q, k": inputs that code of the host copied, and none of which a watched block loaded. Empty: there are none.
std::string lost_inputs(const Terms& terms);

}  // namespace attn_diag::lines
