// A way on where a kernel's own code refuses a case.
#pragma once

#include <string>

#include "attn_diag/harness/kernel.h"
#include "tools/attn_diag/cases.h"

namespace attn_diag::cli {

// The flags with which the kernel takes a case that its code refuses, found by trying cases beside it, as a sentence
// behind what it said: " It takes the problem with --seqlen-q 1."; empty if none is found.
std::string taken_beside(const Kernel& kernel, const RequestedCase& refused);

}  // namespace attn_diag::cli
