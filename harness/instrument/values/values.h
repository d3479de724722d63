// Makes code tell where its numbers come from (attn_diag/harness/host/value_callouts.h).
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>

namespace attn_diag::instrument {

// Functions whose own arithmetic is not looked at: conversions of types without instructions, exponentials,
// calls of the executor.
bool is_primitive(const llvm::Function& function);

// For a function in SSA form. `sites` counts them in the module.
bool watch_values(llvm::Function& function, const llvm::DominatorTree& dominators,
                  const llvm::LoopInfo& loops);

}  // namespace attn_diag::instrument
