// The inputs of kernels that take q, k or v as codes with scales (attn_diag/kernels/codes.h).
#pragma once

#include <optional>
#include <vector>

#include "attn_diag/harness/inputs.h"
#include "attn_diag/harness/kernel.h"

namespace attn_diag {

// The case's inputs, where each one that the kernel takes as codes holds what its codes mean: results are judged by
// these. None for a kernel without codes. Throws Error where an input holds what no code means.
std::optional<InputData> coded_inputs(const Kernel& kernel, const Problem& problem,
                                      const InputData& inputs);

// Of an input that the kernel takes as codes: the scale of each row, by batch, head and position; empty of others.
// `inputs`: the case's, or what coded_inputs() made of them.
std::vector<float> scales_of_rows(const Kernel& kernel, const Problem& problem,
                                  const InputData& inputs, int input);

}  // namespace attn_diag
