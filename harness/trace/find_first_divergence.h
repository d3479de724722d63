// Where a run first leaves the reference.
#pragma once

#include <optional>

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"
#include "attn_diag/harness/first_divergence.h"

namespace attn_diag {

// The first tensor in pipeline order that has a mismatch, or a cell written never or repeatedly,
// and the lowest index of either. `comparison` is of this capture. nullopt: there is none.
std::optional<FirstDivergence> find_first_divergence(const Capture& capture,
                                                     const Comparison& comparison);

// True if a tensor of the stage has a mismatch or a coverage fault.
bool stage_diverges(Stage stage, const Capture& capture, const Comparison& comparison);

// The comparison's tensors of one stage.
Comparison of_stage(const Comparison& comparison, Stage stage);

}  // namespace attn_diag
