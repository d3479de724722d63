// Bits, moves and conversions of PTX.
#include <fmt/format.h>

#include "harness/toolchain/source/ptx_emitter.h"

namespace attn_diag::source {
namespace {

void move(PtxEmitter& e) {
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(2, 2);
  e.set(0, e.get(type, 1));
}

void logic(PtxEmitter& e) {
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(3, 3);
  const std::string& root = e.instruction().root;
  const bool predicate = type == "bool";
  const char* op = root == "and"  ? (predicate ? "&&" : "&")
                   : root == "or" ? (predicate ? "||" : "|")
                                  : (predicate ? "!=" : "^");
  e.set(0, fmt::format("static_cast<{}>({} {} {})", type, e.get(type, 1), op, e.get(type, 2)));
}

void complement(PtxEmitter& e) {
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(2, 2);
  const bool logical = type == "bool" || e.instruction().root == "cnot";
  e.set(0, fmt::format("static_cast<{}>({}{})", type, logical ? "!" : "~", e.get(type, 1)));
}

void shift(PtxEmitter& e) {
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(3, 3);
  e.set(0, fmt::format("attn_diag_ptx::{}({}, {})", e.instruction().root, e.get(type, 1),
                       e.get("std::uint32_t", 2)));
}

void funnel_shift(PtxEmitter& e) {  // shf.l.wrap.b32
  const std::string direction = e.take_any({"l", "r"});
  const std::string mode = e.take_any({"wrap", "clamp"});
  e.take("b32");
  e.end_of_modifiers();
  e.expect_operands(4, 4);
  e.set(0,
        fmt::format("attn_diag_ptx::shf_{}({}, {}, {}, {})", direction, e.get("std::uint32_t", 1),
                    e.get("std::uint32_t", 2), e.get("std::uint32_t", 3), mode == "clamp"));
}

// The first operand has the instruction's type, the others are of 32 bits: bfe, brev, clz, popc.
void bit_function(PtxEmitter& e) {
  const std::string type = e.take_type();
  e.end_of_modifiers();
  std::string arguments = e.get(type, 1);
  for (std::size_t i = 2; i < e.count(); ++i) arguments += ", " + e.get("std::uint32_t", i);
  e.set(0, fmt::format("attn_diag_ptx::{}({})", e.instruction().root, arguments));
}

void insert_bits(PtxEmitter& e) {  // bfi
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(5, 5);
  e.set(0, fmt::format("attn_diag_ptx::bfi({}, {}, {}, {})", e.get(type, 1), e.get(type, 2),
                       e.get("std::uint32_t", 3), e.get("std::uint32_t", 4)));
}

void permute(PtxEmitter& e) {
  e.take("b32");
  if (!e.take_any({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}).empty()) e.unsupported("its mode");
  e.end_of_modifiers();
  e.expect_operands(4, 4);
  e.set(0, fmt::format("attn_diag_ptx::prmt({}, {}, {})", e.get("std::uint32_t", 1),
                       e.get("std::uint32_t", 2), e.get("std::uint32_t", 3)));
}

void three_inputs(PtxEmitter& e) {  // lop3.b32 d, a, b, c, table
  e.take("b32");
  e.end_of_modifiers();
  e.expect_operands(5, 5);
  e.set(0, fmt::format("attn_diag_ptx::lop3({}, {}, {}, {})", e.get("std::uint32_t", 1),
                       e.get("std::uint32_t", 2), e.get("std::uint32_t", 3),
                       e.get("std::uint32_t", 4)));
}

// cvta.to.shared.u64 d, a: the 32-bit address; cvta.shared.u64 d, a: the pointer.
void convert_address(PtxEmitter& e) {
  const bool to = e.take("to");
  const std::string space = e.take_space();
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(2, 2);
  if (space == "shared" && to)
    e.set(0, fmt::format("static_cast<{}>(attn_diag_ptx::to_shared({}, {}))", type,
                         e.get("std::uint64_t", 1), e.place()));
  else if (space == "shared")
    e.set(0, fmt::format("static_cast<{}>(attn_diag_ptx::from_shared({}, {}))", type,
                         e.get("std::uint32_t", 1), e.place()));
  else
    e.set(0, e.get(type, 1));
}

std::string take_conversion_rounding(PtxEmitter& e) {
  const std::string mode = e.take_any({"rni", "rzi", "rmi", "rpi", "rna", "rn", "rz", "rm", "rp"});
  if (mode.starts_with("rz")) return "attn_diag_ptx::Rounding::kZero";
  if (mode.starts_with("rm")) return "attn_diag_ptx::Rounding::kDown";
  if (mode.starts_with("rp")) return "attn_diag_ptx::Rounding::kUp";
  if (mode == "rna") return "attn_diag_ptx::Rounding::kAway";
  return "attn_diag_ptx::Rounding::kNearest";
}

void convert(PtxEmitter& e) {
  const std::vector<std::string>& modifiers = e.instruction().modifiers;
  const bool integral = e.instruction().opcode.find("i.") != std::string::npos;
  const bool to_nearest_integer = integral && modifiers.size() >= 3 &&
                                  (modifiers[0] == "rni" || modifiers[0] == "rzi" ||
                                   modifiers[0] == "rmi" || modifiers[0] == "rpi");
  const std::string rounding = take_conversion_rounding(e);
  const bool flush = e.take("ftz"), saturate = e.take("sat"), finite = e.take("satfinite");
  const bool relu = e.take("relu");
  const auto finish = [&](std::string result) {
    if (relu) result = fmt::format("attn_diag_ptx::relu({})", result);
    e.set(0, result);
  };
  // A pair of 8-bit floating-point numbers.
  const std::string small = e.take_any({"e4m3x2", "e5m2x2"});
  if (!small.empty()) {
    const std::string format = small == "e4m3x2" ? "attn_diag_ptx::E4M3" : "attn_diag_ptx::E5M2";
    const bool from_small = modifiers.back() == small;
    const std::string other = e.take_type();
    e.end_of_modifiers();
    if (from_small) {
      e.expect_operands(2, 2);
      return finish(
          fmt::format("attn_diag_ptx::pair_from_fp8<{}>({})", format, e.get("std::uint16_t", 1)));
    }
    if (relu) e.unsupported("the modifier .relu");
    const bool two = other == "float";
    e.expect_operands(two ? 3 : 2, two ? 3 : 2);
    return e.set(
        0, two ? fmt::format("attn_diag_ptx::fp8_from_floats<{}>({}, {})", format,
                             e.get("float", 1), e.get("float", 2))
               : fmt::format("attn_diag_ptx::fp8_from_pair<{}>({})", format, e.get(other, 1)));
  }
  if (e.take("tf32")) {
    e.take("f32");
    e.end_of_modifiers();
    e.expect_operands(2, 2);
    return e.set(0, fmt::format("attn_diag_ptx::tf32<{}>({})", rounding, e.get("float", 1)));
  }
  const std::string to = e.take_type(), from = e.take_type();
  e.end_of_modifiers();
  if (to == "attn_diag_ptx::F16x2" || to == "attn_diag_ptx::Bf16x2") {
    e.expect_operands(3, 3);  // the first is the upper half
    return finish(fmt::format("attn_diag_ptx::pair<{}, {}>({}, {}, {})", to, rounding,
                              e.get("float", 1), e.get("float", 2), finite));
  }
  e.expect_operands(2, 2);
  std::string value = e.get(from, 1);
  if (flush) value = fmt::format("attn_diag_ptx::flush({})", value);
  if (to_nearest_integer)
    value = fmt::format("attn_diag_ptx::to_integral<{}>({})", rounding, value);
  std::string result = fmt::format("attn_diag_ptx::convert<{}, {}>({})", to, rounding, value);
  if (saturate)
    result = fmt::format("attn_diag_ptx::convert_saturated<{}, {}>({})", to, rounding, value);
  if (finite) result = fmt::format("attn_diag_ptx::finite({})", result);
  if (flush && to == "float") result = fmt::format("attn_diag_ptx::flush({})", result);
  finish(result);
}

}  // namespace

const PtxTranslators& ptx_bits() {
  static const PtxTranslators kTable = {
      {"mov", move},          {"and", logic},           {"or", logic},
      {"xor", logic},         {"not", complement},      {"cnot", complement},
      {"shl", shift},         {"shr", shift},           {"shf", funnel_shift},
      {"bfe", bit_function},  {"brev", bit_function},   {"clz", bit_function},
      {"popc", bit_function}, {"bfi", insert_bits},     {"prmt", permute},
      {"lop3", three_inputs}, {"cvta", convert_address}};
  return kTable;
}

const PtxTranslators& ptx_conversions() {
  static const PtxTranslators kTable = {{"cvt", convert}};
  return kTable;
}

}  // namespace attn_diag::source
