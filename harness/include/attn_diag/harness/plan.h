// What a run takes and allocates, before it is run.
#pragma once

#include <cstdint>

#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/options.h"
#include "attn_diag/kernels/geometry.h"
#include "attn_diag/kernels/problem.h"

namespace attn_diag {

// The geometry the kernel takes for a problem under these options. Throws Error naming what the
// kernel does support.
Geometry plan_geometry(const Kernel& kernel, const Problem& problem, const RunOptions& options);

// Bytes a run allocates: capture, replacements, outputs and workspace.
double run_bytes(const Kernel& kernel, const Problem& problem, const Geometry& geometry,
                 const RunOptions& options);

}  // namespace attn_diag
