// Loops whose loads and stores are announced as a whole, before them.
//
//   for (i = 0; i < n; ++i)          if (attn_diag_loop(shape, values, sites))
//     s += a[i * stride];      ->      for (i = 0; i < n; ++i) s += a[i * stride];   vectorised
//                                    else
//                                      for (i = 0; i < n; ++i) { attn_diag_access_at_site(&a[i * stride]); s += ... }
//
// The loop may hold others. It does nothing but arithmetic, plain loads and plain stores; how often each loop goes
// round is known before, and addresses are affine in the iterations. What the executor does not know to be right
// as a whole runs in the second loop, which is the one that the source has: so every finding is its.
// Tests for overflow and bounds of array types are made for all iterations at once, before; the first loop has none.
#include "harness/instrument/loops.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <utility>
#include <vector>

#include "attn_diag_host/callouts.h"
#include "harness/instrument/accesses.h"
#include "harness/instrument/loop_nest.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;
using namespace callouts;

class Versions {
 public:
  Versions(Function& function, LoopInfo& loops, ScalarEvolution& evolution)
      : x_function(function),
        x_module(*function.getParent()),
        x_loops(loops),
        x_evolution(evolution),
        x_word(Type::getInt64Ty(function.getContext())) {}

  bool run() {
    for (Loop* loop : x_loops) find_nests(*loop);
    if (x_nests.empty()) return false;
    // All that is computed before a loop while what is known of loops still holds.
    SmallVector<Value*, 8> may;
    for (Nest& nest : x_nests) may.push_back(ask(nest));
    for (std::size_t i = 0; i < x_nests.size(); ++i) divide(x_nests[i], may[i]);
    tidy();
    return true;
  }

 private:
  void find_nests(Loop& loop) {
    Nest nest;
    if (read_nest(loop, x_loops, x_evolution, x_private, nest)) {
      x_nests.push_back(std::move(nest));
      return;
    }
    for (Loop* inner : loop) find_nests(*inner);
  }

  // The call before the nest.
  Value* ask(Nest& nest) {
    const auto loops = nest.loops.size();
    std::vector<std::uint32_t> shape = {static_cast<std::uint32_t>(loops),
                                        static_cast<std::uint32_t>(nest.accesses.size()),
                                        static_cast<std::uint32_t>(nest.tests.size()),
                                        static_cast<std::uint32_t>(nest.steps.size())};
    for (const Access& access : nest.accesses) shape.push_back(access.word);
    for (const Test& test : nest.tests)
      shape.push_back(static_cast<std::uint32_t>(test.what) << kTestShift | test.bits);
    shape.insert(shape.end(), nest.steps.begin(), nest.steps.end());
    Constant* const data = ConstantDataArray::get(x_function.getContext(), shape);
    auto* const constant = new GlobalVariable(x_module, data->getType(), true,
                                              GlobalValue::PrivateLinkage, data, "attn_diag.shape");
    auto* const sites_type = ArrayType::get(x_word, nest.accesses.size());
    auto* const sites = new GlobalVariable(x_module, sites_type, false, GlobalValue::PrivateLinkage,
                                           Constant::getNullValue(sites_type), "attn_diag.sites");
    x_sites.push_back(sites);

    Instruction* const end = nest.loop->getLoopPreheader()->getTerminator();
    SCEVExpander expander(x_evolution, x_module.getDataLayout(), "attn_diag");
    IRBuilder<> builder(end);
    SmallVector<Value*, 64> values;
    const auto signed_word = [&](const SCEV* s) -> Value* {
      if (s == nullptr) return builder.getInt64(0);
      Value* const value = expander.expandCodeFor(s, s->getType(), end);
      builder.SetInsertPoint(end);
      return builder.CreateSExtOrTrunc(value, x_word);
    };
    const auto add_form = [&](const Form& form, Value* object) {
      Value* base = signed_word(form.base);
      if (object != nullptr) base = builder.CreateAdd(builder.CreatePtrToInt(object, x_word), base);
      values.push_back(base);
      for (std::size_t i = 0; i < loops; ++i) values.push_back(signed_word(form.factor[i]));
    };
    for (const SCEV* again : nest.again) {
      Value* const value = expander.expandCodeFor(again, again->getType(), end);
      builder.SetInsertPoint(end);
      values.push_back(builder.CreateZExtOrTrunc(value, x_word));
    }
    for (const Access& access : nest.accesses) add_form(access.offset, access.object);
    for (const Test& test : nest.tests) {
      add_form(test.a, nullptr);
      add_form(test.b, nullptr);
    }
    mark(kLoopBegin, end, nest.loop->getStartLoc());
    builder.SetInsertPoint(end);
    AllocaInst* const memory = memory_for(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      builder.CreateStore(values[i], builder.CreateConstInBoundsGEP1_64(x_word, memory, i));
    Type* const words = PointerType::getUnqual(x_word);
    Type* const shape_type = PointerType::getUnqual(builder.getInt32Ty());
    FunctionCallee callee =
        x_module.getOrInsertFunction(kLoop, builder.getInt32Ty(), shape_type, words, words);
    CallInst* const call =
        builder.CreateCall(callee, {builder.CreatePointerCast(constant, shape_type), memory,
                                    builder.CreatePointerCast(sites, words)});
    for (const unsigned i : {0u, 1u, 2u}) call->addParamAttr(i, Attribute::NoCapture);
    finish(*call, nest.loop->getStartLoc());
    return builder.CreateICmpNE(call, builder.getInt32(0));
  }

  // One place on the stack for all nests. Nobody else is told of it.
  AllocaInst* memory_for(std::size_t words) {
    if (x_memory == nullptr) {
      IRBuilder<> builder(&*x_function.getEntryBlock().getFirstInsertionPt());
      x_memory = builder.CreateAlloca(x_word, builder.getInt64(0), "attn_diag.values");
    }
    const auto* known = cast<ConstantInt>(x_memory->getArraySize());
    if (known->getZExtValue() < words) x_memory->setOperand(0, ConstantInt::get(x_word, words));
    return x_memory;
  }

  static void finish(CallInst& call, const DebugLoc& where) {
    call.setDoesNotThrow();
    call.addFnAttr(Attribute::NoMerge);
    call.setTailCallKind(CallInst::TCK_NoTail);
    call.setDebugLoc(where);
  }

  void mark(const char* name, Instruction* before, const DebugLoc& where) {
    IRBuilder<> builder(before);
    FunctionCallee callee = x_module.getOrInsertFunction(name, builder.getVoidTy());
    CallInst* const call = builder.CreateCall(callee);
    call->addFnAttr(Attribute::NoDuplicate);
    call->addFnAttr(Attribute::Convergent);
    finish(*call, where);
  }

  // A block of its own for the way out of the loop from `exiting`.
  BasicBlock* way_out(BasicBlock& exiting, BasicBlock& exit) {
    BasicBlock* const way =
        BasicBlock::Create(x_function.getContext(), "attn_diag.end", &x_function, &exit);
    IRBuilder<>(way).CreateBr(&exit);
    exiting.getTerminator()->replaceSuccessorWith(&exit, way);
    return way;
  }

  void divide(Nest& nest, Value* may) {
    Loop& loop = *nest.loop;
    const DebugLoc where = loop.getStartLoc();
    BasicBlock* const before = loop.getLoopPreheader();
    BasicBlock* const exiting = loop.getExitingBlock();
    BasicBlock* const exit = loop.getExitBlock();
    const SmallVector<BasicBlock*, 16> blocks(loop.block_begin(), loop.block_end());

    // The copy.
    ValueToValueMapTy map;
    SmallVector<BasicBlock*, 16> copies;
    for (BasicBlock* block : blocks) {
      BasicBlock* const copy = CloneBasicBlock(block, map, ".whole", &x_function);
      map[block] = copy;
      copies.push_back(copy);
    }
    BasicBlock* const enter_whole =
        BasicBlock::Create(x_function.getContext(), "attn_diag.whole", &x_function, copies.front());
    BasicBlock* const enter_single = BasicBlock::Create(x_function.getContext(), "attn_diag.single",
                                                        &x_function, loop.getHeader());
    map[before] = enter_whole;
    remapInstructionsInBlocks(copies, map);
    IRBuilder<>(enter_whole).CreateBr(copies.front());
    IRBuilder<>(enter_single).CreateBr(loop.getHeader());
    loop.getHeader()->replacePhiUsesWith(before, enter_single);
    Instruction* const end = before->getTerminator();
    IRBuilder<>(end).CreateCondBr(may, enter_whole, enter_single);
    end->eraseFromParent();

    // Both go on where the loop has ended.
    BasicBlock* const out_single = way_out(*exiting, *exit);
    auto* const exiting_copy = cast<BasicBlock>(map[exiting]);
    BasicBlock* const out_whole = way_out(*exiting_copy, *exit);
    for (PHINode& phi : exit->phis()) {
      Value* const value = phi.getIncomingValueForBlock(exiting);
      phi.setIncomingBlock(static_cast<unsigned>(phi.getBasicBlockIndex(exiting)), out_single);
      Value* const copy = map.count(value) != 0 ? static_cast<Value*>(map[value]) : value;
      phi.addIncoming(copy, out_whole);
    }
    for (BasicBlock* out : {out_whole, out_single}) mark(kLoopEnd, out->getTerminator(), where);

    announce(nest, blocks);
    simplify_copy(nest, map, copies);
  }

  void announce(const Nest& nest, ArrayRef<BasicBlock*> blocks) {
    GlobalVariable* const sites = x_sites[static_cast<std::size_t>(&nest - x_nests.data())];
    DenseMap<Instruction*, Value*> site_of;
    IRBuilder<> builder(x_function.getContext());
    for (std::size_t i = nest.accesses.size(); i-- > 0;)  // the first of each instruction
      site_of[nest.accesses[i].at] =
          builder.CreateConstInBoundsGEP2_64(sites->getValueType(), sites, 0, i);
    SmallVector<Instruction*, 64> all;
    for (BasicBlock* block : blocks)
      for (Instruction& at : *block) all.push_back(&at);
    announce_in_loop(x_function, all, site_of);
  }

  void simplify_copy(const Nest& nest, ValueToValueMapTy& map, ArrayRef<BasicBlock*> copies) {
    for (const auto& [branch, value] : nest.branches)
      cast<BranchInst>(static_cast<Value*>(map[branch]))
          ->setCondition(ConstantInt::getBool(x_function.getContext(), value));
    for (const auto& [condition, value] : nest.decided)
      if (map.count(condition) != 0)
        static_cast<Value*>(map[condition])
            ->replaceAllUsesWith(ConstantInt::getBool(x_function.getContext(), value));
    for (WithOverflowInst* operation : nest.overflows) {
      auto* const copy = cast<WithOverflowInst>(static_cast<Value*>(map[operation]));
      IRBuilder<> builder(copy);
      auto* const result = builder.CreateBinOp(copy->getBinaryOp(), copy->getLHS(), copy->getRHS());
      if (auto* made = dyn_cast<BinaryOperator>(result)) made->setHasNoSignedWrap();
      for (User* user : make_early_inc_range(copy->users()))
        if (auto* extract = dyn_cast<ExtractValueInst>(user)) {
          extract->replaceAllUsesWith(extract->getIndices()[0] == 0
                                          ? result
                                          : ConstantInt::getFalse(x_function.getContext()));
          extract->eraseFromParent();
        }
      if (copy->use_empty()) copy->eraseFromParent();
    }
    for (BasicBlock* copy : copies) {
      for (Instruction& at : make_early_inc_range(*copy))
        if (is_region_mark(at)) at.eraseFromParent();
      x_copies.push_back(copy);
    }
    for (Loop* loop : nest.loops) {
      auto* const latch = cast<BasicBlock>(static_cast<Value*>(map[loop->getLoopLatch()]));
      // A sum of floating-point numbers has its order.
      const bool sums = any_of(loop->getHeader()->phis(), [](const PHINode& phi) {
        return phi.getType()->isFPOrFPVectorTy();
      });
      set_loop_options(*latch->getTerminator(), loop->isInnermost() && !sums);
    }
  }

  void set_loop_options(Instruction& latch, bool vectorise) {
    LLVMContext& context = x_function.getContext();
    SmallVector<Metadata*, 2> options = {nullptr};
    if (vectorise) {
      Metadata* const on = ConstantAsMetadata::get(ConstantInt::getTrue(context));
      options.push_back(
          MDNode::get(context, {MDString::get(context, "llvm.loop.vectorize.enable"), on}));
    }
    MDNode* const id = MDNode::getDistinct(context, options);
    id->replaceOperandWith(0, id);
    latch.setMetadata(LLVMContext::MD_loop, id);
  }

  // Without the tests a copied loop is a block or a few, as the vectoriser wants it.
  void tidy() {
    for (const WeakTrackingVH& copy : x_copies)
      if (auto* block = cast_or_null<BasicBlock>(static_cast<Value*>(copy)))
        ConstantFoldTerminator(block, true);
    removeUnreachableBlocks(x_function);
    for (const WeakTrackingVH& copy : x_copies)
      if (auto* block = cast_or_null<BasicBlock>(static_cast<Value*>(copy)))
        MergeBlockIntoPredecessor(block);
  }

  Function& x_function;
  Module& x_module;
  LoopInfo& x_loops;
  ScalarEvolution& x_evolution;
  Type* x_word;
  PrivateMemory x_private;
  std::vector<Nest> x_nests;
  std::vector<GlobalVariable*> x_sites;  // by nest
  SmallVector<WeakTrackingVH, 64> x_copies;
  AllocaInst* x_memory = nullptr;
};

bool is_mark(const Instruction& at, const char* name) {
  const auto* call = dyn_cast<CallInst>(&at);
  const Function* const called = call == nullptr ? nullptr : call->getCalledFunction();
  return called != nullptr && called->getName() == name;
}

}  // namespace

bool announce_loops(Function& function, LoopInfo& loops, ScalarEvolution& evolution) {
  return Versions(function, loops, evolution).run();
}

// The instructions from where an announced loop begins to where it ends. The marks keep what is theirs between
// them, and neither is ever duplicated.
SmallPtrSet<Instruction*, 32> announced_in_loops(Function& function,
                                                 SmallPtrSetImpl<Instruction*>& marks) {
  SmallPtrSet<Instruction*, 32> announced;
  SmallVector<Instruction*, 16> open;
  for (BasicBlock& block : function)
    for (Instruction& at : block) {
      const bool begins = is_mark(at, kLoopBegin);
      if (begins) open.push_back(&at);
      if (begins || is_mark(at, kLoopEnd)) marks.insert(&at);
    }
  while (!open.empty()) {
    Instruction* at = open.pop_back_val();
    while (at != nullptr && announced.insert(at).second && !is_mark(*at, kLoopEnd)) {
      if (at->isTerminator())
        for (BasicBlock* next : successors(at->getParent())) open.push_back(&next->front());
      at = at->getNextNode();
    }
  }
  return announced;
}

}  // namespace attn_diag::instrument
