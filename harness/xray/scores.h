// From weights to S, m, l and P.
#pragma once

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/xray.h"
#include "harness/xray/weights.h"

namespace attn_diag::xraying {

// Puts S, m, l and P into the result's capture, which has o and perhaps lse, and counts.
void reconstruct(const Weights& weights, XrayResult& to, int threads);

}  // namespace attn_diag::xraying
