// Which array a report is about, and its extents: so that the checker can say sQ[30][32].
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalAlias.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace attn_diag::instrument {

// A symbol beside the variable whose name says its extents (callouts::kShapePrefix); null: it is no array.
llvm::GlobalAlias* name_shape(llvm::GlobalVariable& variable);

// Inserts a call that tells what the next report is about. `type`: of the variable, or null; `offset`: of the indexed
// part of the variable, to which `dimension` indices lead.
void tell_about(llvm::IRBuilder<>& builder, llvm::StringRef name, llvm::Type* type,
                llvm::Value* offset, unsigned dimension);

// Tells which variable the compiler's reports of indices are about. Early, while its tests are beside what they test.
bool tell_of_indices(llvm::Function& function, const llvm::DominatorTree& dominators);

// Tells what the kernels that are launched here call the memory that they are given.
bool tell_of_arguments(llvm::Module& module);

// Tells about local arrays before they are declared to the checker (attn_diag_host/check_hooks.h).
bool tell_of_local_arrays(llvm::Function& function);

}  // namespace attn_diag::instrument
