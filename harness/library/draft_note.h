#pragma once

#include <string>

#include "attn_diag/harness/kernel.h"

namespace attn_diag {

// Says that the kernel's adapter is a draft that nobody has read (attn_diag/kernels/draft.h). Empty: it is not.
std::string draft_note(const Kernel& kernel);

}  // namespace attn_diag
