#include "harness/instrument/loop_nest.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <set>

namespace attn_diag::instrument {
namespace {

using namespace llvm;
using namespace callouts;

constexpr std::size_t kMostTests = 24;
// A constant number of accesses below this is not worth a call.
constexpr std::uint64_t kFewestAccesses = 8;
constexpr std::uint64_t kWidest = 16;  // bytes

// Reads a nest; what it has read holds where ok() is true.
class Reader {
 public:
  Reader(Loop& loop, LoopInfo& loops, ScalarEvolution& evolution, PrivateMemory& own, Nest& nest)
      : x_loops(loops),
        x_evolution(evolution),
        x_private(own),
        x_layout(loop.getHeader()->getModule()->getDataLayout()),
        x_nest(nest) {
    nest.loop = &loop;
  }

  bool read() {
    return x_nest.loop->getLoopPreheader() != nullptr && read_loop(*x_nest.loop) &&
           !x_nest.accesses.empty() && x_nest.tests.size() <= kMostTests && is_worth_it();
  }

 private:
  bool known_before(const SCEV* s) {
    return !isa<SCEVCouldNotCompute>(s) && x_evolution.isAvailableAtLoopEntry(s, x_nest.loop) &&
           is_safe_before(s);
  }

  bool is_safe_before(const SCEV* s) {
    Instruction* const end = x_nest.loop->getLoopPreheader()->getTerminator();
#if LLVM_VERSION_MAJOR >= 15
    return SCEVExpander(x_evolution, x_layout, "attn_diag").isSafeToExpandAt(s, end);
#else
    return isSafeToExpandAt(s, end, x_evolution);
#endif
  }

  bool read_loop(Loop& loop) {
    BasicBlock* const latch = loop.getLoopLatch();
    if (latch == nullptr || loop.getExitingBlock() != latch || loop.getExitBlock() == nullptr ||
        !loop.hasDedicatedExits() || x_nest.loops.size() == kMostLoops)
      return false;
    const auto number = static_cast<std::uint32_t>(x_nest.loops.size());
    x_nest.loops.push_back(&loop);
    const SCEV* const again = rounds_after_the_first(loop, *latch);
    if (again == nullptr) return false;
    x_nest.again.push_back(again);
    x_nest.steps.push_back(kStepBegin | number);
    for (BasicBlock* block = loop.getHeader();;) {
      for (Instruction& at : *block)
        if (!read_instruction(at)) return false;
      if (block == latch) break;
      block = next_of(*block);
      if (block == nullptr) return false;
      Loop* const in = x_loops.getLoopFor(block);
      if (in == &loop) continue;
      if (in == nullptr || in->getParentLoop() != &loop || !read_loop(*in)) return false;
      block = in->getExitBlock();
      if (x_loops.getLoopFor(block) != &loop) return false;
    }
    x_nest.steps.push_back(kStepEnd | number);
    return true;
  }

  // How often the loop goes round again; null: not known before the nest.
  const SCEV* rounds_after_the_first(Loop& loop, BasicBlock& latch) {
    const SCEV* const known = x_evolution.getBackedgeTakenCount(&loop);
    if (!isa<SCEVCouldNotCompute>(known))
      return known_before(known) && x_evolution.getTypeSizeInBits(known->getType()) <= 64 ? known
                                                                                          : nullptr;
    // i += step, by a constant, which may overflow as far as the optimiser knows; a test sees to that.
    const auto* branch = dyn_cast<BranchInst>(latch.getTerminator());
    const auto* compare = branch == nullptr || !branch->isConditional()
                              ? nullptr
                              : dyn_cast<ICmpInst>(branch->getCondition());
    if (compare == nullptr) return nullptr;
    CmpInst::Predicate goes_on = branch->getSuccessor(0) == loop.getHeader()
                                     ? compare->getPredicate()
                                     : compare->getInversePredicate();
    auto* next = dyn_cast<ExtractValueInst>(compare->getOperand(0));
    Value* bound = compare->getOperand(1);
    if (next == nullptr) {
      next = dyn_cast<ExtractValueInst>(compare->getOperand(1));
      bound = compare->getOperand(0);
      goes_on = CmpInst::getSwappedPredicate(goes_on);
    }
    auto* const sum = next == nullptr || next->getIndices()[0] != 0
                          ? nullptr
                          : dyn_cast<WithOverflowInst>(next->getAggregateOperand());
    if (sum == nullptr || sum->getBinaryOp() != Instruction::Add) return nullptr;
    const auto* counter = dyn_cast<PHINode>(sum->getLHS());
    const auto* step = dyn_cast<ConstantInt>(sum->getRHS());
    if (counter == nullptr || counter->getParent() != loop.getHeader() || step == nullptr ||
        counter->getIncomingValueForBlock(&latch) != next || step->getBitWidth() > 32)
      return nullptr;
    const SCEV* const first =
        x_evolution.getSCEV(counter->getIncomingValueForBlock(loop.getLoopPreheader()));
    const SCEV* const last = x_evolution.getSCEV(bound);
    if (!known_before(first) || !known_before(last) || !is_exact(*sum)) return nullptr;
    // The least k with first + (k + 1) * step past the bound.
    Type* const word = Type::getInt64Ty(bound->getContext());
    const std::int64_t by = step->getSExtValue();
    const bool up = by > 0 && (goes_on == CmpInst::ICMP_SLT || goes_on == CmpInst::ICMP_SLE);
    const bool down = by < 0 && (goes_on == CmpInst::ICMP_SGT || goes_on == CmpInst::ICMP_SGE);
    if (!up && !down) return nullptr;
    const SCEV* from = x_evolution.getSignExtendExpr(first, word);
    const SCEV* to = x_evolution.getSignExtendExpr(last, word);
    if (down) std::swap(from, to);
    const bool reaches = goes_on == CmpInst::ICMP_SLE || goes_on == CmpInst::ICMP_SGE;
    const SCEV* const left =
        x_evolution.getAddExpr(x_evolution.getMinusSCEV(to, from),
                               x_evolution.getConstant(word, reaches ? 0 : -1ULL, true));
    const SCEV* const rounds = x_evolution.getUDivExpr(
        x_evolution.getSMaxExpr(left, x_evolution.getZero(word)),
        x_evolution.getConstant(word, static_cast<std::uint64_t>(up ? by : -by)));
    return known_before(rounds) ? rounds : nullptr;
  }

  // Where control goes if all tests hold.
  BasicBlock* next_of(BasicBlock& block) {
    auto* const branch = dyn_cast<BranchInst>(block.getTerminator());
    if (branch == nullptr) return nullptr;
    if (!branch->isConditional()) return branch->getSuccessor(0);
    // Not to where a failed test is reported; not past what is done under the condition.
    const auto is_left_out = [&](unsigned i) {
      if (reports(*branch->getSuccessor(i))) return true;
      return branch->getSuccessor(1 - i)->getSinglePredecessor() != nullptr &&
             branch->getSuccessor(i)->getSinglePredecessor() == nullptr &&
             !reports(*branch->getSuccessor(1 - i));
    };
    for (const unsigned i : {0u, 1u})
      if (is_left_out(1 - i)) {
        if (!assume(branch->getCondition(), i == 0)) return nullptr;
        x_nest.branches.push_back({branch, i == 0});
        return branch->getSuccessor(i);
      }
    return nullptr;
  }

  static bool reports(const BasicBlock& block) {
    for (const Instruction& at : block)
      if (const auto* call = dyn_cast<CallBase>(&at))
        if (const Function* called = call->getCalledFunction())
          if (called->getName().substr(0, 7) == "__ubsan") return true;
    return false;
  }

  // Adds tests that the condition has this value in all iterations.
  bool assume(Value* condition, bool value) {
    if (const auto* constant = dyn_cast<ConstantInt>(condition)) return constant->isOne() == value;
    const auto known = x_nest.decided.find(condition);
    if (known != x_nest.decided.end()) return known->second == value;
    if (!assume_new(condition, value)) return false;
    x_nest.decided.insert({condition, value});
    return true;
  }

  bool assume_new(Value* condition, bool value) {
    using namespace PatternMatch;
    auto* const extract = dyn_cast<ExtractValueInst>(condition);
    if (extract != nullptr && x_nest.loop->contains(extract)) {
      auto* const operation = dyn_cast<WithOverflowInst>(extract->getAggregateOperand());
      return operation != nullptr && extract->getIndices()[0] == 1 && !value &&
             is_exact(*operation);
    }
    Value *left = nullptr, *right = nullptr;
    if (match(condition, m_Not(m_Value(left)))) return assume(left, !value);
    if (match(condition, m_LogicalAnd(m_Value(left), m_Value(right))))
      return value && assume(left, true) && assume(right, true);
    if (match(condition, m_LogicalOr(m_Value(left), m_Value(right))))
      return !value && assume(left, false) && assume(right, false);
    CmpInst::Predicate predicate;
    if (match(condition, m_ICmp(predicate, m_Value(left), m_Value(right))) &&
        left->getType()->isIntegerTy() && !CmpInst::isEquality(predicate)) {
      if (!value) predicate = CmpInst::getInversePredicate(predicate);
      if (predicate == CmpInst::ICMP_SGT || predicate == CmpInst::ICMP_SGE ||
          predicate == CmpInst::ICMP_UGT || predicate == CmpInst::ICMP_UGE) {
        std::swap(left, right);
        predicate = CmpInst::getSwappedPredicate(predicate);
      }
      const LoopTest what = predicate == CmpInst::ICMP_SLT   ? LoopTest::kLess
                            : predicate == CmpInst::ICMP_SLE ? LoopTest::kNotMore
                            : predicate == CmpInst::ICMP_ULT ? LoopTest::kBelow
                                                             : LoopTest::kNotAbove;
      Test test{what, left->getType()->getIntegerBitWidth(), {}, {}};
      if (!form(x_evolution.getSCEV(left), test.a) || !form(x_evolution.getSCEV(right), test.b))
        return false;
      x_nest.tests.push_back(test);
      return true;
    }
    // Something that is known before.
    const SCEV* const s = x_evolution.getSCEV(condition);
    if (!known_before(s)) return false;
    Type* const word = Type::getInt64Ty(condition->getContext());
    Test test{LoopTest::kBelow, 64, {}, {}};
    (value ? test.b : test.a).base = x_evolution.getZeroExtendExpr(s, word);
    if (!value) test.b.base = x_evolution.getOne(word);
    x_nest.tests.push_back(test);
    return true;
  }

  // Adds the test that the operation does not overflow.
  bool is_exact(WithOverflowInst& operation) {
    if (is_contained(x_nest.overflows, &operation)) return true;
    if (!operation.isSigned()) return false;
    LoopTest what;
    switch (operation.getBinaryOp()) {
      case Instruction::Add:
        what = LoopTest::kAdd;
        break;
      case Instruction::Sub:
        what = LoopTest::kSubtract;
        break;
      case Instruction::Mul:
        what = LoopTest::kMultiply;
        break;
      default:
        return false;
    }
    Test test{what, operation.getLHS()->getType()->getIntegerBitWidth(), {}, {}};
    if (test.bits > 64 || !form(x_evolution.getSCEV(operation.getLHS()), test.a) ||
        !form(x_evolution.getSCEV(operation.getRHS()), test.b))
      return false;
    x_nest.tests.push_back(test);
    x_nest.overflows.push_back(&operation);
    return true;
  }

  bool read_instruction(Instruction& at) {
    if (isa<DbgInfoIntrinsic>(at) || is_region_mark(at) || at.hasMetadata("annotation"))
      return true;
    if (auto* load = dyn_cast<LoadInst>(&at))
      return load->isSimple() &&
             add_access(at, load->getPointerOperand(), load->getType(), load->getAlign(), 0);
    if (auto* store = dyn_cast<StoreInst>(&at))
      return store->isSimple() &&
             add_access(at, store->getPointerOperand(), store->getValueOperand()->getType(),
                        store->getAlign(), kWrites);
    if (auto* copy = dyn_cast<MemTransferInst>(&at)) {
      const auto* bytes = dyn_cast<ConstantInt>(copy->getLength());
      return bytes != nullptr && !copy->isVolatile() &&
             add_access(at, copy->getRawSource(), bytes->getZExtValue(),
                        copy->getSourceAlign().valueOrOne(), 0) &&
             add_access(at, copy->getRawDest(), bytes->getZExtValue(),
                        copy->getDestAlign().valueOrOne(), kWrites);
    }
    if (auto* fill = dyn_cast<MemSetInst>(&at)) {
      const auto* bytes = dyn_cast<ConstantInt>(fill->getLength());
      return bytes != nullptr && !fill->isVolatile() &&
             add_access(at, fill->getRawDest(), bytes->getZExtValue(),
                        fill->getDestAlign().valueOrOne(), kWrites);
    }
    if (const auto* intrinsic = dyn_cast<IntrinsicInst>(&at))
      if (intrinsic->isLifetimeStartOrEnd() || intrinsic->doesNotAccessMemory()) return true;
    return !at.mayReadOrWriteMemory() && !at.mayThrow() && !isa<CallBase>(at) &&
           !isa<AllocaInst>(at);
  }

  bool add_access(Instruction& at, Value* pointer, Type* type, Align alignment,
                  std::uint32_t word) {
    const TypeSize size = x_layout.getTypeStoreSize(type);
    return !size.isScalable() && add_access(at, pointer, size.getFixedValue(), alignment, word);
  }

  bool add_access(Instruction& at, Value* pointer, std::uint64_t bytes, Align alignment,
                  std::uint32_t word) {
    if (pointer->getType()->getPointerAddressSpace() != 0) return false;
    if (x_private.is(pointer)) return true;
    if (bytes == 0 || bytes > kWidest || x_nest.accesses.size() == kMostAccesses) return false;
    const SCEV* const address = x_evolution.getSCEV(pointer);
    const auto* object = dyn_cast<SCEVUnknown>(x_evolution.getPointerBase(address));
    Access access{&at, word | static_cast<std::uint32_t>(bytes), pointer, nullptr, {}};
    if (object == nullptr || !known_before(object)) return false;
    access.object = object->getValue();
    const SCEV* const offset = x_evolution.removePointerBase(address);
    if (isa<SCEVCouldNotCompute>(offset) ||
        x_evolution.getTypeSizeInBits(offset->getType()) != 64 || !form(offset, access.offset))
      return false;
    access.word |= std::min(Log2(alignment), 4u) << kAlignmentShift;
    x_nest.steps.push_back(kStepAccess | static_cast<std::uint32_t>(x_nest.accesses.size()));
    x_nest.accesses.push_back(access);
    return true;
  }

  // The form of a number of fewer bits is right modulo its range. What widens the number asks for a test that
  // the form is right as it stands.
  bool form(const SCEV* s, Form& out) {
    Type* const type = s->getType();
    if (!type->isIntegerTy() || type->getIntegerBitWidth() > 64) return false;
    if (known_before(s)) {
      out.base = s;
      return true;
    }
    const auto add = [&](const SCEV*& to, const SCEV* what) {
      if (what != nullptr) to = to == nullptr ? what : x_evolution.getAddExpr(to, what);
    };
    const auto map = [&](const auto& act) {
      if (out.base != nullptr) out.base = act(out.base);
      for (const SCEV*& factor : out.factor)
        if (factor != nullptr) factor = act(factor);
    };
    if (const auto* recurrence = dyn_cast<SCEVAddRecExpr>(s)) {
      const auto* const loop = find(x_nest.loops, recurrence->getLoop());
      if (loop == x_nest.loops.end() || !recurrence->isAffine()) return false;
      const SCEV* const step = recurrence->getStepRecurrence(x_evolution);
      if (!known_before(step) || !form(recurrence->getStart(), out)) return false;
      add(out.factor[static_cast<std::size_t>(loop - x_nest.loops.begin())], step);
      return true;
    }
    if (const auto* sum = dyn_cast<SCEVAddExpr>(s)) {
      for (const SCEV* operand : sum->operands()) {
        Form part;
        if (!form(operand, part)) return false;
        add(out.base, part.base);
        for (unsigned i = 0; i < kMostLoops; ++i) add(out.factor[i], part.factor[i]);
      }
      return true;
    }
    if (const auto* product = dyn_cast<SCEVMulExpr>(s)) {
      const SCEV* scale = nullptr;
      const SCEV* varies = nullptr;
      for (const SCEV* operand : product->operands()) {
        if (known_before(operand))
          scale = scale == nullptr ? operand : x_evolution.getMulExpr(scale, operand);
        else if (varies == nullptr)
          varies = operand;
        else
          return false;
      }
      if (varies == nullptr || !form(varies, out)) return false;
      if (scale != nullptr) map([&](const SCEV* x) { return x_evolution.getMulExpr(x, scale); });
      return true;
    }
    if (const auto* cast = dyn_cast<SCEVCastExpr>(s)) {
      const bool widens = isa<SCEVSignExtendExpr>(cast) || isa<SCEVZeroExtendExpr>(cast);
      if ((!widens && !isa<SCEVTruncateExpr>(cast)) || !form(cast->getOperand(), out)) return false;
      if (!widens) {
        map([&](const SCEV* x) { return x_evolution.getTruncateExpr(x, type); });
        return true;
      }
      add_range(isa<SCEVSignExtendExpr>(cast) ? LoopTest::kFits : LoopTest::kFitsUnsigned,
                cast->getOperand(), out);
      map([&](const SCEV* x) { return x_evolution.getSignExtendExpr(x, type); });
      return true;
    }
    return false;
  }

  void add_range(LoopTest what, const SCEV* s, const Form& of) {
    if (x_ranges.insert({s, what}).second)
      x_nest.tests.push_back({what, s->getType()->getIntegerBitWidth(), of, {}});
  }

  bool is_worth_it() const {
    std::uint64_t rounds = 1;
    for (const SCEV* again : x_nest.again) {
      const auto* constant = dyn_cast<SCEVConstant>(again);
      if (constant == nullptr || constant->getAPInt().getActiveBits() > 32) return true;
      rounds *= std::min<std::uint64_t>(constant->getAPInt().getZExtValue() + 1, 1u << 10);
    }
    return rounds * x_nest.accesses.size() >= kFewestAccesses;
  }

  LoopInfo& x_loops;
  ScalarEvolution& x_evolution;
  PrivateMemory& x_private;
  const DataLayout& x_layout;
  Nest& x_nest;
  std::set<std::pair<const SCEV*, LoopTest>> x_ranges;
};

}  // namespace

bool read_nest(Loop& loop, LoopInfo& loops, ScalarEvolution& evolution, PrivateMemory& own,
               Nest& nest) {
  return Reader(loop, loops, evolution, own, nest).read();
}

bool is_region_mark(const Instruction& at) {
  const auto* call = dyn_cast<CallInst>(&at);
  const Function* const called = call == nullptr ? nullptr : call->getCalledFunction();
  return called != nullptr && (called->getName() == kEnter || called->getName() == kJoin);
}

}  // namespace attn_diag::instrument
