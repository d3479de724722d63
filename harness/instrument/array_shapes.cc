#include "harness/instrument/array_shapes.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/ValueSymbolTable.h>

#include <algorithm>
#include <array>
#include <string>

#include "attn_diag_host/callouts.h"
#include "harness/instrument/launched.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;

struct Shape {
  SmallVector<std::uint64_t, 4> extents;
  std::uint64_t element_bytes = 0;
};

// The shape of `float a[30][32]`; without extents: not an array.
Shape shape_of(Type* type, const DataLayout& layout) {
  Shape shape;
  for (; auto* array = dyn_cast<ArrayType>(type); type = array->getElementType())
    shape.extents.push_back(array->getNumElements());
  if (type->isSized()) shape.element_bytes = layout.getTypeAllocSize(type).getFixedValue();
  if (shape.element_bytes == 0) shape.extents.clear();
  return shape;
}

// The name of a variable in the source, before anything is inlined; empty: the compiler's own variable, or not
// certain. LLVM names the second acc of a function "acc1".
StringRef source_name(const AllocaInst& variable) {
  const StringRef name = variable.getName(), stem = name.rtrim("0123456789");
  const bool is_second = stem.size() < name.size() &&
                         variable.getFunction()->getValueSymbolTable()->lookup(stem) != nullptr;
  return name.contains('.') || is_second ? StringRef() : name;
}

const Value* without_casts(const Value* value) {
  while (const auto* cast = dyn_cast<CastInst>(value)) value = cast->getOperand(0);
  return value;
}

bool is_same_index(const Value* a, const Value* b) {
  const auto* const x = dyn_cast<ConstantInt>(a);
  const auto* const y = dyn_cast<ConstantInt>(b);
  if (x != nullptr && y != nullptr) return x->getSExtValue() == y->getSExtValue();
  return without_casts(a) == without_casts(b);
}

// What an address is in: a variable or a reference, and the way there.
struct Way {
  const Value* object = nullptr;
  SmallVector<const GEPOperator*, 4> steps;  // the last one first
};

Way way_to(const Value* pointer) {
  Way way;
  for (;;) {
    pointer = pointer->stripPointerCasts();
    if (const auto* step = dyn_cast<GEPOperator>(pointer)) {
      way.steps.push_back(step);
      pointer = step->getPointerOperand();
      continue;
    }
#if LLVM_VERSION_MAJOR >= 15
    if (const auto* call = dyn_cast<IntrinsicInst>(pointer))
      if (call->getIntrinsicID() == Intrinsic::threadlocal_address) {
        pointer = call->getArgOperand(0);
        continue;
      }
#endif
    break;
  }
  way.object = pointer;
  return way;
}

// Tells which variable a report of an index is about.
class Indexed {
 public:
  Indexed(CallInst& report, const DominatorTree& dominators)
      : x_report(report), x_dominators(dominators), x_layout(report.getModule()->getDataLayout()) {}

  bool tell() {
    const Flat flat = allow_flat();
    return flat == Flat::kNotReported || name_variable() || flat == Flat::kUpToEnd;
  }

 private:
  bool name_variable() {
    const GetElementPtrInst* const step = indexing();
    if (step == nullptr) return false;
    const Way way = way_to(step->getPointerOperand());
    const auto [name, type] = variable(way, step->getSourceElementType());
    if (name.empty()) return false;
    IRBuilder<> builder(&x_report);
    Value* offset = builder.getInt64(0);
    unsigned dimension = 0;
    Type* part = type;
    for (auto s = way.steps.rbegin(); part != nullptr && s != way.steps.rend(); ++s)
      part = descend(builder, **s, part, offset, dimension);
    if (part != step->getSourceElementType()) {  // of a member, or there was no telling
      offset = builder.getInt64(0);
      dimension = 0;
      part = nullptr;
    }
    tell_about(builder, name, part == nullptr ? nullptr : type, offset, dimension);
    return true;
  }

  // "*(*tile + i)" and "tile[0][i]" go over the whole of `half tile[16][72]`, as kernels do, though C++ has it that they stay
  // in their row: there what leaves the whole is reported alone, and of rows that nobody knows here nothing. What is
  // accessed outside the variable is seen all the same, but for what lies between two arrays.
  enum class Flat { kNot, kUpToEnd, kNotReported };
  Flat allow_flat() {
    if (const GetElementPtrInst* const step = step_after(1))
      return allow_up_to_end(way_to(step->getPointerOperand()), true);
    const GetElementPtrInst* const step = indexing();
    return step == nullptr || step->getSourceElementType()->getArrayElementType()->isArrayTy()
               ? Flat::kNot
               : allow_up_to_end(way_to(step->getPointerOperand()), false);
  }

  Flat allow_up_to_end(const Way& way, bool is_arithmetic) {
    Type* type = nullptr;
    if (const auto* local = dyn_cast<AllocaInst>(way.object)) type = local->getAllocatedType();
    if (const auto* global = dyn_cast<GlobalVariable>(way.object)) type = global->getValueType();
    // Behind a pointer, "half (*tile)[72]", there may be any number of rows.
    const bool is_pointer =
        type == nullptr &&
        variable(way,
                 way.steps.empty() ? x_report.getType() : way.steps.front()->getSourceElementType())
                .second == nullptr;
    const Shape shape = type == nullptr ? Shape() : shape_of(type, x_layout);
    if (!is_pointer && shape.extents.size() < 2) return Flat::kNot;
    const bool first_row = std::all_of(way.steps.begin(), way.steps.end(),
                                       [](const auto* step) { return step->hasAllZeroIndices(); });
    if (is_pointer || !first_row) {
      if (is_arithmetic) x_report.eraseFromParent();
      return is_arithmetic ? Flat::kNotReported : Flat::kNot;
    }
    std::uint64_t count = 1;
    for (const std::uint64_t extent : shape.extents) count *= extent;
    const BasicBlock* const before = x_report.getParent()->getSinglePredecessor();
    const auto* const branch =
        before == nullptr ? nullptr : dyn_cast<BranchInst>(before->getTerminator());
    auto* const test = branch == nullptr || !branch->isConditional()
                           ? nullptr
                           : dyn_cast<ICmpInst>(branch->getCondition());
    if (test == nullptr || !isa<ConstantInt>(test->getOperand(1))) return Flat::kNot;
    test->setOperand(1, ConstantInt::get(test->getOperand(1)->getType(), count));
    return Flat::kUpToEnd;
  }

  // The address that is computed of the index, where control goes whether or not it is reported.
  const GetElementPtrInst* indexing() const { return step_after(2); }

  // With two indices one into an array, "tile[i]"; with one a step of a pointer, "*tile + i".
  const GetElementPtrInst* step_after(unsigned indices) const {
    const BasicBlock* const after = x_report.getParent()->getSingleSuccessor();
    if (after == nullptr || x_report.arg_size() < 2) return nullptr;
    for (const Instruction& at : *after)
      if (const auto* step = dyn_cast<GetElementPtrInst>(&at))
        if (step->getNumIndices() == indices &&
            step->getSourceElementType()->isArrayTy() == (indices == 2) &&
            (indices == 1 || is_zero(step->getOperand(1))) &&
            is_same_index(step->getOperand(indices), x_report.getArgOperand(1)))
          return step;
    return nullptr;
  }

  static bool is_zero(const Value* value) {
    const auto* const number = dyn_cast<ConstantInt>(value);
    return number != nullptr && number->isZero();
  }

  // Its name in the source and its type. Among parameters, only a reference is a variable of a known type.
  std::pair<StringRef, Type*> variable(const Way& way, Type* indexed) const {
    if (const auto* local = dyn_cast<AllocaInst>(way.object))
      return {source_name(*local), local->getAllocatedType()};
    if (const auto* global = dyn_cast<GlobalVariable>(way.object))
      return {global->getName(), global->getValueType()};  // as it is mangled
    if (const auto* parameter = dyn_cast<Argument>(way.object)) {
      Type* const type = way.steps.empty() ? indexed : way.steps.back()->getSourceElementType();
      const bool is_reference =
          type->isArrayTy() &&
          parameter->getDereferenceableBytes() == x_layout.getTypeAllocSize(type).getFixedValue();
      if (is_reference) return {parameter->getName(), type};
    }
    return {};
  }

  // What one step into arrays leads to; null: into something else.
  Type* descend(IRBuilder<>& builder, const GEPOperator& step, Type* part, Value*& offset,
                unsigned& dimension) const {
    if (step.getSourceElementType() != part || !is_zero(step.getOperand(1))) return nullptr;
    for (unsigned i = 2; i < step.getNumOperands(); ++i) {
      auto* const array = dyn_cast<ArrayType>(part);
      Value* const index = step.getOperand(i);
      const auto* const computed = dyn_cast<Instruction>(index);
      if (array == nullptr || !index->getType()->isIntegerTy() ||
          (computed != nullptr && !x_dominators.dominates(computed, &x_report)))
        return nullptr;
      part = array->getElementType();
      const std::uint64_t bytes = x_layout.getTypeAllocSize(part).getFixedValue();
      offset = builder.CreateAdd(
          offset, builder.CreateMul(builder.CreateSExtOrTrunc(index, builder.getInt64Ty()),
                                    builder.getInt64(bytes)));
      ++dimension;
    }
    return part;
  }

  CallInst& x_report;
  const DominatorTree& x_dominators;
  const DataLayout& x_layout;
};

// A call of a call-out that returns nothing.
void call(IRBuilder<>& builder, const char* callout, ArrayRef<Value*> arguments) {
  SmallVector<Type*, 4> types;
  for (const Value* argument : arguments) types.push_back(argument->getType());
  Module& module = *builder.GetInsertBlock()->getModule();
  builder
      .CreateCall(
          module.getOrInsertFunction(callout, FunctionType::get(builder.getVoidTy(), types, false)),
          arguments)
      ->setDoesNotThrow();
}

}  // namespace

GlobalAlias* name_shape(GlobalVariable& variable) {
  const Shape shape = shape_of(variable.getValueType(), variable.getParent()->getDataLayout());
  if (shape.extents.empty()) return nullptr;
  std::string name = callouts::kShapePrefix;
  for (const std::uint64_t extent : shape.extents) name += std::to_string(extent) + 'x';
  name += std::to_string(shape.element_bytes) + '.' + variable.getName().str();
  auto* const alias =
      GlobalAlias::create(variable.getValueType(), variable.getAddressSpace(),
                          GlobalValue::InternalLinkage, name, &variable, variable.getParent());
  alias->setThreadLocalMode(variable.getThreadLocalMode());
  return alias;
}

void tell_about(IRBuilder<>& builder, StringRef name, Type* type, Value* offset,
                unsigned dimension) {
  Module& module = *builder.GetInsertBlock()->getModule();
  auto* const pointer = PointerType::getUnqual(builder.getInt8Ty());
  Value* words = ConstantPointerNull::get(pointer);
  const Shape shape = type == nullptr ? Shape() : shape_of(type, module.getDataLayout());
  if (!shape.extents.empty()) {
    SmallVector<std::uint64_t, 6> numbers = {shape.extents.size(), shape.element_bytes};
    numbers.append(shape.extents.begin(), shape.extents.end());
    Constant* const data = ConstantDataArray::get(builder.getContext(), numbers);
    words = builder.CreatePointerCast(
        new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage, data),
        pointer);
  }
  call(builder, callouts::kAbout,
       {builder.CreatePointerCast(builder.CreateGlobalString(name), pointer), words, offset,
        builder.getInt32(dimension)});
}

bool tell_of_arguments(Module& module) {
  // A template of the user's may launch what it is handed: whatever is named without being called may be a kernel.
  SmallSetVector<Function*, 8> kernels = launched_functions(module);
  for (Function& function : module)
    if (!function.isDeclaration() && function.getReturnType()->isVoidTy() &&
        function.hasAddressTaken())
      kernels.insert(&function);
  bool any = false;
  for (Function* const kernel : kernels) {
    IRBuilder<> builder(&*kernel->getEntryBlock().getFirstInsertionPt());
    builder.SetCurrentDebugLocation(DebugLoc());
    for (Argument& argument : kernel->args()) {
      if (!argument.getType()->isPointerTy() || argument.hasByValAttr() || !argument.hasName())
        continue;
      auto* const pointer = PointerType::getUnqual(builder.getInt8Ty());
      call(builder, callouts::kArgument,
           {builder.CreatePointerCast(builder.CreateGlobalString(argument.getName()), pointer),
            builder.CreatePointerCast(&argument, pointer)});
      any = true;
    }
  }
  return any;
}

bool tell_of_indices(Function& function, const DominatorTree& dominators) {
  SmallVector<CallInst*, 16> reports;
  for (BasicBlock& block : function)
    for (Instruction& at : block)
      if (auto* call = dyn_cast<CallInst>(&at))
        if (const Function* called = call->getCalledFunction())
          if (called->getName() == "__ubsan_handle_out_of_bounds") reports.push_back(call);
  bool any = false;
  for (CallInst* report : reports) any = Indexed(*report, dominators).tell() || any;
  return any;
}

bool tell_of_local_arrays(Function& function) {
  bool any = false;
  for (BasicBlock& block : function)
    for (Instruction& at : block) {
      auto* const call = dyn_cast<CallInst>(&at);
      const Function* const called = call == nullptr ? nullptr : call->getCalledFunction();
      if (called == nullptr || !called->getName().contains(callouts::kLocalArray)) continue;
      const auto* const variable =
          dyn_cast<AllocaInst>(call->getArgOperand(0)->stripPointerCasts());
      if (variable == nullptr) continue;
      IRBuilder<> builder(call);
      tell_about(builder, "", variable->getAllocatedType(), builder.getInt64(0), 0);
      any = true;
    }
  return any;
}

}  // namespace attn_diag::instrument
