#include "harness/toolchain/source/ptx_emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace attn_diag::source {

using Kind = PtxOperand::Kind;

std::string ptx_type(std::string_view name) {
  static const std::map<std::string_view, std::string> kTypes = {
      {"u8", "std::uint8_t"},
      {"u16", "std::uint16_t"},
      {"u32", "std::uint32_t"},
      {"u64", "std::uint64_t"},
      {"b8", "std::uint8_t"},
      {"b16", "std::uint16_t"},
      {"b32", "std::uint32_t"},
      {"b64", "std::uint64_t"},
      {"s8", "std::int8_t"},
      {"s16", "std::int16_t"},
      {"s32", "std::int32_t"},
      {"s64", "std::int64_t"},
      {"f16", "attn_diag_ptx::F16"},
      {"bf16", "attn_diag_ptx::Bf16"},
      {"f32", "float"},
      {"f64", "double"},
      {"f16x2", "attn_diag_ptx::F16x2"},
      {"bf16x2", "attn_diag_ptx::Bf16x2"},
      {"pred", "bool"}};
  const auto found = kTypes.find(name);
  return found == kTypes.end() ? "" : found->second;
}

std::string ptx_special_register(const std::string& name) {
  static const std::map<std::string, std::string> kRegisters = {
      {"%tid.x", "threadIdx.x"},
      {"%tid.y", "threadIdx.y"},
      {"%tid.z", "threadIdx.z"},
      {"%ntid.x", "blockDim.x"},
      {"%ntid.y", "blockDim.y"},
      {"%ntid.z", "blockDim.z"},
      {"%ctaid.x", "blockIdx.x"},
      {"%ctaid.y", "blockIdx.y"},
      {"%ctaid.z", "blockIdx.z"},
      {"%nctaid.x", "gridDim.x"},
      {"%nctaid.y", "gridDim.y"},
      {"%nctaid.z", "gridDim.z"},
      {"%laneid", "lane()"},
      {"%warpid", "warp()"},
      {"%nwarpid", "warps()"},
      {"%smid", "0u"},
      {"%nsmid", "1u"},
      {"%lanemask_eq", "(1u << lane())"},
      {"%lanemask_lt", "((1u << lane()) - 1u)"},
      {"%lanemask_le", "(~0u >> (31u - lane()))"},
      {"%lanemask_gt", "(~1u << lane())"},
      {"%lanemask_ge", "(~0u << lane())"},
      {"%clock", "static_cast<std::uint32_t>(clock())"},
      {"%clock64", "clock()"},
      {"%clock_hi", "static_cast<std::uint32_t>(clock() >> 32)"},
      {"%globaltimer", "clock()"},
      {"%globaltimer_lo", "static_cast<std::uint32_t>(clock())"},
      {"%globaltimer_hi", "static_cast<std::uint32_t>(clock() >> 32)"},
      // A launch without clusters has clusters of one block.
      {"%cluster_ctarank", "0u"},
      {"%cluster_nctarank", "1u"},
      {"%cluster_ctaid.x", "0u"},
      {"%cluster_ctaid.y", "0u"},
      {"%cluster_ctaid.z", "0u"},
      {"%clusterid.x", "blockIdx.x"},
      {"%clusterid.y", "blockIdx.y"},
      {"%clusterid.z", "blockIdx.z"}};
  const auto found = kRegisters.find(name);
  if (found == kRegisters.end()) return "";
  std::string expression = found->second;
  for (const char* function : {"lane()", "warp()", "warps()", "clock()"})
    if (const std::size_t at = expression.find(function); at != std::string::npos)
      expression.insert(at, "attn_diag_ptx::");
  return expression;
}

PtxEmitter::PtxEmitter(const PtxInstruction& instruction,
                       std::function<const PtxVariable*(const std::string&)> find,
                       const std::vector<PtxVariable>& operands, std::string place)
    : x_instruction(instruction),
      x_modifiers(instruction.modifiers),
      x_find(std::move(find)),
      x_operands(operands),
      x_place(std::move(place)) {}

void PtxEmitter::fail(const std::string& message) const {
  throw PtxProblem{x_instruction.at, message};
}

void PtxEmitter::unsupported(const std::string& advice) const {
  fail(
      fmt::format("unsupported: {}{}{}", x_instruction.opcode, advice.empty() ? "" : ": ", advice));
}

const PtxOperand& PtxEmitter::operand(std::size_t i) const {
  if (i >= count())
    fail(fmt::format("PTX: {} has only {} operands", x_instruction.opcode, count()));
  return x_instruction.operands[i];
}

bool PtxEmitter::take(std::string_view modifier) {
  const auto found = std::find(x_modifiers.begin(), x_modifiers.end(), modifier);
  if (found == x_modifiers.end()) return false;
  x_modifiers.erase(found);
  return true;
}

std::string PtxEmitter::take_any(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers)
    if (take(modifier)) return std::string(modifier);
  return "";
}

std::string PtxEmitter::take_prefix(std::string_view prefix) {
  for (const std::string& modifier : x_modifiers) {
    if (!modifier.starts_with(prefix)) continue;
    const std::string taken = modifier;
    take(taken);
    return taken;
  }
  return "";
}

std::string PtxEmitter::take_type() {
  for (const std::string& modifier : x_modifiers) {
    const std::string type = ptx_type(modifier);
    if (type.empty()) continue;
    take(std::string(modifier));
    return type;
  }
  unsupported("its type is not one that the host executor computes with");
}

std::string PtxEmitter::take_space() {
  for (const char* shared : {"shared", "shared::cta", "shared::cluster"})
    if (take(shared)) return "shared";
  if (take("global")) return "global";
  for (const char* other : {"param", "const", "local", "tex"})
    if (take(other)) unsupported("of this state space there is nothing on the host");
  return "";
}

void PtxEmitter::end_of_modifiers() const {
  if (!x_modifiers.empty())
    unsupported(fmt::format("the modifier .{} is not understood here", x_modifiers.front()));
}

void PtxEmitter::expect_operands(std::size_t least, std::size_t most) const {
  if (count() < least || count() > most)
    fail(least == most ? fmt::format("PTX: {} takes {} operands, not {}", x_instruction.opcode,
                                     least, count())
                       : fmt::format("PTX: {} takes {} to {} operands, not {}",
                                     x_instruction.opcode, least, most, count()));
}

std::string PtxEmitter::immediate(const std::string& text) const {
  const bool minus = text.starts_with("-");
  std::string number = minus ? text.substr(1) : text;
  if (number.starts_with("0f") || number.starts_with("0F"))
    return fmt::format("std::uint32_t{{0x{}u}}", number.substr(2));
  if (number.starts_with("0d") || number.starts_with("0D"))
    return fmt::format("std::uint64_t{{0x{}ull}}", number.substr(2));
  const bool hexadecimal = number.starts_with("0x") || number.starts_with("0X");
  if (!hexadecimal && number.find_first_of(".eE") != std::string::npos) return text;
  if (number.ends_with("U") || number.ends_with("u")) number.pop_back();
  if (number.find_first_not_of("0123456789abcdefABCDEFxX") != std::string::npos)
    fail(fmt::format("PTX: '{}' is not a number", text));
  return fmt::format("({}std::int64_t({}ull))", minus ? "-" : "", number);
}

std::string PtxEmitter::variable(const PtxOperand& operand) const {
  if (operand.kind == Kind::kNumbered) {
    if (operand.number < 0 || operand.number >= static_cast<int>(x_operands.size()))
      fail(fmt::format("PTX: there is no operand %{}: the statement has {}", operand.number,
                       x_operands.size()));
    return x_operands[static_cast<std::size_t>(operand.number)].name;
  }
  if (operand.kind == Kind::kName) {
    const std::string name = operand.text.starts_with("%") ? operand.text.substr(1) : operand.text;
    if (const PtxVariable* found = x_find(name)) return found->name;
    fail(
        fmt::format("PTX: '{}' is not declared: expected a register of .reg, an operand such as "
                    "%0, or a special register",
                    operand.text));
  }
  fail(fmt::format("PTX: {} needs a register here", x_instruction.opcode));
}

bool PtxEmitter::is_predicate(std::size_t i) const {
  const PtxVariable* found = operand(i).kind == Kind::kName ? x_find(operand(i).text) : nullptr;
  return found != nullptr && found->is_predicate;
}

std::string PtxEmitter::value(const std::string& type, const PtxOperand& operand) const {
  std::string source;
  if (operand.kind == Kind::kImmediate) source = immediate(operand.text);
  if (operand.kind == Kind::kName && operand.text.starts_with("%"))
    source = ptx_special_register(operand.text);
  if (operand.kind == Kind::kVector) {
    source = "attn_diag_ptx::pack(";
    for (std::size_t i = 0; i < operand.parts.size(); ++i)
      source += (i > 0 ? ", " : "") + variable(operand.parts[i]);
    source += ")";
  }
  if (source.empty()) source = variable(operand);
  const std::string expression = fmt::format("attn_diag_ptx::get<{}>({})", type, source);
  return operand.negated ? "!" + expression : expression;
}

void PtxEmitter::set(const PtxOperand& to, const std::string& expression) {
  if (to.kind == Kind::kSink) {
    run(fmt::format("static_cast<void>({})", expression));
  } else if (to.kind == Kind::kVector) {
    const std::string whole = fresh("whole");
    run(fmt::format("const auto {} = {}", whole, expression));
    for (std::size_t i = 0; i < to.parts.size(); ++i)
      if (to.parts[i].kind != Kind::kSink)
        run(fmt::format("attn_diag_ptx::unpack({}, {}, {})", variable(to.parts[i]), whole, i));
  } else {
    run(fmt::format("attn_diag_ptx::set({}, {})", variable(to), expression));
  }
}

std::string PtxEmitter::pointer(std::size_t i, std::string_view space) const {
  const PtxOperand& address = operand(i);
  if (address.kind != Kind::kAddress)
    fail(fmt::format("PTX: operand {} of {} must be an address in brackets", i + 1,
                     x_instruction.opcode));
  std::string offset = address.text.empty() ? "0" : immediate(address.text);
  if (address.parts.size() > 1) offset = value("std::int64_t", address.parts[1]);
  const PtxOperand& base = address.parts[0];
  if (base.kind == Kind::kImmediate)
    fail(fmt::format("PTX: {} of a constant address", x_instruction.opcode));
  const std::string_view function = space == "shared"   ? "shared_memory"
                                    : space == "matrix" ? "matrix_memory"
                                                        : "memory";
  return fmt::format("attn_diag_ptx::{}({}, {}, {})", function, variable(base), offset, x_place);
}

std::string PtxEmitter::fresh(const std::string& stem) {
  return fmt::format("attn_diag_{}{}", stem, x_fresh++);
}

std::string PtxEmitter::emit() {
  PtxTranslator translator = nullptr;
  for (const PtxTranslators* table : {&ptx_arithmetic(), &ptx_bits(), &ptx_conversions(),
                                      &ptx_memory(), &ptx_synchronisation(), &ptx_warp()}) {
    const auto found = table->find(x_instruction.root);
    if (found != table->end()) translator = found->second;
  }
  if (translator == nullptr)
    unsupported("the host executor has no such instruction; build with --backend cuda to run it");
  translator(*this);
  std::string guard;
  if (!x_instruction.guard.empty()) {
    PtxOperand predicate;
    predicate.text = x_instruction.guard;
    if (x_instruction.guard.starts_with("%") && x_instruction.guard.size() > 1 &&
        std::isdigit(static_cast<unsigned char>(x_instruction.guard[1])) != 0) {
      predicate.kind = Kind::kNumbered;
      predicate.number = std::atoi(x_instruction.guard.c_str() + 1);
    }
    guard = fmt::format("if ({}{}) ", x_instruction.guard_negated ? "!" : "", variable(predicate));
  }
  return guard + "{ " + x_code + "} ";
}

}  // namespace attn_diag::source
