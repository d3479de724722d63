// Without guards, a read past the end of a __constant__ or __device__ variable would find the next one.
#include "harness/instrument/guards.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalAlias.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include "attn_diag_host/callouts.h"
#include "harness/instrument/array_shapes.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;

// Whether the variable is not the compiler's own, and defined here.
bool is_users(const GlobalVariable& global) {
  if (global.isDeclaration() || global.hasPrivateLinkage() ||
      global.hasAvailableExternallyLinkage() || global.hasAppendingLinkage() ||
      global.hasSection() || !global.getValueType()->isSized())
    return false;
  const StringRef name = global.getName();
  for (const StringRef start : {"llvm.", "_ZT", "_ZGV", ".str", "switch.table", "__const"})
    if (name.substr(0, start.size()) == start) return false;
  return !name.empty() && !name.contains("attn_diag_guard_");
}

// Shared variables, which are thread-local, have guards of their own.
bool is_guarded(const GlobalVariable& global) {
  return is_users(global) && !global.isThreadLocal() && !global.use_empty() &&
         !global.getName().contains("attn_diag");
}

Constant* part(GlobalVariable& whole, unsigned number) {
  Type* const word = Type::getInt32Ty(whole.getContext());
  return ConstantExpr::getInBoundsGetElementPtr(
      whole.getValueType(), &whole,
      ArrayRef<Constant*>{ConstantInt::get(word, 0), ConstantInt::get(word, number)});
}

// The guard has a name of its own, by which the checker knows where the variable ends.
GlobalAlias* guard(Module& module, GlobalVariable& variable) {
  Type* const bytes = ArrayType::get(Type::getInt8Ty(module.getContext()), callouts::kGuardBytes);
  auto* const both = StructType::get(module.getContext(), {variable.getValueType(), bytes});
  auto* const guarded = new GlobalVariable(
      module, both, variable.isConstant(), variable.getLinkage(),
      ConstantStruct::get(both, {variable.getInitializer(), Constant::getNullValue(bytes)}), "",
      &variable, variable.getThreadLocalMode(), variable.getAddressSpace());
  guarded->copyAttributesFrom(&variable);
  guarded->setComdat(variable.getComdat());
  guarded->setAlignment(module.getDataLayout().getPreferredAlign(&variable));
  guarded->copyMetadata(&variable, 0);
  variable.replaceAllUsesWith(part(*guarded, 0));
  guarded->takeName(&variable);
  variable.eraseFromParent();
  return GlobalAlias::create(bytes, 0, GlobalValue::InternalLinkage,
                             callouts::kGuardPrefix + guarded->getName(), part(*guarded, 1),
                             &module);
}

}  // namespace

bool guard_variables(Module& module) {
  SmallVector<GlobalVariable*, 16> guarded, named;
  for (GlobalVariable& global : module.globals()) {
    if (is_guarded(global)) guarded.push_back(&global);
    if (is_users(global)) named.push_back(&global);
  }
  SmallVector<GlobalValue*, 16> symbols;
  for (GlobalVariable* variable : named)
    if (GlobalAlias* const shape = name_shape(*variable)) symbols.push_back(shape);
  for (GlobalVariable* variable : guarded) symbols.push_back(guard(module, *variable));
  if (!symbols.empty()) appendToCompilerUsed(module, symbols);
  return !symbols.empty();
}

}  // namespace attn_diag::instrument
