#pragma once

#include <string>

#include "attn_diag/harness/kernel.h"

namespace attn_diag {

// Of a kernel whose adapter is a draft that nobody has read (attn_diag/kernels/draft.h): that it is one. Empty: it
// is none.
std::string draft_note(const Kernel& kernel);

}  // namespace attn_diag
