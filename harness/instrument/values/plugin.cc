// The plugin of clang that makes the watch build of a kernel library, x.watch.so. See README.md.
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/Scalar/SROA.h>

#include "harness/instrument/values/values.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;

// So that a kernel and what it calls are one function, whose numbers can be followed in registers.
struct InlineAll : PassInfoMixin<InlineAll> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    for (Function& function : module) {
      if (function.isDeclaration() || function.isIntrinsic()) continue;
      function.removeFnAttr(Attribute::OptimizeNone);
      if (is_primitive(function)) {
        function.removeFnAttr(Attribute::AlwaysInline);
        function.addFnAttr(Attribute::NoInline);
        continue;
      }
      function.removeFnAttr(Attribute::NoInline);
      function.addFnAttr(Attribute::AlwaysInline);
    }
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct WatchValues : PassInfoMixin<WatchValues> {
  static PreservedAnalyses run(Function& function, FunctionAnalysisManager& manager) {
    if (is_primitive(function)) return PreservedAnalyses::all();
    return watch_values(function, manager.getResult<DominatorTreeAnalysis>(function),
                        manager.getResult<LoopAnalysis>(function))
               ? PreservedAnalyses::none()
               : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

// Bodies that are nobody's any more need not be compiled.
struct DropInlined : PassInfoMixin<DropInlined> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
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
    return any ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

void add_passes(PassBuilder& builder) {
  builder.registerPipelineStartEPCallback([](ModulePassManager& passes, auto) {
    passes.addPass(InlineAll());
    passes.addPass(AlwaysInlinerPass(false));
    passes.addPass(DropInlined());
    FunctionPassManager each;
#if LLVM_VERSION_MAJOR >= 16
    each.addPass(SROAPass(SROAOptions::PreserveCFG));
#else
    each.addPass(SROAPass());
#endif
    each.addPass(WatchValues());
    passes.addPass(createModuleToFunctionPassAdaptor(std::move(each)));
  });
}

}  // namespace
}  // namespace attn_diag::instrument

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "attn_diag_values", "1", attn_diag::instrument::add_passes};
}
