// Coverage: every cell of a recorded tensor is written exactly once per run, or it is not needed.
#pragma once

#include "attn_diag/harness/capture.h"

namespace attn_diag {

// Judges the write counts of every recorded tensor of a finished run, sets capture.coverage and
// releases the counts.
//
// A cell may stay unwritten only if the kernel declares skips_masked_tiles and the cell lies on a
// (query tile, KV tile) in which the reference sees no key; it then gets the neutral value: S = -inf,
// P = 0, l = 0, partial_o = 0, and for m (in the running frame), running_m, running_l and running_o
// the value of the split's tile before, or -inf, -inf, 0, 0 if there is none. Every other unwritten
// cell keeps what is in it and is counted as never written. Tensors without counts are left alone.
void settle_coverage(Capture& capture);

}  // namespace attn_diag
