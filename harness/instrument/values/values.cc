#include "harness/instrument/values/values.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstVisitor.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "attn_diag/harness/host/value_callouts.h"
#include "harness/instrument/values/value_sites.h"

namespace attn_diag::instrument {
namespace {

using namespace llvm;
using value_callouts::Op;

// A function of one number, by its name; of a conversion the bytes of what it gives.
struct Primitive {
  Op op;
  unsigned operand = 0;
  bool by_bits = false;  // its result is the bits of a number of fewer of them
};

std::optional<Primitive> primitive_of(StringRef name) {
  struct Known {
    const char* part;
    Primitive is;
  };
  static constexpr std::array<Known, 9> kInNamespace = {{
      {"9half_bitsE", {Op::kRound, 0, true}},
      {"10half_valueE", {Op::kRound}},
      {"13bfloat16_bitsE", {Op::kRound, 0, true}},
      {"14bfloat16_valueE", {Op::kRound}},
      {"12round_to_oddE", {Op::kRound}},
      {"8fp8_bitsI", {Op::kRound, 0, true}},  // a template
      {"4tf32I", {Op::kRound, 0, true}},
      {"9fp8_valueE", {Op::kRound}},
      {"9fp8_valueI", {Op::kRound}},
  }};
  if (name.contains("9attn_diag4host"))
    for (const Known& known : kInNamespace)
      if (name.contains(known.part)) return known.is;
  const auto op = StringSwitch<std::optional<Op>>(name)
                      .Cases("expf", "exp", "__expf", "_Z6__expff", Op::kExp)
                      .Cases("exp2f", "exp2", "_Z7__exp2ff", Op::kExp2)
                      .Cases("logf", "log", "__logf", "_Z6__logff", Op::kLog)
                      .Cases("log2f", "log2", "_Z7__log2ff", Op::kLog2)
                      .Cases("fabsf", "fabs", Op::kAbsolute)
                      .Cases("sqrtf", "sqrt", "tanhf", "tanh", "powf", "pow", Op::kFunction)
                      .Cases("rsqrtf", "_Z6rsqrtff", Op::kFunction)
                      .Default(std::nullopt);
  if (!op) return std::nullopt;
  return Primitive{*op};
}

std::optional<Primitive> primitive_of(const IntrinsicInst& call) {
  switch (call.getIntrinsicID()) {
    case Intrinsic::exp:
      return Primitive{Op::kExp};
    case Intrinsic::exp2:
      return Primitive{Op::kExp2};
    case Intrinsic::log:
      return Primitive{Op::kLog};
    case Intrinsic::log2:
      return Primitive{Op::kLog2};
    case Intrinsic::fabs:
      return Primitive{Op::kAbsolute};
    case Intrinsic::sqrt:
    case Intrinsic::pow:
    case Intrinsic::powi:
      return Primitive{Op::kFunction};
    default:
      return std::nullopt;
  }
}

bool is_atomic_add_of_floats(StringRef name) {
  return name == "_Z9atomicAddPff" || name == "_Z9atomicAddPdd";
}
// a * b + c, with the rounding of a type that the host does not have.
bool is_fma(StringRef name) {
  return name == "fmaf" || name == "fma" ||
         (name.contains("9attn_diag4host") && name.contains("25fused_multiply_add_to_oddE"));
}
bool is_collective(StringRef name) { return name.contains("4host15warp_collectiveE"); }
// Which argument points to the memory that a call reads or writes; nothing: it is no such call.
struct MemoryCall {
  Op op;
  unsigned argument;
};
std::optional<MemoryCall> memory_call(StringRef name) {
  if (name.contains("4host10async_copyE") || name.contains("4host11matrix_loadE"))
    return MemoryCall{Op::kLoad, 1};
  if (name.contains("4host8ldmatrixE")) return MemoryCall{Op::kLoad, 3};
  if (name.contains("4host12matrix_storeE") || name.contains("4host8stmatrixE"))
    return MemoryCall{Op::kStore, 0};
  return std::nullopt;
}
bool is_matrix_call(StringRef name) {
  return name.contains("4host15matrix_multiplyE") || name.contains("4host8mma_syncE");
}

class Watcher {
 public:
  Watcher(Function& function, const DominatorTree& dominators, const LoopInfo& loops)
      : x_function(function),
        x_module(*function.getParent()),
        x_context(function.getContext()),
        x_layout(x_module.getDataLayout()),
        x_dominators(dominators),
        x_loops(loops),
        x_sites(function, dominators, loops),
        x_label(Type::getInt32Ty(x_context)),
        x_bits(Type::getInt64Ty(x_context)),
        x_pointer(PointerType::getUnqual(Type::getInt8Ty(x_context))) {}

  bool run() {
    std::vector<Instruction*> all;
    for (BasicBlock& block : x_function)
      for (Instruction& at : block) all.push_back(&at);
    find_what_may_have_labels(all);
    // Phis first, for what refers to them before they are complete.
    for (Instruction* at : all)
      if (auto* phi = dyn_cast<PHINode>(at); phi != nullptr && x_may.count(phi) != 0) {
        IRBuilder<> builder(phi);
        x_labels[phi] = builder.CreatePHI(label_type(phi->getType()), phi->getNumIncomingValues());
      }
    visit_in_dominance_order();
    for (Instruction* at : all)
      if (auto* phi = dyn_cast<PHINode>(at); phi != nullptr && x_may.count(phi) != 0)
        complete(*phi);
    return x_changed;
  }

 private:
  // Operands before their uses, but for phis.
  void visit_in_dominance_order() {
    SmallVector<const DomTreeNodeBase<BasicBlock>*, 64> stack = {x_dominators.getRootNode()};
    while (!stack.empty()) {
      const auto* const node = stack.pop_back_val();
      std::vector<Instruction*> here;
      for (Instruction& at : *node->getBlock()) here.push_back(&at);
      for (Instruction* at : here)
        if (x_original.count(at) != 0) visit(*at);
      for (const auto* child : node->children()) stack.push_back(child);
    }
  }

  static bool is_index(const Value* pointer) {
    const auto* const global = dyn_cast<GlobalVariable>(pointer->stripPointerCasts());
    if (global == nullptr) {
      if (const auto* step = dyn_cast<GEPOperator>(pointer->stripPointerCasts()))
        return is_index(step->getPointerOperand());
      return false;
    }
    for (const StringRef name : {"threadIdx", "blockIdx", "blockDim", "gridDim"})
      if (global->getName().contains(name)) return true;
    return false;
  }

  bool can_be_labelled(Type* type) const {
    if (type->isFloatTy() || type->isDoubleTy() || type->isHalfTy() || type->isBFloatTy())
      return true;
    if (type->isIntegerTy())
      return type->getIntegerBitWidth() % 8 == 0 && type->getIntegerBitWidth() <= 128;
    if (const auto* vector = dyn_cast<FixedVectorType>(type))
      return vector->getNumElements() <= 16 && can_be_labelled(vector->getElementType());
    if (auto* const record = dyn_cast<StructType>(type)) {
      for (Type* member : record->elements())
        if (can_be_labelled(member)) return record->getNumElements() <= 8;
      return false;
    }
    if (const auto* array = dyn_cast<ArrayType>(type))
      return array->getNumElements() <= 16 && can_be_labelled(array->getElementType());
    return false;
  }

  Type* label_type(Type* type) const {
    if (const auto* vector = dyn_cast<FixedVectorType>(type))
      return FixedVectorType::get(x_label, vector->getNumElements());
    if (auto* const record = dyn_cast<StructType>(type)) {
      SmallVector<Type*, 8> members;
      for (Type* member : record->elements()) members.push_back(label_type(member));
      return StructType::get(x_context, members);
    }
    if (const auto* array = dyn_cast<ArrayType>(type))
      return ArrayType::get(label_type(array->getElementType()), array->getNumElements());
    return x_label;
  }

  static bool is_number(const Type* type) { return type->isFloatingPointTy(); }
  static bool is_number_or_vector(const Type* type) { return type->isFPOrFPVectorTy(); }

  bool may_have_label(const Instruction& at) const {
    if (!can_be_labelled(at.getType())) return false;
    const auto any = [&] {
      for (const Value* operand : at.operands())
        if (x_may.count(operand) != 0) return true;
      return false;
    };
    if (const auto* load = dyn_cast<LoadInst>(&at)) return !is_index(load->getPointerOperand());
    if (const auto* call = dyn_cast<CallBase>(&at)) {
      if (is_number_or_vector(at.getType())) return true;
      const Function* const called = call->getCalledFunction();
      if (called == nullptr) return false;
      return is_collective(called->getName()) || (primitive_of(called->getName()) && any()) ||
             (call->getIntrinsicID() == Intrinsic::fshl && any());
    }
    if (is_number_or_vector(at.getType())) return isa<PHINode>(at) || any();
    switch (at.getOpcode()) {
      case Instruction::PHI:
      case Instruction::Select:
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Trunc:
      case Instruction::ZExt:
      case Instruction::SExt:
      case Instruction::BitCast:
      case Instruction::Freeze:
      case Instruction::Shl:
      case Instruction::LShr:
      case Instruction::AShr:
      case Instruction::And:
      case Instruction::Or:
      case Instruction::Xor:
      case Instruction::ExtractElement:
      case Instruction::InsertElement:
      case Instruction::ShuffleVector:
      case Instruction::ExtractValue:
      case Instruction::InsertValue:
        return any();
      default:
        return false;
    }
  }

  void find_what_may_have_labels(const std::vector<Instruction*>& all) {
    for (Instruction* at : all) x_original.insert(at);
    for (bool changed = true; changed;) {
      changed = false;
      for (Instruction* at : all)
        if (x_may.count(at) == 0 && may_have_label(*at)) {
          x_may.insert(at);
          changed = true;
        }
    }
  }

  Value* zero(Type* of) const { return Constant::getNullValue(label_type(of)); }
  Value* label_of(Value* value) {
    const auto found = x_labels.find(value);
    return found == x_labels.end() ? zero(value->getType()) : found->second;
  }
  static bool is_zero(const Value* label) {
    const auto* const constant = dyn_cast<Constant>(label);
    return constant != nullptr && constant->isNullValue();
  }

  // A number as float.
  Value* number(IRBuilder<>& builder, Value* value) {
    Type* const type = value->getType();
    if (type->isFloatTy()) return value;
    if (type->isDoubleTy()) return builder.CreateFPTrunc(value, builder.getFloatTy());
    if (type->isFloatingPointTy()) return builder.CreateFPExt(value, builder.getFloatTy());
    return ConstantFP::get(builder.getFloatTy(), 0);
  }
  // The first 64 bits.
  Value* bits(IRBuilder<>& builder, Value* value) {
    Type* const type = value->getType();
    if (type->isPointerTy()) return builder.CreatePtrToInt(value, x_bits);
    const unsigned width = type->getPrimitiveSizeInBits().getFixedValue();
    if (width == 0) return builder.getInt64(0);
    Value* whole = value;
    if (!type->isIntegerTy()) whole = builder.CreateBitCast(value, builder.getIntNTy(width));
    return builder.CreateZExtOrTrunc(whole, x_bits);
  }
  Value* bytes_at(IRBuilder<>& builder, Value* pointer, std::uint64_t offset) {
    Value* const base = builder.CreatePointerCast(pointer, x_pointer);
    return offset == 0 ? base : builder.CreateConstGEP1_64(builder.getInt8Ty(), base, offset);
  }
  Value* as_pointer(IRBuilder<>& builder, GlobalVariable* site) {
    return builder.CreatePointerCast(site, x_pointer);
  }

  Value* call(IRBuilder<>& builder, const char* name, Type* result, ArrayRef<Value*> arguments) {
    SmallVector<Type*, 8> types;
    for (const Value* argument : arguments) types.push_back(argument->getType());
    CallInst* const made = builder.CreateCall(
        x_module.getOrInsertFunction(name, FunctionType::get(result, types, false)), arguments);
    made->setDoesNotThrow();
    made->setDebugLoc(DebugLoc());
    if (auto* callee = dyn_cast<Function>(made->getCalledOperand()->stripPointerCasts()))
      callee->setDoesNotThrow();
    x_changed = true;
    return made;
  }

  // Where calls that look at the result of `at` go.
  static Instruction* behind(Instruction& at) {
    if (auto* invoke = dyn_cast<InvokeInst>(&at))
      return &*invoke->getNormalDest()->getFirstInsertionPt();
    if (isa<PHINode>(at)) return &*at.getParent()->getFirstInsertionPt();
    return at.getNextNode();
  }

  void visit(Instruction& at) {
    if (auto* store = dyn_cast<StoreInst>(&at)) return visit_store(*store);
    if (auto* call = dyn_cast<CallBase>(&at)) return visit_call(*call);
    if (x_may.count(&at) == 0) return;
    if (auto* phi = dyn_cast<PHINode>(&at)) return pick_of(*phi);
    if (auto* load = dyn_cast<LoadInst>(&at)) return visit_load(*load);
    IRBuilder<> builder(behind(at));
    switch (at.getOpcode()) {
      case Instruction::FAdd:
        return arithmetic(builder, at, Op::kAdd);
      case Instruction::FSub:
        return arithmetic(builder, at, Op::kSubtract);
      case Instruction::FMul:
        return arithmetic(builder, at, Op::kMultiply);
      case Instruction::FDiv:
        return arithmetic(builder, at, Op::kDivide);
      case Instruction::FRem:
        return arithmetic(builder, at, Op::kFunction);
      case Instruction::FNeg:
        return arithmetic(builder, at, Op::kNegate);
      case Instruction::FPExt:
      case Instruction::FPTrunc:
        return arithmetic(builder, at, Op::kRound);
      case Instruction::SIToFP:
      case Instruction::UIToFP:
        return from_integer(builder, at);
      case Instruction::Add:
      case Instruction::Sub:
        return move_code(at);
      case Instruction::Select:
        return visit_select(builder, cast<SelectInst>(at));
      case Instruction::Freeze:
        x_labels[&at] = label_of(at.getOperand(0));
        return;
      case Instruction::Trunc:
      case Instruction::ZExt:
      case Instruction::SExt:
        return resize(builder, cast<CastInst>(at));
      case Instruction::BitCast:
        return reinterpret(builder, cast<CastInst>(at));
      case Instruction::Shl:
      case Instruction::LShr:
      case Instruction::AShr:
        return shift(builder, at);
      case Instruction::And:
        return mask(builder, at);
      case Instruction::Or:
      case Instruction::Xor:
        return merge(builder, at);
      case Instruction::ExtractElement:
        x_labels[&at] = builder.CreateExtractElement(label_of(at.getOperand(0)), at.getOperand(1));
        return;
      case Instruction::InsertElement:
        x_labels[&at] = builder.CreateInsertElement(label_of(at.getOperand(0)),
                                                    label_of(at.getOperand(1)), at.getOperand(2));
        return;
      case Instruction::ShuffleVector:
        x_labels[&at] =
            builder.CreateShuffleVector(label_of(at.getOperand(0)), label_of(at.getOperand(1)),
                                        cast<ShuffleVectorInst>(at).getShuffleMask());
        return;
      case Instruction::ExtractValue:
        x_labels[&at] = builder.CreateExtractValue(label_of(at.getOperand(0)),
                                                   cast<ExtractValueInst>(at).getIndices());
        return;
      case Instruction::InsertValue:
        x_labels[&at] =
            builder.CreateInsertValue(label_of(at.getOperand(0)), label_of(at.getOperand(1)),
                                      cast<InsertValueInst>(at).getIndices());
        return;
      default:
        return;
    }
  }

  // Calls `each(lane)` for the lanes of a vector, or once, and puts the labels together.
  template <class Each>
  Value* by_lane(IRBuilder<>& builder, Type* type, const Each& each) {
    const auto* const vector = dyn_cast<FixedVectorType>(type);
    if (vector == nullptr) return each(-1);
    Value* labels = zero(type);
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane)
      labels = builder.CreateInsertElement(labels, each(static_cast<int>(lane)), lane);
    return labels;
  }
  static Value* lane_of(IRBuilder<>& builder, Value* value, int lane) {
    return lane < 0 ? value : builder.CreateExtractElement(value, static_cast<std::uint64_t>(lane));
  }

  void arithmetic(IRBuilder<>& builder, Instruction& at, Op op) {
    compute(builder, at, op, {at.operands().begin(), at.operands().end()});
  }

  void compute(IRBuilder<>& builder, Instruction& at, Op op,
               const SmallVector<Value*, 3>& operands) {
    bool any = false;
    for (Value* operand : operands) any = any || !is_zero(label_of(operand));
    if (!any) return;
    GlobalVariable* const site = x_sites.site(at, op, nullptr);
    x_labels[&at] = by_lane(builder, at.getType(), [&](int lane) {
      SmallVector<Value*, 8> arguments = {as_pointer(builder, site),
                                          number(builder, lane_of(builder, &at, lane))};
      for (unsigned i = 0; i < 3; ++i) {
        const bool there = i < operands.size();
        arguments.push_back(there ? lane_of(builder, label_of(operands[i]), lane)
                                  : builder.getInt32(0));
        arguments.push_back(there ? number(builder, lane_of(builder, operands[i], lane))
                                  : ConstantFP::get(builder.getFloatTy(), 0));
      }
      return call(builder, value_callouts::kCompute, x_label, arguments);
    });
  }

  void visit_load(LoadInst& load) {
    IRBuilder<> builder(behind(load));
    Type* const type = load.getType();
    if (type->isAggregateType()) return;
    GlobalVariable* const site = x_sites.site(
        load, is_number_or_vector(type) ? Op::kLoadNumber : Op::kLoad, load.getPointerOperand());
    Type* const element = type->getScalarType();
    const std::uint64_t bytes = x_layout.getTypeStoreSize(element).getFixedValue();
    x_labels[&load] = by_lane(builder, type, [&](int lane) {
      return call(builder, value_callouts::kLoad, x_label,
                  {as_pointer(builder, site),
                   bytes_at(builder, load.getPointerOperand(), lane < 0 ? 0 : lane * bytes),
                   builder.getInt32(static_cast<std::uint32_t>(bytes)),
                   bits(builder, lane_of(builder, &load, lane))});
    });
  }

  void visit_store(StoreInst& store) {
    Value* const value = store.getValueOperand();
    Type* const type = value->getType();
    IRBuilder<> builder(behind(store));
    if (type->isAggregateType() || type->isPointerTy() ||
        x_layout.getTypeStoreSize(type).getFixedValue() == 0) {
      forget(builder, store.getPointerOperand(), x_layout.getTypeStoreSize(type).getFixedValue());
      return;
    }
    // What only this function's own frame sees, and no label reaches, needs no record.
    GlobalVariable* const site = x_sites.site(store, Op::kStore, store.getPointerOperand());
    Type* const element = type->getScalarType();
    const std::uint64_t bytes = x_layout.getTypeStoreSize(element).getFixedValue();
    by_lane(builder, type, [&](int lane) {
      call(builder, value_callouts::kStore, builder.getVoidTy(),
           {as_pointer(builder, site),
            bytes_at(builder, store.getPointerOperand(), lane < 0 ? 0 : lane * bytes),
            builder.getInt32(static_cast<std::uint32_t>(bytes)),
            lane_of(builder, label_of(value), lane), bits(builder, lane_of(builder, value, lane))});
      return builder.getInt32(0);
    });
  }

  void forget(IRBuilder<>& builder, Value* pointer, std::uint64_t bytes) {
    if (bytes != 0)
      call(builder, value_callouts::kForget, builder.getVoidTy(),
           {bytes_at(builder, pointer, 0), builder.getInt64(bytes)});
  }

  void visit_select(IRBuilder<>& builder, SelectInst& select) {
    Value* const yes = label_of(select.getTrueValue());
    Value* const no = label_of(select.getFalseValue());
    if (is_zero(yes) && is_zero(no)) return;
    Value* const chosen = builder.CreateSelect(select.getCondition(), yes, no);
    if (!is_number(select.getType())) {
      x_labels[&select] = chosen;
      return;
    }
    Value* const other = builder.CreateSelect(select.getCondition(), no, yes);
    x_labels[&select] = pick(builder, select, select.getCondition(), chosen, other);
  }

  Value* pick(IRBuilder<>& builder, Instruction& at, const Value* condition, Value* chosen,
              Value* other) {
    GlobalVariable* const site = x_sites.site_of_choice(at, condition);
    return call(builder, value_callouts::kPick, x_label,
                {as_pointer(builder, site), chosen, number(builder, &at), other});
  }

  // if (masked) s = -INF: what s was is there still.
  void pick_of(PHINode& phi) {
    if (!is_number(phi.getType()) || x_loops.isLoopHeader(phi.getParent()) ||
        phi.getNumIncomingValues() != 2)
      return;
    const auto* const node = x_dominators.getNode(phi.getParent());
    if (node == nullptr || node->getIDom() == nullptr) return;
    const auto* const branch = dyn_cast<BranchInst>(node->getIDom()->getBlock()->getTerminator());
    if (branch == nullptr || !branch->isConditional()) return;
    Value* known = nullptr;
    for (Value* value : phi.incoming_values())
      if (const auto* made = dyn_cast<Instruction>(value);
          made != nullptr && x_may.count(value) != 0 &&
          x_dominators.dominates(made, &*phi.getParent()->getFirstInsertionPt()))
        known = value;
    // The label of a phi that is dominated is not known yet where it comes later in the same block.
    if (known == nullptr || cast<Instruction>(known)->getParent() == phi.getParent()) return;
    IRBuilder<> builder(behind(phi));
    Value* const plain = x_labels[&phi];
    x_labels[&phi] = pick(builder, phi, branch->getCondition(), plain, label_of(known));
    x_plain[&phi] = cast<PHINode>(plain);
  }

  void complete(PHINode& phi) {
    const auto plain = x_plain.find(&phi);
    auto* const labels =
        plain != x_plain.end() ? plain->second : cast<PHINode>(x_labels.find(&phi)->second);
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
      labels->addIncoming(label_of(phi.getIncomingValue(i)), phi.getIncomingBlock(i));
  }

  unsigned bytes_of(const Type* type) const {
    return static_cast<unsigned>(
        (const_cast<Type*>(type)->getPrimitiveSizeInBits().getFixedValue() + 7) / 8);
  }

  void resize(IRBuilder<>& builder, CastInst& at) {
    if (at.getType()->isVectorTy()) return;
    x_labels[&at] = call(builder, value_callouts::kResize, x_label,
                         {label_of(at.getOperand(0)), builder.getInt32(bytes_of(at.getSrcTy())),
                          builder.getInt32(bytes_of(at.getDestTy()))});
  }

  void from_integer(IRBuilder<>& builder, Instruction& at) {
    if (at.getType()->isVectorTy()) return;
    x_labels[&at] = call(
        builder, value_callouts::kFromInteger, x_label,
        {as_pointer(builder, x_sites.site(at, Op::kRound, nullptr)), label_of(at.getOperand(0)),
         number(builder, &at), builder.getInt32(bytes_of(at.getType()))});
  }

  // code - zero: the code of the same element still, of which only one is there.
  void move_code(Instruction& at) {
    if (at.getType()->isVectorTy()) return;
    Value *const left = label_of(at.getOperand(0)), *const right = label_of(at.getOperand(1));
    if (is_zero(left) != is_zero(right)) x_labels[&at] = is_zero(left) ? right : left;
  }

  void reinterpret(IRBuilder<>& builder, CastInst& at) {
    Type *const from = at.getSrcTy(), *const to = at.getDestTy();
    Value* const label = label_of(at.getOperand(0));
    const auto* const out = dyn_cast<FixedVectorType>(to);
    const auto* const in = dyn_cast<FixedVectorType>(from);
    const auto joined = [&]() -> Value* {
      if (in == nullptr) return label;
      const unsigned each = bytes_of(in->getElementType());
      Value* all = builder.CreateExtractElement(label, std::uint64_t{0});
      for (unsigned lane = 1; lane < in->getNumElements(); ++lane)
        all = call(builder, value_callouts::kJoinParts, x_label,
                   {all, builder.CreateExtractElement(label, lane), builder.getInt32(each * lane),
                    builder.getInt32(each)});
      return all;
    };
    const bool same_lanes =
        in != nullptr && out != nullptr && in->getNumElements() == out->getNumElements();
    if (same_lanes) {
      x_labels[&at] = label;
      return;
    }
    if (out == nullptr) {
      Value* const whole = joined();
      x_labels[&at] = is_number(to) ? as_number(builder, at, whole) : whole;
      return;
    }
    Value* const whole = joined();
    const unsigned each = bytes_of(out->getElementType());
    const unsigned bytes = bytes_of(from);
    Value* labels = zero(to);
    for (unsigned lane = 0; lane < out->getNumElements(); ++lane) {
      Value* part =
          call(builder, value_callouts::kShift, x_label,
               {whole, builder.getInt32(bytes),
                builder.getInt32(static_cast<std::uint32_t>(-8 * static_cast<int>(each * lane)))});
      part = call(builder, value_callouts::kResize, x_label,
                  {part, builder.getInt32(bytes), builder.getInt32(each)});
      labels = builder.CreateInsertElement(labels, part, lane);
    }
    x_labels[&at] = labels;
  }

  Value* as_number(IRBuilder<>& builder, Instruction& at, Value* label) {
    GlobalVariable* const site = x_sites.site(at, Op::kBits, nullptr);
    return call(builder, value_callouts::kAsNumber, x_label,
                {as_pointer(builder, site), label, builder.getInt32(bytes_of(at.getType())),
                 number(builder, &at)});
  }

  void shift(IRBuilder<>& builder, Instruction& at) {
    if (at.getType()->isVectorTy()) return;
    Value* by = builder.CreateZExtOrTrunc(at.getOperand(1), builder.getInt32Ty());
    if (at.getOpcode() != Instruction::Shl) by = builder.CreateNeg(by);
    x_labels[&at] =
        call(builder, value_callouts::kShift, x_label,
             {label_of(at.getOperand(0)), builder.getInt32(bytes_of(at.getType())), by});
  }

  void mask(IRBuilder<>& builder, Instruction& at) {
    if (at.getType()->isVectorTy()) return;
    Value *value = at.getOperand(0), *with = at.getOperand(1);
    if (is_zero(label_of(value))) std::swap(value, with);
    x_labels[&at] =
        call(builder, value_callouts::kMask, x_label,
             {label_of(value), builder.getInt32(bytes_of(at.getType())), bits(builder, with)});
  }

  void merge(IRBuilder<>& builder, Instruction& at) {
    if (at.getType()->isVectorTy()) return;
    GlobalVariable* const site = x_sites.site(at, Op::kBits, nullptr);
    x_labels[&at] = call(builder, value_callouts::kMerge, x_label,
                         {as_pointer(builder, site), label_of(at.getOperand(0)),
                          label_of(at.getOperand(1)), builder.getInt32(bytes_of(at.getType()))});
  }

  void visit_call(CallBase& at) {
    // Where it goes on others come, too, and nothing of it can be kept.
    if (const auto* invoke = dyn_cast<InvokeInst>(&at);
        invoke != nullptr && invoke->getNormalDest()->getUniquePredecessor() == nullptr)
      return;
    if (auto* copy = dyn_cast<MemTransferInst>(&at)) {
      IRBuilder<> builder(behind(at));
      call(builder, value_callouts::kCopy, builder.getVoidTy(),
           {as_pointer(builder, x_sites.site(at, Op::kLoad, copy->getSource())),
            as_pointer(builder, x_sites.site(at, Op::kStore, copy->getDest())),
            bytes_at(builder, copy->getDest(), 0), bytes_at(builder, copy->getSource(), 0),
            builder.CreateZExtOrTrunc(copy->getLength(), x_bits)});
      return;
    }
    if (auto* fill = dyn_cast<MemSetInst>(&at)) {
      IRBuilder<> builder(behind(at));
      call(builder, value_callouts::kForget, builder.getVoidTy(),
           {bytes_at(builder, fill->getDest(), 0),
            builder.CreateZExtOrTrunc(fill->getLength(), x_bits)});
      return;
    }
    if (isa<DbgInfoIntrinsic>(at)) return;
    if (auto* intrinsic = dyn_cast<IntrinsicInst>(&at)) return visit_intrinsic(*intrinsic);
    const Function* const called = at.getCalledFunction();
    const StringRef name = called == nullptr ? StringRef() : called->getName();
    if (is_collective(name)) return visit_collective(at);
    if (is_matrix_call(name)) {
      IRBuilder<> builder(&at);
      call(builder, value_callouts::kAt, builder.getVoidTy(),
           {as_pointer(builder, x_sites.site(at, Op::kProduct, nullptr))});
      return;
    }
    if (const auto memory = memory_call(name)) {
      IRBuilder<> builder(&at);
      call(builder, value_callouts::kAt, builder.getVoidTy(),
           {as_pointer(builder, x_sites.site(at, memory->op, at.getArgOperand(memory->argument)))});
      return;
    }
    if (is_atomic_add_of_floats(name)) {
      IRBuilder<> builder(&at);
      call(builder, value_callouts::kAtomicAdd, builder.getVoidTy(),
           {as_pointer(builder, x_sites.site(at, Op::kAtomicAdd, at.getArgOperand(0))),
            bytes_at(builder, at.getArgOperand(0), 0), label_of(at.getArgOperand(1)),
            number(builder, at.getArgOperand(1))});
      return;
    }
    if (x_may.count(&at) == 0) return;
    if (const auto primitive = primitive_of(name)) return convert(at, *primitive);
    if (is_number(at.getType())) {
      SmallVector<Value*, 3> operands;
      for (Value* argument : at.args())
        if (operands.size() < 3 && is_number(argument->getType())) operands.push_back(argument);
      IRBuilder<> builder(behind(at));
      compute(builder, at, is_fma(name) ? Op::kFma : Op::kFunction, operands);
    }
  }

  void visit_intrinsic(IntrinsicInst& at) {
    if (x_may.count(&at) == 0) return;
    if (const auto primitive = primitive_of(at); primitive && is_number(at.getType()))
      return convert(at, *primitive);
    IRBuilder<> builder(behind(at));
    const auto operands = [&](unsigned count) {
      SmallVector<Value*, 3> list;
      for (unsigned i = 0; i < count; ++i) list.push_back(at.getArgOperand(i));
      return list;
    };
    switch (at.getIntrinsicID()) {
      case Intrinsic::fma:
      case Intrinsic::fmuladd:
        return compute(builder, at, Op::kFma, operands(3));
      case Intrinsic::copysign:
        // copysign(0, x): what is too small, as a zero.
        if (const auto* size = dyn_cast<ConstantFP>(at.getArgOperand(0));
            size != nullptr && size->isZero())
          return convert(at, {Op::kRound, 1});
        return compute(builder, at, Op::kFunction, operands(2));
      case Intrinsic::maxnum:
      case Intrinsic::maximum:
        return compute(builder, at, Op::kMaximum, operands(2));
      case Intrinsic::minnum:
      case Intrinsic::minimum:
        return compute(builder, at, Op::kMinimum, operands(2));
      default:
        if (is_number_or_vector(at.getType()) && at.arg_size() <= 3) {
          SmallVector<Value*, 3> numbers;
          for (Value* argument : at.args())
            if (is_number_or_vector(argument->getType()) && argument->getType() == at.getType())
              numbers.push_back(argument);
          if (!numbers.empty()) compute(builder, at, Op::kFunction, numbers);
        }
    }
  }

  void convert(CallBase& at, const Primitive& is) {
    Value* const from = at.getArgOperand(is.operand);
    if (is_zero(label_of(from))) return;
    IRBuilder<> builder(behind(at));
    // What was rounded is the number of the bits itself, to within the type's precision.
    Value* const result = is.by_bits ? number(builder, from) : number(builder, &at);
    x_labels[&at] = call(builder, value_callouts::kConvert, x_label,
                         {as_pointer(builder, x_sites.site(at, is.op, nullptr)), label_of(from),
                          result, builder.getInt32(bytes_of(at.getType()))});
  }

  void visit_collective(CallBase& at) {
    {
      IRBuilder<> builder(&at);
      call(builder, value_callouts::kOffer, builder.getVoidTy(),
           {label_of(at.getArgOperand(2)), at.getArgOperand(2)});
    }
    IRBuilder<> builder(behind(at));
    x_labels[&at] =
        call(builder, value_callouts::kReceive, x_label,
             {as_pointer(builder, x_sites.site(at, Op::kLoad, nullptr)), at.getArgOperand(0), &at});
  }

  Function& x_function;
  Module& x_module;
  LLVMContext& x_context;
  const DataLayout& x_layout;
  const DominatorTree& x_dominators;
  const LoopInfo& x_loops;
  ValueSites x_sites;
  IntegerType *x_label, *x_bits;
  PointerType* x_pointer;
  DenseSet<const Value*> x_may, x_original;
  DenseMap<const Value*, Value*> x_labels;
  DenseMap<const PHINode*, PHINode*> x_plain;  // the label before it is looked at
  bool x_changed = false;
};

}  // namespace

bool is_primitive(const Function& function) {
  const StringRef name = function.getName();
  return primitive_of(name).has_value() || is_collective(name) || is_fma(name);
}

bool watch_values(Function& function, const DominatorTree& dominators, const LoopInfo& loops) {
  return Watcher(function, dominators, loops).run();
}

}  // namespace attn_diag::instrument
