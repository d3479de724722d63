#pragma once

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Function.h>

namespace attn_diag::instrument {

// Tests accesses at run-time offsets into the function's own local variables, with a call where one goes past the
// end. Returns whether it inserted any.
bool test_local_bounds(llvm::Function& function, llvm::ScalarEvolution& numbers,
                       const llvm::TargetLibraryInfo& library);

}  // namespace attn_diag::instrument
