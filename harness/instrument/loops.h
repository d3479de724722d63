#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Function.h>

namespace attn_diag::instrument {

// Makes a second copy, without calls and vectorised, of loops whose accesses can be announced as a whole
// (loops.cc), and returns whether there are any. Takes code before vectorisation, with loops in simple and
// closed form.
bool announce_loops(llvm::Function& function, llvm::LoopInfo& loops,
                    llvm::ScalarEvolution& evolution);

// The instructions of both copies, whose accesses have their calls already, and the marks that delimit them.
llvm::SmallPtrSet<llvm::Instruction*, 32> announced_in_loops(
    llvm::Function& function, llvm::SmallPtrSetImpl<llvm::Instruction*>& marks);

}  // namespace attn_diag::instrument
