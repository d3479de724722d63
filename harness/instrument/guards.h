#pragma once

#include <llvm/IR/Module.h>

namespace attn_diag::instrument {

// Puts bytes that nobody may use behind the module's variables. Returns whether there are any variables.
bool guard_variables(llvm::Module& module);

}  // namespace attn_diag::instrument
