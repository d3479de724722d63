// Which functions of a module are launched, and which nobody needs.
#pragma once

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Module.h>

namespace attn_diag::instrument {

// Those with a body, in the order of the module.
llvm::SmallSetVector<llvm::Function*, 8> launched_functions(llvm::Module& module);

// Takes out bodies that nothing refers to and that no other module can ask for. True: there were some.
bool drop_unused(llvm::Module& module);

}  // namespace attn_diag::instrument
