#pragma once

#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/Instruction.h>

namespace attn_diag::instrument {

// Where an instruction stands in the source. Of two that the optimiser made one it keeps no line: then what is before it on
// the way there, as the "if" of "if (c) a = x; else a = y;".
llvm::DebugLoc place_near(const llvm::Instruction& at);

}  // namespace attn_diag::instrument
