// Calls before every load, store and atomic operation of what the optimiser has left.
//
// The call stands immediately before its access, so that nothing of the same thread comes between a store
// that has been announced and the store. It comes last: code is optimised as if nobody looked, but that no
// access is made which the source does not make (see mark_watched() in plugin.cc).
#include "harness/instrument/accesses.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <optional>

#include "attn_diag_host/callouts.h"
#include "harness/instrument/loops.h"
#include "harness/instrument/places.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;
using namespace callouts;

bool begins(StringRef name, StringRef with) { return name.substr(0, with.size()) == with; }

bool is_private_global(const GlobalVariable& global) {
  const StringRef name = global.getName();
  if (name == "threadIdx" || name == "blockIdx" || name == "blockDim" || name == "gridDim")
    return true;  // each thread has its own, as it sees them
  // Text, tables that the compiler made, guards of statics.
  return (global.isConstant() && !global.hasName()) || begins(name, ".str") ||
         begins(name, "_ZTV") || begins(name, "_ZTI") || begins(name, "_ZGV") ||
         (global.isConstant() && (begins(name, "switch.table") || begins(name, "__const")));
}

class AccessCalls {
 public:
  explicit AccessCalls(Function& function)
      : x_function(function),
        x_layout(function.getParent()->getDataLayout()),
        x_builder(function.getContext()) {}

  bool run() {
    SmallPtrSet<Instruction*, 8> marks;
    const SmallPtrSet<Instruction*, 32> announced = announced_in_loops(x_function, marks);
    SmallVector<Instruction*, 64> all;
    for (BasicBlock& block : x_function)
      for (Instruction& instruction : block)
        if (announced.count(&instruction) == 0 && marks.count(&instruction) == 0)
          all.push_back(&instruction);
    for (Instruction* instruction : all) announce(*instruction);
    for (Instruction* mark : marks) mark->eraseFromParent();
    return x_changed || !marks.empty();
  }

  // The calls of a loop, now. `site`: where the call of an instruction's first access leaves its address,
  // and those of its others behind it; null: nowhere.
  void announce(Instruction& at, Value* site) {
    x_site = site;
    announce(at);
    x_site = nullptr;
  }

 private:
  void announce(Instruction& at) {
    if (at.hasMetadata("annotation")) return;  // the compiler's own poison of fresh locals
    x_builder.SetInsertPoint(&at);
    // A load that has no line may be one that the optimiser made: no store is.
    if (isa<StoreInst>(at)) x_builder.SetCurrentDebugLocation(place_near(at));
    if (auto* load = dyn_cast<LoadInst>(&at)) {
      if (!announce_chosen(*load))
        access(load->getPointerOperand(), load->getType(), load->getAlign(),
               flags(load->isAtomic(), load->isVolatile()));
    } else if (auto* store = dyn_cast<StoreInst>(&at)) {
      const bool releases = store->isAtomic() && isReleaseOrStronger(store->getOrdering());
      access(store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(),
             kWrites | flags(store->isAtomic(), store->isVolatile()) | (releases ? kReleases : 0));
    } else if (auto* update = dyn_cast<AtomicRMWInst>(&at)) {
      const bool writes = update->getOperation() == AtomicRMWInst::Xchg;
      access(update->getPointerOperand(), update->getValOperand()->getType(), update->getAlign(),
             (writes ? kWrites : kUpdates) | kIsAtomic |
                 (isReleaseOrStronger(update->getOrdering()) ? kReleases : 0));
    } else if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&at)) {
      access(exchange->getPointerOperand(), exchange->getCompareOperand()->getType(),
             exchange->getAlign(), kUpdates | kIsAtomic);
    } else if (const auto* fence = dyn_cast<FenceInst>(&at)) {
      if (fence->getSyncScopeID() != SyncScope::SingleThread) call(kFence, {});
    } else if (auto* called = dyn_cast<CallBase>(&at)) {
      announce_call(*called);
    }
  }

  // The optimiser makes `c ? sA[1] : sB[1]` two loads and a choice of values: what is not chosen the source does not
  // load. Whether this is such a load, which is announced where it is chosen.
  bool announce_chosen(LoadInst& load) {
    const TypeSize size = x_layout.getTypeStoreSize(load.getType());
    if (load.use_empty() || !load.isSimple() || size.isScalable() || size > kSizeMask ||
        load.getPointerAddressSpace() != 0 || x_private.is(load.getPointerOperand()))
      return false;
    SmallVector<std::pair<SelectInst*, bool>, 2> choices;
    for (const Use& use : load.uses()) {
      auto* const choice = dyn_cast<SelectInst>(use.getUser());
      const unsigned operand = use.getOperandNo();
      if (choice == nullptr || operand == 0 || choice->getCondition()->getType()->isVectorTy() ||
          choice->getTrueValue() == choice->getFalseValue())
        return false;
      choices.push_back({choice, operand == 1});
    }
    const std::uint32_t word =
        aligned(load.getAlign()) | static_cast<std::uint32_t>(size.getFixedValue());
    const auto announce_if = [&](Instruction& at, Value* condition, bool when) {
      x_builder.SetInsertPoint(&at);
      x_builder.SetCurrentDebugLocation(load.getDebugLoc());
      if (!when) condition = x_builder.CreateNot(condition);
      call(kAccessMasked,
           {as_address(load.getPointerOperand()),
            x_builder.CreateZExt(condition, x_builder.getInt64Ty()), x_builder.getInt32(word)});
    };
    // At the load, where the choice is known there.
    if (choices.size() == 1) {
      auto* const condition = choices.front().first->getCondition();
      if (!x_dominators) x_dominators.emplace(x_function);
      if (x_dominators->dominates(condition, &load)) {
        announce_if(load, condition, choices.front().second);
        return true;
      }
    }
    for (const auto& [choice, when] : choices) announce_if(*choice, choice->getCondition(), when);
    return true;
  }

  // What the type asks for, at most the 16 bytes of CUDA.
  static std::uint32_t aligned(Align alignment) {
    return std::min(Log2(alignment), 4u) << kAlignmentShift;
  }

  static std::uint32_t flags(bool is_atomic, bool is_volatile) {
    return (is_atomic ? kIsAtomic : 0) | (is_volatile ? kIsVolatile : 0);
  }

  void announce_call(CallBase& called) {
    if (auto* copy = dyn_cast<AnyMemTransferInst>(&called)) {
      range(copy->getRawSource(), copy->getLength(), aligned(copy->getSourceAlign().valueOrOne()));
      range(copy->getRawDest(), copy->getLength(),
            kWrites | aligned(copy->getDestAlign().valueOrOne()));
      return;
    }
    if (auto* fill = dyn_cast<AnyMemSetInst>(&called))
      return range(fill->getRawDest(), fill->getLength(),
                   kWrites | aligned(fill->getDestAlign().valueOrOne()));
    if (const auto* intrinsic = dyn_cast<IntrinsicInst>(&called))
      return announce_masked(*intrinsic);
    // What is passed by value is copied where the call is made.
    for (unsigned i = 0; i < called.arg_size(); ++i)
      if (called.isByValArgument(i))
        access(called.getArgOperand(i), called.getParamByValType(i),
               called.getParamAlign(i).valueOrOne(), 0);
    if (const auto* text = dyn_cast<InlineAsm>(called.getCalledOperand())) {
      if (!text->getAsmString().empty() && (called.mayReadOrWriteMemory()))
        unseen("inline assembly");
      return;
    }
    if (const Function* function = called.getCalledFunction()) announce_library(called, *function);
  }

  void announce_masked(const IntrinsicInst& at) {
    switch (at.getIntrinsicID()) {
      case Intrinsic::masked_load:
        return masked(at.getArgOperand(0), at.getType(), at.getArgOperand(2), 0);
      case Intrinsic::masked_store:
        return masked(at.getArgOperand(1), at.getArgOperand(0)->getType(), at.getArgOperand(3),
                      kWrites);
      case Intrinsic::masked_gather:
        return each_lane(at.getArgOperand(0), at.getType(), at.getArgOperand(2), 0);
      case Intrinsic::masked_scatter:
        return each_lane(at.getArgOperand(1), at.getArgOperand(0)->getType(), at.getArgOperand(3),
                         kWrites);
      case Intrinsic::masked_expandload:
      case Intrinsic::masked_compressstore:
        return unseen("a compressed vector access");
      default:
        return;
    }
  }

  // Functions of libraries that are not built with call-outs.
  void announce_library(CallBase& called, const Function& function) {
    if (!function.isDeclaration()) return;
    const StringRef name = function.getName();
    const auto argument = [&](unsigned i) { return called.getArgOperand(i); };
    if (called.arg_size() >= 3 &&
        (name == "memcpy" || name == "memmove" || name == "__memcpy_chk" ||
         name == "__memmove_chk" || name == "mempcpy")) {
      range(argument(1), argument(2), 0);
      range(argument(0), argument(2), kWrites);
      return;
    }
    if (called.arg_size() >= 3 && (name == "memset" || name == "__memset_chk"))
      return range(argument(0), argument(2), kWrites);
    if (called.arg_size() >= 3 && (name == "memcmp" || name == "bcmp")) {
      range(argument(0), argument(2), 0);
      range(argument(1), argument(2), 0);
      return;
    }
    if (called.doesNotAccessMemory() || is_known(name)) return;
    for (unsigned i = 0; i < called.arg_size(); ++i)
      if (argument(i)->getType()->isPointerTy() && !called.isByValArgument(i) &&
          !x_private.is(argument(i)))
        return unseen(name);
  }

  // The executor sees what these do, or they touch nothing of a kernel's.
  static bool is_known(StringRef name) {
    for (const StringRef part :
         {"attn_diag", "cuda", "__ubsan", "__cxa", "__tls", "__assert", "atomic"})
      if (name.contains(part)) return true;
    for (const StringRef start : {"_Zn", "_Zd", "_ZSt", "_ZNSt", "_ZNKSt", "_Unwind"})
      if (begins(name, start)) return true;
    return name == "printf" || name == "puts" || name == "malloc" || name == "free" ||
           name == "abort" || name == "strlen" || name == "putchar";
  }

  void unseen(StringRef what) {
    call(kUnseen,
         {x_builder.CreatePointerCast(x_builder.CreateGlobalString(what), pointer_type())});
  }

  void access(Value* pointer, Type* type, Align alignment, std::uint32_t word) {
    if (pointer->getType()->getPointerAddressSpace() != 0 || x_private.is(pointer)) return;
    const TypeSize size = x_layout.getTypeStoreSize(type);
    if (size.isScalable()) return unseen("a vector of no fixed size");
    const std::uint64_t bytes = size.getFixedValue();
    if (bytes == 0) return;
    word |= aligned(alignment);
    if (bytes > kSizeMask) return range(pointer, x_builder.getInt64(bytes), word);
    single(pointer, word | static_cast<std::uint32_t>(bytes));
  }

  void single(Value* pointer, std::uint32_t word) {
    if (x_site == nullptr) return call(kAccess, {as_address(pointer), x_builder.getInt32(word)});
    call(kAccessAtSite, {as_address(pointer), x_builder.getInt32(word), x_site});
    x_site = x_builder.CreateConstInBoundsGEP1_64(x_builder.getInt64Ty(), x_site, 1);
  }

  void range(Value* pointer, Value* bytes, std::uint32_t word) {
    if (pointer->getType()->getPointerAddressSpace() != 0 || x_private.is(pointer)) return;
    if (const auto* constant = dyn_cast<ConstantInt>(bytes)) {
      const std::uint64_t n = constant->getZExtValue();
      if (n == 0) return;
      if (n <= kSizeMask) {
        single(pointer, word | static_cast<std::uint32_t>(n));
        return;
      }
    }
    call(kAccessRange,
         {as_address(pointer), x_builder.CreateZExtOrTrunc(bytes, x_builder.getInt64Ty()),
          x_builder.getInt32(word)});
  }

  // Lanes of a vector that are switched off touch nothing.
  void masked(Value* pointer, Type* type, Value* mask, std::uint32_t word) {
    const auto* vector = cast<FixedVectorType>(type);
    if (const auto* constant = dyn_cast<Constant>(mask))
      if (constant->isAllOnesValue()) return access(pointer, type, Align(1), word);
    if (x_private.is(pointer)) return;
    const unsigned lanes = vector->getNumElements();
    if (lanes > 64) return unseen("a vector of more than 64 elements");
    Value* const bits = x_builder.CreateZExt(
        x_builder.CreateBitCast(mask, x_builder.getIntNTy(lanes)), x_builder.getInt64Ty());
    call(kAccessMasked,
         {as_address(pointer), bits, x_builder.getInt32(word | element_bytes(type))});
  }

  void each_lane(Value* pointers, Type* type, Value* mask, std::uint32_t word) {
    const unsigned lanes = cast<FixedVectorType>(type)->getNumElements();
    for (unsigned i = 0; i < lanes; ++i) {
      Value* const bit =
          x_builder.CreateZExt(x_builder.CreateExtractElement(mask, i), x_builder.getInt64Ty());
      call(kAccessMasked, {as_address(x_builder.CreateExtractElement(pointers, i)), bit,
                           x_builder.getInt32(word | element_bytes(type))});
    }
  }

  unsigned element_bytes(Type* vector) {
    return static_cast<unsigned>(
        x_layout.getTypeStoreSize(cast<FixedVectorType>(vector)->getElementType()).getFixedValue());
  }

  Type* pointer_type() { return PointerType::getUnqual(x_builder.getInt8Ty()); }
  Value* as_address(Value* pointer) { return x_builder.CreatePointerCast(pointer, pointer_type()); }

  void call(const char* name, std::initializer_list<Value*> arguments) {
    SmallVector<Type*, 3> types;
    for (const Value* value : arguments) types.push_back(value->getType());
    auto* const type = FunctionType::get(x_builder.getVoidTy(), types, false);
    CallInst* const made = x_builder.CreateCall(
        x_function.getParent()->getOrInsertFunction(name, type), SmallVector<Value*, 3>(arguments));
    made->setDoesNotThrow();
    made->addFnAttr(Attribute::NoMerge);  // its return address tells the line
    made->setTailCallKind(CallInst::TCK_NoTail);
    x_changed = true;
  }

  Function& x_function;
  const DataLayout& x_layout;
  IRBuilder<> x_builder;
  PrivateMemory x_private;
  std::optional<DominatorTree> x_dominators;
  Value* x_site = nullptr;  // of the next access, in a loop
  bool x_changed = false;
};

}  // namespace

bool PrivateMemory::is(const Value* pointer) {
  const Value* const object = getUnderlyingObject(pointer);
  const auto known = x_known.find(object);
  if (known != x_known.end()) return known->second;
  const auto* argument = dyn_cast<Argument>(object);
  const auto* global = dyn_cast<GlobalVariable>(object);
  bool is = false;
  if (isa<AllocaInst>(object) || (argument != nullptr && argument->hasByValAttr()))
    is = !PointerMayBeCaptured(object, true, true);
  else if (global != nullptr)
    is = is_private_global(*global);
  x_known[object] = is;
  return is;
}

void announce_in_loop(Function& function, ArrayRef<Instruction*> all,
                      const DenseMap<Instruction*, Value*>& sites) {
  AccessCalls calls(function);
  for (Instruction* at : all) calls.announce(*at, sites.lookup(at));
}

bool announce_accesses(Function& function) {
  return !function.isDeclaration() && AccessCalls(function).run();
}

}  // namespace attn_diag::instrument
