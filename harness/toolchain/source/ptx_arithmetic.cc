// Arithmetic of PTX: integers, f32, f64, f16, bf16 and pairs.
#include <fmt/format.h>

#include "harness/toolchain/source/ptx_emitter.h"

namespace attn_diag::source {
namespace {

bool is_float_type(const std::string& type) {
  return type == "float" || type == "double" || type.starts_with("attn_diag_ptx::");
}

// The rounding of an operation; PTX's default is to nearest even.
std::string take_rounding(PtxEmitter& e) {
  const std::string mode = e.take_any({"rn", "rz", "rm", "rp"});
  return "attn_diag_ptx::Rounding::k" + std::string(mode == "rz"   ? "Zero"
                                                    : mode == "rm" ? "Down"
                                                    : mode == "rp" ? "Up"
                                                                   : "Nearest");
}

// op<Rounding>(a, b, ...) with subnormals flushed and results saturated as the modifiers say.
void float_operation(PtxEmitter& e, const std::string& name, std::size_t inputs) {
  const bool flush = e.take("ftz"), saturate = e.take("sat"), relu = e.take("relu");
  const std::string rounding = take_rounding(e);
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(inputs + 1, inputs + 1);
  std::string arguments;
  for (std::size_t i = 1; i <= inputs; ++i) {
    const std::string value = e.get(type, i);
    arguments +=
        (i > 1 ? ", " : "") + (flush ? fmt::format("attn_diag_ptx::flush({})", value) : value);
  }
  std::string result = fmt::format("attn_diag_ptx::{}<{}>({})", name, rounding, arguments);
  if (flush) result = fmt::format("attn_diag_ptx::flush({})", result);
  if (saturate) result = fmt::format("attn_diag_ptx::saturate({})", result);
  if (relu) result = fmt::format("attn_diag_ptx::relu({})", result);
  e.set(0, result);
}

bool next_is_float(PtxEmitter& e) {
  for (const std::string& modifier : e.instruction().modifiers)
    if (is_float_type(ptx_type(modifier))) return true;
  return false;
}

void integer_operation(PtxEmitter& e, const std::string& name, std::size_t inputs) {
  const bool saturate = e.take("sat");
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(inputs + 1, inputs + 1);
  std::string arguments;
  for (std::size_t i = 1; i <= inputs; ++i) arguments += (i > 1 ? ", " : "") + e.get(type, i);
  e.set(0, fmt::format("attn_diag_ptx::{}{}({})", name, saturate ? "_saturated" : "", arguments));
}

void add_or_sub(PtxEmitter& e) {
  if (e.take("cc")) e.unsupported("carries between instructions are not kept; use 64-bit integers");
  if (next_is_float(e))
    float_operation(e, e.instruction().root, 2);
  else
    integer_operation(e, e.instruction().root, 2);
}

void multiply(PtxEmitter& e) {
  if (next_is_float(e)) return float_operation(e, "mul", 2);
  const std::string part = e.take_any({"lo", "hi", "wide"});
  if (part.empty()) e.fail("PTX: mul of integers needs .lo, .hi or .wide");
  integer_operation(e, "mul_" + part, 2);
}

void multiply_add(PtxEmitter& e) {
  if (next_is_float(e)) return float_operation(e, "fma", 3);
  const std::string part = e.take_any({"lo", "hi", "wide"});
  if (part.empty() || e.take("cc")) e.unsupported("expected mad.lo, mad.hi or mad.wide");
  const bool saturate = e.take("sat");
  if (saturate) e.unsupported("saturated products");
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(4, 4);
  const std::string product =
      fmt::format("attn_diag_ptx::mul_{}({}, {})", part, e.get(type, 1), e.get(type, 2));
  const std::string sum_type = part == "wide" ? fmt::format("decltype({})", product) : type;
  e.set(0, fmt::format("attn_diag_ptx::add({}, {})", product, e.get(sum_type, 3)));
}

void fused(PtxEmitter& e) { float_operation(e, "fma", 3); }

void divide(PtxEmitter& e) {
  e.take_any({"approx", "full"});
  if (next_is_float(e)) return float_operation(e, "div", 2);
  integer_operation(e, "div", 2);
}
void remainder(PtxEmitter& e) { integer_operation(e, "rem", 2); }

void smaller_or_larger(PtxEmitter& e) {
  const bool flush = e.take("ftz"), nan = e.take("NaN");
  if (e.take("xorsign")) e.unsupported("the modifier .xorsign.abs");
  const bool relu = e.take("relu");
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(3, 3);
  std::string result = fmt::format("attn_diag_ptx::{}{}({}, {})", e.instruction().root,
                                   nan ? "_nan" : "", e.get(type, 1), e.get(type, 2));
  if (flush) result = fmt::format("attn_diag_ptx::flush({})", result);
  if (relu) result = fmt::format("attn_diag_ptx::relu({})", result);
  e.set(0, result);
}

void unary(PtxEmitter& e) {
  const bool flush = e.take("ftz");
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(2, 2);
  std::string result =
      fmt::format("attn_diag_ptx::{}_of({})", e.instruction().root, e.get(type, 1));
  if (flush) result = fmt::format("attn_diag_ptx::flush({})", result);
  e.set(0, result);
}

// ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh: the nearest value, where hardware is allowed to be off.
void special_function(PtxEmitter& e) {
  e.take("approx");
  float_operation(e, e.instruction().root, 1);
}

void compare(PtxEmitter& e) {
  const bool flush = e.take("ftz");
  const std::string comparison =
      e.take_any({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu",
                  "leu", "gtu", "geu", "num", "nan"});
  if (comparison.empty()) e.unsupported("its comparison");
  const std::string combine = e.take_any({"and", "or", "xor"});
  const bool is_set = e.instruction().root == "set";
  const std::string result_type = is_set ? e.take_type() : "";
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(combine.empty() ? 3 : 4, combine.empty() ? 3 : 4);
  const auto side = [&](std::size_t i) {
    return flush ? fmt::format("attn_diag_ptx::flush({})", e.get(type, i)) : e.get(type, i);
  };
  const std::string holds =
      fmt::format("attn_diag_ptx::compare_{}({}, {})", comparison, side(1), side(2));
  const auto combined = [&](const std::string& value) {
    if (combine.empty()) return value;
    const char* op = combine == "and" ? "&&" : combine == "or" ? "||" : "!=";
    return fmt::format("(({}) {} ({}))", value, op, e.get("bool", 3));
  };
  if (is_set)
    return e.set(0, fmt::format("attn_diag_ptx::set_value<{}>({})", result_type, combined(holds)));
  const PtxOperand& to = e.operand(0);
  if (to.kind != PtxOperand::Kind::kPair) return e.set(0, combined(holds));
  const std::string first = e.fresh("holds"), second = e.fresh("fails");
  e.run(fmt::format("const bool {} = {}, {} = {}", first, combined(holds), second,
                    combined("!" + holds)));
  e.set(to.parts[0], first);
  e.set(to.parts[1], second);
}

void select(PtxEmitter& e) {
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(4, 4);
  e.set(0, fmt::format("{} ? {} : {}", e.get("bool", 3), e.get(type, 1), e.get(type, 2)));
}

void dot_product(PtxEmitter& e) {  // dp4a.u32.s32
  const std::string a = e.take_type(), b = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(4, 4);
  const std::string sum = a == "std::int32_t" ? a : b;
  e.set(0, fmt::format("attn_diag_ptx::dp4a({}, {}, {})", e.get(a, 1), e.get(b, 2), e.get(sum, 3)));
}

}  // namespace

const PtxTranslators& ptx_arithmetic() {
  static const PtxTranslators kTable = {{"add", add_or_sub},
                                        {"sub", add_or_sub},
                                        {"mul", multiply},
                                        {"mad", multiply_add},
                                        {"fma", fused},
                                        {"div", divide},
                                        {"rem", remainder},
                                        {"min", smaller_or_larger},
                                        {"max", smaller_or_larger},
                                        {"neg", unary},
                                        {"abs", unary},
                                        {"ex2", special_function},
                                        {"lg2", special_function},
                                        {"rcp", special_function},
                                        {"rsqrt", special_function},
                                        {"sqrt", special_function},
                                        {"sin", special_function},
                                        {"cos", special_function},
                                        {"tanh", special_function},
                                        {"setp", compare},
                                        {"set", compare},
                                        {"selp", select},
                                        {"dp4a", dot_product}};
  return kTable;
}

}  // namespace attn_diag::source
