// A formula and a line must not contradict each other in silence.
#pragma once

#include "attn_diag/harness/diagnose.h"
#include "attn_diag/harness/lines.h"

namespace attn_diag::matching {

// Whether a bug can make numbers wrong in the part of attention where they first are.
LineSays line_says(const Match& match, const LineDivergence& lines);

// Fills Match::line of the best. A name or class becomes kDisputed if the line contradicts all of it.
void confirm_by_line(Diagnosis& diagnosis, const LineDivergence& lines);

}  // namespace attn_diag::matching
