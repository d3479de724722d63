// Where warps diverge and converge again, as on hardware since sm_70 (BSSY and BSYNC): `enter` before a
// branch, `join` where all paths from it meet. The calls are convergent, so that no later pass makes
// them depend on more conditions than the source has.
//
//   if (lane == 0) s = 1;   ->   enter(7); if (lane == 0) s = 1; join(7);
//
// For the exits of a loop the region is the whole loop: `enter` before it, `join` behind it, nothing inside.
#include "harness/instrument/regions.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include "attn_diag_host/callouts.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;

// Where control goes, but for exceptions.
SmallVector<BasicBlock*, 4> next_of(const BasicBlock* block) {
  const Instruction* const end = block->getTerminator();
  SmallVector<BasicBlock*, 4> next;
  if (const auto* invoke = dyn_cast<InvokeInst>(end)) {
    next.push_back(invoke->getNormalDest());
    return next;
  }
  for (unsigned i = 0; i < end->getNumSuccessors(); ++i) next.push_back(end->getSuccessor(i));
  return next;
}

// Immediate post-dominators on paths that return: a lane that traps or throws leaves its regions.
class PostDominators {
 public:
  explicit PostDominators(Function& function) {
    DenseMap<BasicBlock*, SmallVector<BasicBlock*, 4>> before;
    SmallVector<BasicBlock*, 4> ends;
    for (BasicBlock& block : function) {
      for (BasicBlock* next : next_of(&block)) before[next].push_back(&block);
      if (isa<ReturnInst>(block.getTerminator())) ends.push_back(&block);
    }
    // Numbers in reverse postorder of the reversed graph; 0 is where all returns meet.
    SmallVector<BasicBlock*, 64> order;
    SmallPtrSet<BasicBlock*, 32> seen;
    for (BasicBlock* end : ends) visit(end, before, seen, order);
    x_order.push_back(nullptr);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      x_number[*it] = static_cast<int>(x_order.size());
      x_order.push_back(*it);
    }
    x_parent.assign(x_order.size(), -1);
    x_parent[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (int i = 1; i < static_cast<int>(x_order.size()); ++i) {
        int parent = isa<ReturnInst>(x_order[i]->getTerminator()) ? 0 : -1;
        for (BasicBlock* next : next_of(x_order[i])) {
          const auto number = x_number.find(next);
          if (number == x_number.end() || x_parent[number->second] < 0) continue;
          parent = parent < 0 ? number->second : meet(parent, number->second);
        }
        if (parent != x_parent[i]) {
          x_parent[i] = parent;
          changed = true;
        }
      }
    }
  }

  // Null: none, or where all returns meet.
  BasicBlock* of(BasicBlock* block) const {
    const auto number = x_number.find(block);
    return number == x_number.end() ? nullptr : x_order[x_parent[number->second]];
  }

  // Grows towards the beginning of the function.
  int distance(BasicBlock* block) const { return x_number.lookup(block); }

 private:
  static void visit(BasicBlock* from, DenseMap<BasicBlock*, SmallVector<BasicBlock*, 4>>& before,
                    SmallPtrSet<BasicBlock*, 32>& seen, SmallVector<BasicBlock*, 64>& order) {
    if (!seen.insert(from).second) return;
    SmallVector<std::pair<BasicBlock*, unsigned>, 64> stack = {{from, 0}};
    while (!stack.empty()) {
      BasicBlock* const block = stack.back().first;
      const auto& all = before[block];
      if (stack.back().second == all.size()) {
        order.push_back(block);
        stack.pop_back();
        continue;
      }
      BasicBlock* const one = all[stack.back().second++];
      if (seen.insert(one).second) stack.push_back({one, 0});
    }
  }
  int meet(int a, int b) const {
    while (a != b) (a > b ? a : b) = x_parent[a > b ? a : b];
    return a;
  }

  DenseMap<BasicBlock*, int> x_number;
  SmallVector<BasicBlock*, 64> x_order;
  SmallVector<int, 64> x_parent;
};

class Regions {
 public:
  explicit Regions(Function& function)
      : x_function(function), x_dominators(function), x_loops(x_dominators), x_after(function) {}

  bool mark() {
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&x_function)) note_branch(*block);
    // Where several begin in one place, the outer ones, which end nearer to the return, begin first.
    llvm::stable_sort(x_regions, [this](const Region& a, const Region& b) {
      return x_after.distance(a.join) < x_after.distance(b.join);
    });
    for (const Region& region : x_regions) insert(region);
    return !x_regions.empty();
  }

 private:
  struct Region {
    BasicBlock* enter;
    BasicBlock* join;
  };

  void note_branch(BasicBlock& block) {
    const Instruction* const end = block.getTerminator();
    if (end->hasMetadata("nosanitize")) return;  // a test for overflow and the like
    const Value* condition = nullptr;
    if (const auto* branch = dyn_cast<BranchInst>(end))
      condition = branch->isConditional() ? branch->getCondition() : nullptr;
    else if (const auto* choice = dyn_cast<SwitchInst>(end))
      condition = choice->getCondition();
    if (condition == nullptr || is_uniform(condition, block)) return;
    Region region{&block, x_after.of(&block)};
    if (region.join == nullptr || !has_work(block, *region.join)) return;
    // A loop's exits are one region around it.
    Loop* around = nullptr;
    for (Loop* loop = x_loops.getLoopFor(&block); loop != nullptr && !loop->contains(region.join);
         loop = loop->getParentLoop())
      around = loop;
    if (around != nullptr) {
      region.enter = around->getLoopPreheader();
      region.join = x_after.of(around->getHeader());
      while (region.join != nullptr && around->contains(region.join))
        region.join = x_after.of(region.join);
      if (region.enter == nullptr || region.join == nullptr) return;
    }
    // It is known, or lies in a known one and ends where that one ends.
    for (const Region& known : x_regions)
      if (known.join == region.join && x_dominators.dominates(known.enter, region.enter) &&
          x_loops.getLoopFor(known.enter) == x_loops.getLoopFor(region.enter))
        return;
    if (region.join->isEHPad()) return;
    x_regions.push_back(region);
  }

  // Whether all lanes that come here together have the same value: made of constants and loop counters.
  bool is_uniform(const Value* value, const BasicBlock& where, unsigned depth = 0) {
    if (isa<Constant>(value)) return true;
    if (depth > 8) return false;
    const auto* instruction = dyn_cast<Instruction>(value);
    if (instruction == nullptr) return false;
    if (const auto* phi = dyn_cast<PHINode>(instruction)) {
      const Loop* const loop = x_loops.getLoopFor(phi->getParent());
      if (loop == nullptr || loop->getHeader() != phi->getParent() || !loop->contains(&where))
        return false;
      if (!x_counters.insert(phi).second) return true;
      bool uniform = true;
      for (const Value* one : phi->incoming_values())
        uniform = uniform && is_uniform(one, where, depth + 1);
      if (!uniform) x_counters.erase(phi);
      return uniform;
    }
    if (!isa<BinaryOperator>(instruction) && !isa<CmpInst>(instruction) &&
        !isa<CastInst>(instruction) && !isa<SelectInst>(instruction))
      return false;
    for (const Value* operand : instruction->operands())
      if (!is_uniform(operand, where, depth + 1)) return false;
    return true;
  }

  // Whether anything that lanes can see of each other happens between the two.
  static bool has_work(BasicBlock& from, BasicBlock& to) {
    SmallPtrSet<BasicBlock*, 32> seen;
    SmallVector<BasicBlock*, 32> open(next_of(&from));
    while (!open.empty()) {
      BasicBlock* const block = open.pop_back_val();
      if (block == &to || !seen.insert(block).second) continue;
      for (const Instruction& instruction : *block)
        if (may_be_seen(instruction)) return true;
      for (BasicBlock* next : next_of(block)) open.push_back(next);
    }
    return false;
  }

  static bool may_be_seen(const Instruction& at) {
    if (const auto* load = dyn_cast<LoadInst>(&at))
      return !isa<AllocaInst>(getUnderlyingObject(load->getPointerOperand()));
    if (const auto* store = dyn_cast<StoreInst>(&at))
      return !isa<AllocaInst>(getUnderlyingObject(store->getPointerOperand()));
    if (const auto* call = dyn_cast<CallBase>(&at)) {
      if (isa<DbgInfoIntrinsic>(call) || call->doesNotAccessMemory()) return false;
      const auto* intrinsic = dyn_cast<IntrinsicInst>(call);
      return intrinsic == nullptr || !(intrinsic->isLifetimeStartOrEnd() ||
                                       intrinsic->getIntrinsicID() == Intrinsic::assume);
    }
    return at.isAtomic();
  }

  void insert(const Region& region) {
    const unsigned number = x_next++;
    IRBuilder<> builder(region.enter->getTerminator());
    call(builder, callouts::kEnter, number);
    // Where several regions end in one place, the inner ones, found later, end first.
    builder.SetInsertPoint(region.join, region.join->getFirstInsertionPt());
    call(builder, callouts::kJoin, number);
  }

  void call(IRBuilder<>& builder, const char* name, unsigned number) {
    Module& module = *x_function.getParent();
    FunctionCallee callee =
        module.getOrInsertFunction(name, builder.getVoidTy(), builder.getInt32Ty());
    auto* const function = cast<Function>(callee.getCallee());
    function->setDoesNotThrow();
    function->setConvergent();
    function->setOnlyAccessesInaccessibleMemory();
    function->addFnAttr(Attribute::WillReturn);
    CallInst* const made = builder.CreateCall(callee, builder.getInt32(number));
    made->setConvergent();
    made->addFnAttr(Attribute::NoMerge);
    made->setTailCallKind(
        CallInst::TCK_NoTail);  // it returns to this function, whose frame it tells
  }

  Function& x_function;
  DominatorTree x_dominators;
  LoopInfo x_loops;
  PostDominators x_after;
  SmallVector<Region, 16> x_regions;
  SmallPtrSet<const PHINode*, 16> x_counters;
  unsigned x_next = 0;
};

}  // namespace

bool mark_regions(Function& function) {
  return !function.isDeclaration() && Regions(function).mark();
}

}  // namespace attn_diag::instrument
