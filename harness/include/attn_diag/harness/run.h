// Running a kernel and recording what its stages produced.
#pragma once

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/experiment.h"

namespace attn_diag {

// Runs the kernel once, as experiment.run says. The capture has every tensor that the kernel exposes up to the gate, o in
// the problem's dtype as [batch][head][query][dim] in either layout, lse, and coverage: cells that
// no thread wrote are found for o and lse even without taps, because their memory is poisoned with
// signalling NaNs, which no arithmetic produces.
// Under schedule "lockstep" the lockstep build of the kernel's library is loaded.
// Throws Error for what the kernel does not support, too large captures, a write outside the
// buffers given to the kernel, or a launch that failed (with the executor's finding).
Capture run_kernel(const Experiment& experiment);

}  // namespace attn_diag
