// What a run records, and how large that is, before anything is allocated.
#pragma once

#include <cstdint>

#include "attn_diag/harness/experiment.h"
#include "attn_diag/harness/plan.h"

namespace attn_diag {

// The region with every extent of 0 made whole. Throws Error where it leaves the problem.
Region resolve_region(const Region& region, const Problem& problem);

// What the kernel declares of its arithmetic. Throws Error where that makes no sense.
Arithmetic declared_arithmetic(const Kernel& kernel, const Problem& problem,
                               const Geometry& geometry);

// True if the tensor exists for this geometry: merged_l and merged_o need a merge of splits.
bool defined_for(Tensor t, const Geometry& geometry);

// The tensors a run records through taps: exposed, defined, of a stage the gate builds. o and lse
// are not among them: they are read from the kernel's outputs.
std::uint32_t recorded_tensors(const Kernel& kernel, const Geometry& geometry,
                               const RunOptions& options);

// The tensors that a run replaces, as such bits.
std::uint32_t replaced_tensors(const Kernel& kernel, const Geometry& geometry,
                               const RunOptions& options);

// Cells of a tensor within the region.
double cells_in_region(Tensor t, const Problem& problem, const Geometry& geometry,
                       const Region& region);

// Bytes of GPU memory that a run takes: every buffer the kernel is given and the zones around them.
double device_bytes(const Kernel& kernel, const Problem& problem, const Geometry& geometry,
                    const RunOptions& options);

// Throws Error if the run would allocate more than memory allows, with the size and what cuts it.
void check_memory(const Kernel& kernel, const Problem& problem, const Geometry& geometry,
                  const RunOptions& options);

// What the reference needs of an experiment: what its captures give, for a kernel that takes q, k and v as they are.
Capture case_of(const Experiment& experiment);

// What is known of a run before it is made: a capture without tensors, with q, k, v and the provenance. Throws as
// run_kernel() does for what cannot be run.
Capture capture_before_run(const Experiment& experiment);

}  // namespace attn_diag
