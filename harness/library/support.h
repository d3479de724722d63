// What a kernel declares that it takes, against a problem and in words.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/kernels/adapter.h"

namespace attn_diag {

// What is declared, one thing an entry: "dtype fp16, bf16", "head_dim 64, 128", "mask none".
std::vector<std::string> support_words(const Support& support);

// What the kernel writes otherwise than docs/conventions.md says: "lse in base 2". Often empty.
std::vector<std::string> convention_words(const Conventions& conventions);
// What of attention it computes, and which inputs it takes as codes; empty: all of it, none.
std::vector<std::string> part_words(const KernelInfo& kernel);

// What of a problem nobody asked for.
struct LeftOpen {
  bool dtype = false, layout = false, head_dim = false, mask = false;
};
// Gives these the nearest value that the kernel takes, where it does not take theirs. What was changed, as flags:
// "--dtype bf16". head_dim_v goes with head_dim where they were equal; softmax_scale stays.
std::vector<std::string> choose_open(const Support& support, LeftOpen open, Problem& problem);

// Why a problem is not among those declared, and which are; empty if it is.
std::string why_not_supported(const Support& support, const Problem& problem);

}  // namespace attn_diag
