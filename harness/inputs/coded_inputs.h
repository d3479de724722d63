// The inputs of kernels that take q, k or v as codes with scales (attn_diag/kernels/codes.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/run.h"

namespace attn_diag {

// The case's inputs, each that the kernel takes as codes being what its codes mean: that is what is judged by. Of
// kernels without codes: none. Throws Error where an input holds what no code means.
std::optional<InputData> coded_inputs(const Kernel& kernel, const Problem& problem,
                                      const InputData& inputs);

// "k as int8 codes with a scale per token"
std::vector<std::string> code_words(const KernelInfo& kernel);

}  // namespace attn_diag
