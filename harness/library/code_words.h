// Inputs that a kernel takes as codes with scales (attn_diag/kernels/codes.h), in words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/kernels/adapter.h"

namespace attn_diag {

// "int8"
std::string_view text(CodeType type);

// "k as int8 codes with a scale per token"
std::vector<std::string> code_words(const KernelInfo& kernel);

}  // namespace attn_diag
