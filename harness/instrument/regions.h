#pragma once

#include <llvm/IR/Function.h>

namespace attn_diag::instrument {

// Marks where lanes of a warp may part and where they have to meet again: a call before each branch that
// need not be the same for all, and one at its immediate post-dominator. Takes code as the source has it: before
// optimisation, with locals in registers and loops in simple form.
bool mark_regions(llvm::Function& function);

}  // namespace attn_diag::instrument
