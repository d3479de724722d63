// Tests of accesses to local variables whose offsets are known at run time alone.
//
// An index into an array itself is tested by the compiler (-fsanitize=array-bounds); this is for pointers to
// one, as functions have them that are inlined: `void scale(float* x, int n, float by)`.
#include "harness/instrument/local_bounds.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/MemoryBuiltins.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <array>

#include "attn_diag_host/callouts.h"
#include "harness/instrument/array_shapes.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;

struct LocalAccess {
  Instruction* at;
  Use* use;      // of the pointer, in `at`
  Value* bytes;  // an integer
  bool writes;

  Value* pointer() const { return use->get(); }
};

class LocalBounds {
 public:
  LocalBounds(Function& function, ScalarEvolution& numbers, const TargetLibraryInfo& library)
      : x_function(function),
        x_numbers(numbers),
        x_layout(function.getParent()->getDataLayout()),
        x_sizes(x_layout, &library, function.getContext()) {}

  bool run() {
    SmallVector<LocalAccess, 16> all;
    for (BasicBlock& block : x_function)
      for (Instruction& at : block) look_at(at, all);
    // What is known of the code, before tests are put into it.
    erase_if(all, [&](const LocalAccess& access) { return !may_be_outside(access); });
    for (const LocalAccess& access : all) test(access);
    return x_changed;
  }

 private:
  void look_at(Instruction& at, SmallVectorImpl<LocalAccess>& all) const {
    if (at.hasMetadata("annotation")) return;  // the compiler's own poison of fresh locals
    auto* const size_type = Type::getInt64Ty(at.getContext());
    const auto typed = [&](unsigned operand, Type* type, bool writes) {
      const TypeSize size = x_layout.getTypeStoreSize(type);
      if (!size.isScalable())
        all.push_back({&at, &at.getOperandUse(operand),
                       ConstantInt::get(size_type, size.getFixedValue()), writes});
    };
    if (auto* load = dyn_cast<LoadInst>(&at)) {
      typed(LoadInst::getPointerOperandIndex(), load->getType(), false);
    } else if (auto* store = dyn_cast<StoreInst>(&at)) {
      typed(StoreInst::getPointerOperandIndex(), store->getValueOperand()->getType(), true);
    } else if (auto* copy = dyn_cast<AnyMemTransferInst>(&at)) {
      all.push_back({&at, &copy->getRawSourceUse(), copy->getLength(), false});
      all.push_back({&at, &copy->getRawDestUse(), copy->getLength(), true});
    } else if (auto* fill = dyn_cast<AnyMemSetInst>(&at)) {
      all.push_back({&at, &fill->getRawDestUse(), fill->getLength(), true});
    }
  }

  struct Local {
    const Value* variable;
    std::uint64_t size;

    // "acc", without what inlining and optimising add.
    StringRef name() const {
      const StringRef whole = variable->getName();
      return isa<AllocaInst>(variable) ? whole.split('.').first : whole.rsplit('.').second;
    }
    // As the source has it; null: not known.
    Type* type() const {
      const auto* const local = dyn_cast<AllocaInst>(variable);
      if (local == nullptr) return cast<GlobalVariable>(variable)->getValueType();
      return variable->getName().contains(".sroa") ? nullptr : local->getAllocatedType();
    }
  };
  // The compiler makes a local array that only its initialiser writes a constant.
  static const GlobalVariable* constant_local(const Value* object) {
    const auto* const global = dyn_cast<GlobalVariable>(object);
    const bool is = global != nullptr && global->hasPrivateLinkage() && global->isConstant() &&
                    global->getName().substr(0, 8) == "__const.";
    return is ? global : nullptr;
  }
  // The local variables that the pointer may go into; none: it may also go elsewhere.
  SmallVector<Local, 2> locals_of(const Value* pointer) const {
    SmallVector<const Value*, 4> objects;
    getUnderlyingObjects(pointer, objects);
    SmallVector<Local, 2> locals;
    for (const Value* object : objects) {
      if (const GlobalVariable* const constant = constant_local(object)) {
        locals.push_back(
            {constant, x_layout.getTypeStoreSize(constant->getValueType()).getFixedValue()});
        continue;
      }
      const auto* const variable = dyn_cast<AllocaInst>(object);
      if (variable == nullptr || !variable->isStaticAlloca()) return {};
      const auto bits = variable->getAllocationSizeInBits(x_layout);
      if (!bits || bits->isScalable()) return {};
      locals.push_back({variable, bits->getFixedValue() / 8});
    }
    return locals;
  }

  bool is_inside(const LocalAccess& access, const Local& local) const {
    APInt offset(x_layout.getIndexTypeSizeInBits(access.pointer()->getType()), 0);
    const Value* const base = access.pointer()->stripAndAccumulateConstantOffsets(
        x_layout, offset, /*AllowNonInbounds=*/true);
    const auto* const bytes = dyn_cast<ConstantInt>(access.bytes);
    if (base != local.variable || bytes == nullptr || offset.isNegative()) return false;
    const std::uint64_t begin = offset.getZExtValue();
    return begin <= local.size && bytes->getZExtValue() <= local.size - begin;
  }

  // For example in loops whose count is known.
  bool is_always_inside(const LocalAccess& access, const Local& local) const {
    const auto* const bytes = dyn_cast<ConstantInt>(access.bytes);
    if (bytes == nullptr || bytes->getZExtValue() > local.size) return false;
    const SCEV* const offset = x_numbers.getMinusSCEV(
        x_numbers.getSCEV(access.pointer()), x_numbers.getSCEV(const_cast<Value*>(local.variable)));
    return !isa<SCEVCouldNotCompute>(offset) &&
           x_numbers.getUnsignedRangeMax(offset).ule(local.size - bytes->getZExtValue());
  }

  bool may_be_outside(const LocalAccess& access) const {
    const SmallVector<Local, 2> locals = locals_of(access.pointer());
    return !locals.empty() && (locals.size() > 1 || (!is_inside(access, locals.front()) &&
                                                     !is_always_inside(access, locals.front())));
  }

  // How far into a variable a pointer points, and how large the variable is.
  struct OffsetInVariable {
    Value* offset;
    Value* size;
  };
  SmallVector<OffsetInVariable, 2> offsets_of(const LocalAccess& access, ArrayRef<Local> locals,
                                              IRBuilder<>& builder) {
    Type* const word = builder.getInt64Ty();
    // Which of several variables it is, is known only where the pointer is made: one may lie where another ends.
    if (locals.size() > 1) {
      const auto [size, offset] = x_sizes.compute(access.pointer());
      if (size != nullptr && offset != nullptr)
        return {{builder.CreateSExtOrTrunc(offset, word), builder.CreateZExtOrTrunc(size, word)}};
    }
    const auto number = [&](const Value* pointer) {
      return builder.CreatePtrToInt(const_cast<Value*>(pointer), word);
    };
    SmallVector<OffsetInVariable, 2> offsets;
    for (const Local& local : locals)
      offsets.push_back({builder.CreateSub(number(access.pointer()), number(local.variable)),
                         builder.getInt64(local.size)});
    return offsets;
  }

  void test(const LocalAccess& access) {
    const SmallVector<Local, 2> locals = locals_of(access.pointer());
    IRBuilder<> builder(access.at);
    const SmallVector<OffsetInVariable, 2> offsets = offsets_of(access, locals, builder);
    Value* const bytes = builder.CreateZExtOrTrunc(access.bytes, builder.getInt64Ty());
    Value* outside = builder.CreateICmpNE(bytes, builder.getInt64(0));
    for (const OffsetInVariable& offset : offsets) {
      // Unsigned, so that what is before the begin is past every end.
      Value* const past = builder.CreateOr(
          builder.CreateICmpUGT(offset.offset, offset.size),
          builder.CreateICmpUGT(bytes, builder.CreateSub(offset.size, offset.offset)));
      outside = builder.CreateAnd(outside, past);
    }
    BasicBlock* const before = access.at->getParent();
    Instruction* const end = SplitBlockAndInsertIfThen(outside, access.at, false);
    builder.SetInsertPoint(end);
    const OffsetInVariable offset =
        offsets.size() == 1 ? offsets.front()
                            : OffsetInVariable{builder.getInt64(0), builder.getInt64(0)};
    Value* const elsewhere = builder.CreatePointerCast(
        report(builder, locals, offset, bytes, access.writes), access.pointer()->getType());
    builder.SetInsertPoint(access.at);
    PHINode* const pointer = builder.CreatePHI(elsewhere->getType(), 2);
    pointer->addIncoming(access.pointer(), before);
    pointer->addIncoming(elsewhere, end->getParent());
    access.use->set(pointer);
  }

  // Returns where the access is made instead: past the end are other variables, and after a store there the kernel
  // would go on with wrong ones.
  //
  // With several variables, the name is not known when the code is made; where the offset is not known either, the
  // size is 0.
  Value* report(IRBuilder<>& builder, ArrayRef<Local> locals, const OffsetInVariable& offset,
                Value* bytes, bool writes) {
    const bool one = locals.size() == 1;
    if (one) tell_about(builder, "", locals.front().type(), builder.getInt64(0), 0);
    Value* const name = builder.CreatePointerCast(
        builder.CreateGlobalString(one ? locals.front().name() : StringRef()),
        PointerType::getUnqual(builder.getInt8Ty()));
    const std::array<Value*, 5> arguments = {name, offset.offset, bytes, offset.size,
                                             builder.getInt32(writes ? callouts::kWrites : 0)};
    SmallVector<Type*, 5> types;
    for (const Value* argument : arguments) types.push_back(argument->getType());
    CallInst* const made = builder.CreateCall(
        x_function.getParent()->getOrInsertFunction(
            callouts::kLocalOutside,
            FunctionType::get(PointerType::getUnqual(builder.getInt8Ty()), types, false)),
        arguments);
    made->setDoesNotThrow();
    made->addFnAttr(Attribute::NoMerge);  // its return address tells the line
    made->setTailCallKind(CallInst::TCK_NoTail);
    x_changed = true;
    return made;
  }

  Function& x_function;
  ScalarEvolution& x_numbers;
  const DataLayout& x_layout;
  ObjectSizeOffsetEvaluator x_sizes;
  bool x_changed = false;
};

}  // namespace

bool test_local_bounds(Function& function, ScalarEvolution& numbers,
                       const TargetLibraryInfo& library) {
  return LocalBounds(function, numbers, library).run();
}

}  // namespace attn_diag::instrument
