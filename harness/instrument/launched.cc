#include "harness/instrument/launched.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>

namespace attn_diag::instrument {
namespace {

using namespace llvm;

// Calls act(function) for every function that an instruction names, as what it calls or as a value.
template <class Act>
void for_each_named(Instruction& at, const Act& act) {
  for (Use& operand : at.operands())
    if (auto* function = dyn_cast<Function>(operand.get()->stripPointerCasts())) act(*function);
}

bool is_of_library(StringRef name) {
  return name.startswith("_ZSt") || name.startswith("_ZNSt") || name.startswith("_ZNKSt");
}

}  // namespace

// A kernel that its name alone says is a value there; one whose arguments say which it is is called by the code of the
// launch, through std::apply.
SmallSetVector<Function*, 8> launched_functions(Module& module) {
  SmallSetVector<Function*, 8> found;
  const auto add = [&](Function& function) {
    if (!function.isDeclaration()) found.insert(&function);
  };
  SmallPtrSet<Function*, 32> seen;
  SmallVector<Function*, 32> ways;
  const auto follow = [&](Function& function) {
    if (!function.isDeclaration() && seen.insert(&function).second) ways.push_back(&function);
  };
  for (Function& function : module) {
    const StringRef name = function.getName();
    if (name.contains("ConfiguredLaunch") && name.contains("Deduced")) follow(function);
    const bool launches =
        name.contains("plain_kernel") || name.startswith("_Z16cudaLaunchKernel") ||
        name.startswith("_Z18cudaLaunchKernelEx") || name.contains("cudaLaunchCooperativeKernel") ||
        name.startswith("cudaLaunchKernel");
    if (!launches) continue;
    for (User* user : function.users())
      if (auto* call = dyn_cast<CallBase>(user);
          call != nullptr && call->getCalledFunction() == &function)
        for (Use& argument : call->args())
          if (auto* kernel = dyn_cast<Function>(argument.get()->stripPointerCasts())) add(*kernel);
  }
  while (!ways.empty()) {
    Function* const way = ways.pop_back_val();
    for (BasicBlock& block : *way)
      for (Instruction& at : block)
        for_each_named(at, [&](Function& named) {
          if (is_of_library(named.getName()) || named.getName().contains("ConfiguredLaunch"))
            follow(named);
          else if (!named.getName().contains("attn_diag4host"))
            add(named);
        });
  }
  return found;
}

bool drop_unused(Module& module) {
  bool any = false;
  for (bool changed = true; changed;) {
    changed = false;
    for (Function& function : make_early_inc_range(module)) {
      function.removeDeadConstantUsers();
      if (function.isDeclaration() || !function.use_empty() ||
          !(function.hasLocalLinkage() || function.hasLinkOnceLinkage()))
        continue;
      function.eraseFromParent();
      changed = any = true;
    }
  }
  return any;
}

}  // namespace attn_diag::instrument
