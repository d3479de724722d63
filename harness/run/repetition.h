// Two runs of one case.
#pragma once

#include "attn_diag/harness/capture.h"
#include "attn_diag/harness/compare.h"

namespace attn_diag {

// Compares, bit for bit, what the second run of a case recorded with the first, into
// capture.repetition. Coverage faults of the second run are added where the first has none.
void add_repetition(Capture& capture, Capture second);

// Whether no cell of one run is further from the other's than rounding can take two runs of one kernel: twice
// its bound, or twice what is tolerated. Cells without a bound do not count. Both have the same tensors.
bool near_each_other(const Capture& one, const Capture& other, const Tolerance& tolerance);

// Whether every run of the case is within its bounds: `first` is how capture, the first run, compares.
bool every_run_agrees(const Capture& capture, const Comparison& first, const Tolerance& tolerance,
                      int threads);

// Cells of o and lse whose bits differ. `all`: also those that the first run did not write.
Repetition moved_outputs(const Capture& first, const Capture& second, bool all = true);

// "o(0, 1, 5, 3): 0.25 in one, 0.5 in the other"
std::string cell_text(const Repetition::Cell& cell);

// "Two runs of the same case differ in 3 cells of S, 12 cells of o; first S(0, 1, 5, 3): 0.25 in one,
// 0.5 in the other."; empty if nothing moved.
std::string repetition_text(const Repetition& repetition);

}  // namespace attn_diag
