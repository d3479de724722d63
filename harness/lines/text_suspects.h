// What the text of the functions that were watched shows by itself.
#pragma once

#include "attn_diag/harness/host/values.h"
#include "attn_diag/harness/lines.h"
#include "harness/lines/source_text.h"

namespace attn_diag::lines {

// Puts before all others what tests nothing or does nothing, and where the other one of two calls is missing; behind the
// first what is computed and not used, and behind the first two the number of the source that the first one multiplies by.
void suggest_by_text(SourceText& text, const host::ValueGraph& graph, LineDivergence& out);

}  // namespace attn_diag::lines
