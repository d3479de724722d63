// Kernels that write q, k or v, or the S or P that they are given: what was given is compared with what is there after the run.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/run.h"
#include "harness/run/run_memory.h"

namespace attn_diag {

// One for each input that a run has changed. On a GPU `after` holds what was brought back.
std::vector<InputWrite> find_input_writes(const Problem& problem, const InputData& given,
                                          const Between& between, const RunMemory& after);

// "the kernel wrote k, an input: 12 of its elements, first k(0, 1, 5, 3), which was 0.25 and is 1.5"
std::string input_write_text(const InputWrite& write);
// The texts of all writes, one after the other; empty if there are none.
std::string input_writes_text(const std::vector<InputWrite>& writes);

}  // namespace attn_diag
