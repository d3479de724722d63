// The plugin of clang that compiles no kernels but those that a list names: instances of a template, mostly, of
// which a case launches one. What launches another is told so. See README.md.
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include <string>

#include "attn_diag_host/callouts.h"
#include "harness/instrument/launched.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;

// g++ says of an instance that its template is static, clang++ does not.
std::string without_static(StringRef name) {
  if (name.startswith("_ZL")) return ("_Z" + name.drop_front(3)).str();
  return name.str();
}

StringSet<> listed_kernels(const Module& module) {
  StringSet<> names;
  const GlobalVariable* const list = module.getNamedGlobal(callouts::kOnlyKernels);
  if (list == nullptr || !list->hasInitializer()) return names;
  const auto* const text = dyn_cast<ConstantDataSequential>(list->getInitializer());
  if (text == nullptr || !text->isCString()) return names;
  SmallVector<StringRef, 8> each;
  text->getAsCString().split(each, ' ', -1, false);
  for (const StringRef name : each) names.insert(without_static(name));
  return names;
}

struct LeaveOut : PassInfoMixin<LeaveOut> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    const StringSet<> kept = listed_kernels(module);
    if (kept.empty()) return PreservedAnalyses::all();
    for (Function* const kernel : launched_functions(module)) {
      if (kept.contains(without_static(kernel->getName()))) continue;
      const auto linkage = kernel->getLinkage();
      kernel->deleteBody();
      kernel->setLinkage(linkage);
      kernel->setSubprogram(nullptr);
      kernel->setPersonalityFn(nullptr);
      IRBuilder<> builder(BasicBlock::Create(module.getContext(), "", kernel));
      builder.CreateCall(module.getOrInsertFunction(callouts::kLeftOut, builder.getVoidTy()));
      builder.CreateUnreachable();
    }
    drop_unused(module);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

void add_passes(PassBuilder& builder) {
  builder.registerPipelineStartEPCallback(
      [](ModulePassManager& passes, auto) { passes.addPass(LeaveOut()); });
}

}  // namespace
}  // namespace attn_diag::instrument

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "attn_diag_leave_out", "1", attn_diag::instrument::add_passes};
}
