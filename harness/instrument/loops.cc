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

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "attn_diag_host/callouts.h"
#include "harness/instrument/accesses.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;
using namespace callouts;

constexpr std::size_t kMostTests = 24;
// Of a constant number of accesses: for fewer it is not worth a call.
constexpr std::uint64_t kFewestAccesses = 8;
constexpr std::uint64_t kWidest = 16;  // bytes

bool is_region_mark(const Instruction& at) {
  const auto* call = dyn_cast<CallInst>(&at);
  const Function* const called = call == nullptr ? nullptr : call->getCalledFunction();
  return called != nullptr && (called->getName() == kEnter || called->getName() == kJoin);
}

// base + sum of factor[loop] * iteration, all of one integer type and known before the nest; null: 0.
struct Form {
  const SCEV* base = nullptr;
  std::array<const SCEV*, kMostLoops> factor{};
};

struct Access {
  Instruction* at;
  std::uint32_t word;
  Value* pointer;
  Value* object;  // what the address is relative to
  Form offset;    // 64 bits
};

struct Test {
  LoopTest what;
  unsigned bits;
  Form a, b;
};

struct Nest {
  Loop* loop = nullptr;
  SmallVector<Loop*, kMostLoops> loops;
  SmallVector<const SCEV*, kMostLoops> again;
  SmallVector<Access, 16> accesses;
  SmallVector<Test, 16> tests;
  SmallVector<std::uint32_t, 64> steps;
  SmallVector<WithOverflowInst*, 16> overflows;
  MapVector<Value*, bool> decided;  // conditions: what they are once the tests hold
  SmallVector<std::pair<BranchInst*, bool>, 16> branches;  // and which way these go
};

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

  // Of a number of fewer bits the form is right modulo its range. What makes it wider than that asks for a
  // test that it is right as it stands.
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
    if (Reader(loop, x_loops, x_evolution, x_private, nest).read()) {
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

// From where a loop begins to where it ends. The marks hold what is theirs within, and neither is ever
// doubled.
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
