#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>

namespace attn_diag::instrument {

// Memory that no other thread can reach, or that nobody writes: its accesses are not announced.
class PrivateMemory {
 public:
  bool is(const llvm::Value* pointer);

 private:
  llvm::DenseMap<const llvm::Value*, bool> x_known;
};

// Inserts a call before every access to memory. Returns whether it inserted any.
bool announce_accesses(llvm::Function& function);

// For these instructions only. `sites`: where the calls of an instruction leave their addresses.
void announce_in_loop(llvm::Function& function, llvm::ArrayRef<llvm::Instruction*> all,
                      const llvm::DenseMap<llvm::Instruction*, llvm::Value*>& sites);

}  // namespace attn_diag::instrument
