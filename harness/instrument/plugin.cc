// The plugin of clang that instruments kernel libraries for the host executor. See README.md.
#include <llvm/ADT/Twine.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include "attn_diag_host/stand_in_headers.h"
#include "harness/instrument/accesses.h"
#include "harness/instrument/array_shapes.h"
#include "harness/instrument/guards.h"
#include "harness/instrument/local_bounds.h"
#include "harness/instrument/loops.h"
#include "harness/instrument/regions.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;

// Whether it is of the C++ library, whose branches do nothing that lanes see of each other.
bool is_of_library(const Function& function) {
  const StringRef name = function.getName();
  for (const StringRef start : {"_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx"})
    if (name.substr(0, start.size()) == start) return true;
  return false;
}

// Whether it is of the stand-in CUDA headers: a report names the line that calls them.
bool is_of_headers(const Function& function) {
  const DISubprogram* const where = function.getSubprogram();
  if (where == nullptr) return false;
  // Much of PyTorch's stand-in is host code, whose lines nobody wants: only its small functions count.
  constexpr unsigned kSmall = 60;
  const std::string file = (where->getDirectory() + "/" + where->getFilename()).str();
  return is_stand_in_header(file) &&
         (file.find("torch") == file.npos || function.getInstructionCount() <= kSmall);
}

// Whether a report should name the lines that call it, as those of a helper that copies a tile, called by two lambdas: what is
// not inlined has one caller for all. Of what is large, or called in many places, the optimiser knows better.
bool is_small_helper(const Function& function) {
  constexpr unsigned kSmall = 300, kMostCalls = 16;
  return function.getInstructionCount() <= kSmall && !function.hasAddressTaken() &&
         function.hasNUsesOrMore(1) && !function.hasNUsesOrMore(kMostCalls + 1);
}

// Before optimisation.
struct MarkWatched : PassInfoMixin<MarkWatched> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    for (Function& function : module) {
      if (function.isIntrinsic()) continue;
      // The optimiser then makes no load or store that the source does not make, say before the branch
      // that guards it.
      if (!function.isDeclaration()) function.addFnAttr(Attribute::SanitizeThread);
      // Calls stay where lanes are together.
      if (!is_of_library(function)) function.setConvergent();
      if (!function.isDeclaration() &&
          (is_of_headers(function) || (!is_of_library(function) && is_small_helper(function))) &&
          !function.hasFnAttribute(Attribute::NoInline) &&
          !function.hasFnAttribute(Attribute::OptimizeNone))
        function.addFnAttr(Attribute::AlwaysInline);
    }
    // Keeps stores to shared arrays and device variables that this unit never reads, and loads of those it never
    // writes: other units may.
    SmallVector<GlobalValue*, 16> kept;
    for (GlobalVariable& global : module.globals())
      if (!global.isDeclaration() && !global.isConstant() && !global.getName().empty() &&
          !global.hasAvailableExternallyLinkage() && global.getName().substr(0, 5) != "llvm." &&
          global.getName().substr(0, 4) != "_ZGV" && !global.hasAppendingLinkage())
        kept.push_back(&global);
    if (!kept.empty()) appendToCompilerUsed(module, kept);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct MarkRegions : PassInfoMixin<MarkRegions> {
  static PreservedAnalyses run(Function& function, FunctionAnalysisManager&) {
    if (is_of_library(function) || !mark_regions(function)) return PreservedAnalyses::all();
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

// Before the tests of indices are moved away from what they test.
struct TellOfIndices : PassInfoMixin<TellOfIndices> {
  static PreservedAnalyses run(Function& function, FunctionAnalysisManager& manager) {
    return tell_of_indices(function, manager.getResult<DominatorTreeAnalysis>(function))
               ? PreservedAnalyses::none()
               : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

struct TellOfArguments : PassInfoMixin<TellOfArguments> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    return tell_of_arguments(module) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

struct GuardVariables : PassInfoMixin<GuardVariables> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    return guard_variables(module) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

struct AnnounceLoops : PassInfoMixin<AnnounceLoops> {
  static PreservedAnalyses run(Function& function, FunctionAnalysisManager& manager) {
    return announce_loops(function, manager.getResult<LoopAnalysis>(function),
                          manager.getResult<ScalarEvolutionAnalysis>(function))
               ? PreservedAnalyses::none()
               : PreservedAnalyses::all();
  }
};

struct AnnounceAccesses : PassInfoMixin<AnnounceAccesses> {
  static PreservedAnalyses run(Function& function, FunctionAnalysisManager& manager) {
    const bool announced = announce_accesses(function);
    if (announced) manager.invalidate(function, PreservedAnalyses::none());
    // Later: its arithmetic on addresses would look like another thread's way to the variable.
    const bool tested =
        !function.isDeclaration() &&
        test_local_bounds(function, manager.getResult<ScalarEvolutionAnalysis>(function),
                          manager.getResult<TargetLibraryAnalysis>(function));
    const bool told = tell_of_local_arrays(function);
    return announced || tested || told ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

void add_passes(PassBuilder& builder) {
  builder.registerPipelineStartEPCallback([](ModulePassManager& passes, auto) {
    passes.addPass(MarkWatched());
    FunctionPassManager each;
    each.addPass(PromotePass());
    each.addPass(TellOfIndices());
    each.addPass(SimplifyCFGPass());
    each.addPass(LoopSimplifyPass());
    each.addPass(MarkRegions());
    passes.addPass(createModuleToFunctionPassAdaptor(std::move(each)));
    passes.addPass(TellOfArguments());
  });
  builder.registerVectorizerStartEPCallback([](FunctionPassManager& passes, auto level) {
    if (level == decltype(level)::O0) return;
    passes.addPass(LoopSimplifyPass());
    passes.addPass(LCSSAPass());
    passes.addPass(AnnounceLoops());
  });
  builder.registerOptimizerLastEPCallback([](ModulePassManager& passes, auto) {
    passes.addPass(GuardVariables());
    passes.addPass(createModuleToFunctionPassAdaptor(AnnounceAccesses()));
  });
}

}  // namespace
}  // namespace attn_diag::instrument

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "attn_diag_instrument", "1", attn_diag::instrument::add_passes};
}
