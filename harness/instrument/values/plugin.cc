// The plugin of clang that makes the watch build of a kernel library, x.watch.so. See README.md.
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include "harness/instrument/launched.h"
#include "harness/instrument/values/value_sites.h"
#include "harness/instrument/values/values.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;

constexpr const char* kWatched = "attn-diag-watched";

// Code that runs on the device: what is launched, what asks for its index, what calls that, and all that those call.
SmallPtrSet<Function*, 32> device_functions(Module& module) {
  SmallPtrSet<Function*, 32> found;
  SmallVector<Function*, 64> pending;
  const auto add = [&](Function* function) {
    if (function != nullptr && !function->isDeclaration() && found.insert(function).second)
      pending.push_back(function);
  };
  const auto add_user = [&](Function* function) {
    if (function != nullptr && !function->isDeclaration()) add(function);
  };
  for (GlobalVariable& global : module.globals()) {
    const StringRef name = global.getName();
    if (!name.contains("threadIdx") && !name.contains("blockIdx")) continue;
    SmallVector<User*, 64> users(global.users());
    while (!users.empty()) {
      User* const user = users.pop_back_val();
      if (auto* at = dyn_cast<Instruction>(user))
        add_user(at->getFunction());
      else
        users.append(user->user_begin(), user->user_end());
    }
  }
  for (Function* const kernel : launched_functions(module)) add(kernel);
  // Callers first, then everything below.
  SmallVector<Function*, 64> callers(found.begin(), found.end());
  while (!callers.empty()) {
    Function* const function = callers.pop_back_val();
    for (User* user : function->users()) {
      auto* const call = dyn_cast<CallBase>(user);
      if (call == nullptr || call->getCalledFunction() != function) continue;
      if (!found.count(call->getFunction())) callers.push_back(call->getFunction());
      add(call->getFunction());
    }
  }
  while (!pending.empty()) {
    Function* const function = pending.pop_back_val();
    for (BasicBlock& block : *function)
      for (Instruction& at : block)
        if (auto* call = dyn_cast<CallBase>(&at)) add(call->getCalledFunction());
  }
  return found;
}

// So that a kernel and what it calls are one function, whose numbers can be followed in registers.
struct InlineAll : PassInfoMixin<InlineAll> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    for (Function* each : device_functions(module)) {
      Function& function = *each;
      function.addFnAttr(kWatched);
      function.removeFnAttr(Attribute::OptimizeNone);
      if (is_primitive(function)) {
        function.removeFnAttr(Attribute::AlwaysInline);
        function.addFnAttr(Attribute::NoInline);
        continue;
      }
      function.removeFnAttr(Attribute::NoInline);
      function.addFnAttr(Attribute::AlwaysInline);
    }
    // What a host function of the user's moves or converts between launches.
    for (Function& function : module) {
      if (function.isDeclaration() || function.hasFnAttribute(kWatched)) continue;
      if (is_primitive(function)) {
        function.removeFnAttr(Attribute::AlwaysInline);
        function.addFnAttr(Attribute::NoInline);
      } else if (const DISubprogram* const at = function.getSubprogram();
                 at != nullptr && !is_header_file(at->getFilename())) {
        function.addFnAttr(kWatched);
        function.addFnAttr(kOfHost);
      }
    }
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

// While variables are still in memory.
struct NoteAssignments : PassInfoMixin<NoteAssignments> {
  static PreservedAnalyses run(Function& function, FunctionAnalysisManager&) {
    note_assignments(function);
    return PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

struct WatchValues : PassInfoMixin<WatchValues> {
  static PreservedAnalyses run(Function& function, FunctionAnalysisManager& manager) {
    if (is_primitive(function) || !function.hasFnAttribute(kWatched))
      return PreservedAnalyses::all();
    if (!watch_values(function, manager.getResult<DominatorTreeAnalysis>(function),
                      manager.getResult<LoopAnalysis>(function)))
      return PreservedAnalyses::all();
    // What optimising costs grows faster than the function; it runs once. But threads have small stacks, and what is not
    // optimised needs more of them: of the largest a fourth of a byte for each instruction.
    constexpr unsigned kLarge = 30'000, kHuge = 600'000;  // instructions
    const unsigned count = function.getInstructionCount();
    if (count > kLarge && count < kHuge) {
      function.removeFnAttr(Attribute::AlwaysInline);
      function.addFnAttr(Attribute::NoInline);
      function.addFnAttr(Attribute::OptimizeNone);
    }
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

// Bodies that are nobody's any more need not be compiled.
struct DropInlined : PassInfoMixin<DropInlined> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    return drop_unused(module) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

// Calls made as the library is loaded and unloaded, with all sites of the module.
struct RegisterSites : PassInfoMixin<RegisterSites> {
  static PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    auto* const byte_pointer = PointerType::getUnqual(Type::getInt8Ty(module.getContext()));
    SmallVector<Constant*, 256> sites;
    for (GlobalVariable& global : module.globals())
      if (is_site(global)) sites.push_back(ConstantExpr::getPointerCast(&global, byte_pointer));
    if (sites.empty()) return PreservedAnalyses::all();
    auto* const type = ArrayType::get(byte_pointer, sites.size());
    auto* const all = new GlobalVariable(module, type, true, GlobalValue::PrivateLinkage,
                                         ConstantArray::get(type, sites), "attn_diag.sites");
    const auto call = [&](const char* name) {
      auto* const made =
          Function::Create(FunctionType::get(Type::getVoidTy(module.getContext()), false),
                           GlobalValue::InternalLinkage, Twine("caller_of_") + name, module);
      IRBuilder<> builder(BasicBlock::Create(module.getContext(), "", made));
      SmallVector<Value*, 2> arguments = {builder.CreatePointerCast(all, byte_pointer),
                                          builder.getInt64(sites.size())};
      builder.CreateCall(module.getOrInsertFunction(
                             name, FunctionType::get(builder.getVoidTy(),
                                                     {byte_pointer, builder.getInt64Ty()}, false)),
                         arguments);
      builder.CreateRetVoid();
      return made;
    };
    Function* const add = call(value_callouts::kAddSites);
    Function* const remove = call(value_callouts::kRemoveSites);
    appendToGlobalCtors(module, add, 0);
    appendToGlobalDtors(module, remove, 0);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

void add_passes(PassBuilder& builder) {
  builder.registerPipelineStartEPCallback([](ModulePassManager& passes, auto) {
    passes.addPass(InlineAll());
    passes.addPass(AlwaysInlinerPass(false));
    passes.addPass(DropInlined());
    FunctionPassManager each;
    each.addPass(NoteAssignments());
#if LLVM_VERSION_MAJOR >= 16
    each.addPass(SROAPass(SROAOptions::PreserveCFG));
#else
    each.addPass(SROAPass());
#endif
    each.addPass(WatchValues());
    passes.addPass(createModuleToFunctionPassAdaptor(std::move(each)));
    passes.addPass(RegisterSites());
  });
}

}  // namespace
}  // namespace attn_diag::instrument

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "attn_diag_values", "1", attn_diag::instrument::add_passes};
}
