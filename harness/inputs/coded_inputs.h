// The inputs of kernels that take q, k or v as codes with scales (attn_diag/kernels/codes.h).
#pragma once

#include <optional>

#include "attn_diag/harness/inputs.h"
#include "attn_diag/harness/kernel.h"

namespace attn_diag {

// The case's inputs, where each one that the kernel takes as codes holds what its codes mean: results are judged by
// these. None for a kernel without codes. Throws Error where an input holds what no code means.
std::optional<InputData> coded_inputs(const Kernel& kernel, const Problem& problem,
                                      const InputData& inputs);

}  // namespace attn_diag
