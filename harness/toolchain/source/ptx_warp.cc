// What the lanes of a warp do together: shuffles, votes, matrices.
#include <fmt/format.h>

#include "harness/toolchain/source/ptx_emitter.h"

namespace attn_diag::source {
namespace {

void shuffle(PtxEmitter& e) {
  if (!e.take("sync")) e.unsupported("shuffles name their lanes since sm_70: shfl.sync");
  const std::string mode = e.take_any({"idx", "up", "down", "bfly"});
  e.take("b32");
  e.end_of_modifiers();
  e.expect_operands(5, 5);
  const PtxOperand& to = e.operand(0);
  const bool pair = to.kind == PtxOperand::Kind::kPair;
  const std::string result = e.fresh("shuffled");
  e.run(fmt::format("const auto {} = attn_diag_ptx::shfl_{}({}, {}, {}, {}, {})", result, mode,
                    e.get("std::uint32_t", 1), e.get("std::uint32_t", 2), e.get("std::uint32_t", 3),
                    e.get("std::uint32_t", 4), e.place()));
  e.set(pair ? to.parts[0] : to, result + ".value");
  if (pair) e.set(to.parts[1], result + ".in_range");
}

void vote(PtxEmitter& e) {
  if (!e.take("sync")) e.unsupported("votes name their lanes since sm_70: vote.sync");
  const std::string mode = e.take_any({"all", "any", "uni", "ballot"});
  e.take_any({"pred", "b32"});
  e.end_of_modifiers();
  e.expect_operands(3, 3);
  e.set(0, fmt::format("attn_diag_ptx::vote_{}({}, {}, {})", mode, e.get("bool", 1),
                       e.get("std::uint32_t", 2), e.place()));
}

void match(PtxEmitter& e) {
  const std::string mode = e.take_any({"any", "all"});
  e.take("sync");
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(3, 3);
  if (mode == "any")
    return e.set(0, fmt::format("::__match_any_sync({}, {}, {})", e.get("std::uint32_t", 2),
                                e.get(type, 1), e.place()));
  const PtxOperand& to = e.operand(0);
  const bool pair = to.kind == PtxOperand::Kind::kPair;
  const std::string equal = e.fresh("equal"), lanes = e.fresh("lanes");
  e.run(fmt::format("int {} = 0", equal));
  e.run(fmt::format("const auto {} = ::__match_all_sync({}, {}, &{}, {})", lanes,
                    e.get("std::uint32_t", 2), e.get(type, 1), equal, e.place()));
  e.set(pair ? to.parts[0] : to, lanes);
  if (pair) e.set(to.parts[1], equal + " != 0");
}

void reduce(PtxEmitter& e) {
  e.take("sync");
  const std::string operation = e.take_any({"add", "min", "max", "and", "or", "xor"});
  std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(3, 3);
  e.set(0, fmt::format("::__reduce_{}_sync({}, {}, {})", operation, e.get("std::uint32_t", 2),
                       e.get(type, 1), e.place()));
}

void active(PtxEmitter& e) {
  e.take("b32");
  e.end_of_modifiers();
  e.set(0, "::__activemask()");
}

void elect(PtxEmitter& e) {
  e.take("sync");
  e.end_of_modifiers();
  e.expect_operands(2, 2);
  const PtxOperand& to = e.operand(0);
  if (to.kind != PtxOperand::Kind::kPair) e.fail("PTX: elect.sync gives a pair: lane|predicate");
  const std::string leader = e.fresh("leader");
  e.run(fmt::format("const std::uint32_t {} = attn_diag_ptx::elect({}, {})", leader,
                    e.get("std::uint32_t", 1), e.place()));
  e.set(to.parts[0], leader);
  e.set(to.parts[1], leader + " == attn_diag_ptx::lane()");
}

// What ldmatrix and stmatrix say of the matrices and of where they lie.
struct MatrixAccess {
  bool transposed;
  int count;
  std::string space;
};

MatrixAccess take_matrix_access(PtxEmitter& e) {
  e.take("sync");
  e.take("aligned");
  MatrixAccess access;
  access.transposed = e.take("trans");
  const std::string count = e.take_any({"x1", "x2", "x4"});
  if (!e.take("m8n8") || !e.take("b16") || count.empty())
    e.unsupported("expected .m8n8, .x1, .x2 or .x4, and .b16");
  access.count = count[1] - '0';
  access.space = e.take_space();
  if (access.space.empty()) access.space = "matrix";  // shared memory, by an address of either size
  e.end_of_modifiers();
  e.expect_operands(2, 2);
  return access;
}

// The registers of {a, b}, or of a register alone.
std::vector<PtxOperand> registers(PtxEmitter& e, std::size_t i, std::size_t count) {
  const PtxOperand& operand = e.operand(i);
  std::vector<PtxOperand> parts = operand.parts;
  if (operand.kind != PtxOperand::Kind::kVector) parts = {operand};
  if (parts.size() != count)
    e.fail(fmt::format("PTX: operand {} of {} has {} registers, not {}", i + 1,
                       e.instruction().opcode, count, parts.size()));
  return parts;
}

void load_matrix(PtxEmitter& e) {
  const auto [transposed, count, space] = take_matrix_access(e);
  const std::string loaded = e.fresh("loaded");
  e.run(fmt::format("std::uint32_t {}[{}]", loaded, count));
  e.run(fmt::format("::attn_diag::host::ldmatrix({}, {}, {}, {}, {})", loaded, count, transposed,
                    e.pointer(1, space), e.place()));
  const std::vector<PtxOperand> to = registers(e, 0, static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < to.size(); ++i) e.set(to[i], fmt::format("{}[{}]", loaded, i));
}

// `const std::uint32_t name[] = {...}` of an operand's registers.
std::string array_of(PtxEmitter& e, std::size_t i, std::size_t count, const std::string& stem) {
  const std::string name = e.fresh(stem);
  std::string values;
  for (const PtxOperand& part : registers(e, i, count))
    values += (values.empty() ? "" : ", ") + e.value("std::uint32_t", part);
  e.run(fmt::format("const std::uint32_t {}[] = {{{}}}", name, values));
  return name;
}

void store_matrix(PtxEmitter& e) {
  const auto [transposed, count, space] = take_matrix_access(e);
  const std::string stored = array_of(e, 1, static_cast<std::size_t>(count), "stored");
  e.run(fmt::format("::attn_diag::host::stmatrix({}, {}, {}, {}, {})", e.pointer(0, space), stored,
                    count, transposed, e.place()));
}

void transpose_matrix(PtxEmitter& e) {
  for (const char* needed : {"sync", "aligned", "m8n8", "trans", "b16"})
    if (!e.take(needed)) e.unsupported("expected movmatrix.sync.aligned.m8n8.trans.b16");
  e.end_of_modifiers();
  e.expect_operands(2, 2);
  e.set(0, fmt::format("attn_diag_ptx::movmatrix({}, {})", e.get("std::uint32_t", 1), e.place()));
}

void multiply_matrices(PtxEmitter& e) {
  e.take("sync");
  e.take("aligned");
  const std::string shape = e.take_any({"m16n8k16", "m16n8k8", "m16n8k4"});
  const bool rows = e.take("row") && e.take("col");
  const std::vector<std::string>& modifiers = e.instruction().modifiers;
  const std::size_t n = modifiers.size();
  const std::string d = n < 4 ? "" : modifiers[n - 4], a = n < 4 ? "" : modifiers[n - 3],
                    b = n < 4 ? "" : modifiers[n - 2], c = n < 4 ? "" : modifiers[n - 1];
  const bool accumulators = (d == "f32" || d == "f16") && (c == "f32" || c == "f16");
  const bool inputs = a == b && (a == "f16" || a == "bf16" || a == "tf32");
  const bool fits = a == "tf32" ? shape == "m16n8k8" || shape == "m16n8k4"
                                : shape == "m16n8k16" || shape == "m16n8k8";
  if (!rows || !accumulators || !inputs || !fits)
    e.unsupported(
        "the host executor multiplies m16n8k16 and m16n8k8 of f16 and bf16, m16n8k8 and m16n8k4 of "
        "tf32, as .row.col, with f32 or f16 sums");
  e.expect_operands(4, 4);
  const bool large = shape == "m16n8k16" || (shape == "m16n8k8" && a == "tf32");
  const auto registers_of = [](const std::string& type) { return type == "f32" ? 4u : 2u; };
  const std::string left = array_of(e, 1, large ? 4 : 2, "a");
  const std::string right = array_of(e, 2, large ? 2 : 1, "b");
  const std::string sum = array_of(e, 3, registers_of(c), "c");
  const std::string result = e.fresh("d");
  e.run(fmt::format("std::uint32_t {}[{}]", result, registers_of(d)));
  const char* kind = a == "f16" ? "kF16" : a == "bf16" ? "kBf16" : "kTf32";
  e.run(fmt::format(
      "::attn_diag::host::mma_sync({{::attn_diag::host::MmaShape::kM16N8K{}, "
      "::attn_diag::host::MmaInput::{}, {}, {}}}, {}, {}, {}, {}, {})",
      shape.substr(6), kind, c == "f16", d == "f16", result, left, right, sum, e.place()));
  const std::vector<PtxOperand> to = registers(e, 0, registers_of(d));
  for (std::size_t i = 0; i < to.size(); ++i) e.set(to[i], fmt::format("{}[{}]", result, i));
}

void wmma(PtxEmitter& e) {
  e.unsupported("use nvcuda::wmma of <mma.h>, which the host executor runs, or mma.sync");
}

}  // namespace

const PtxTranslators& ptx_warp() {
  static const PtxTranslators kTable = {{"shfl", shuffle},
                                        {"vote", vote},
                                        {"match", match},
                                        {"redux", reduce},
                                        {"activemask", active},
                                        {"elect", elect},
                                        {"ldmatrix", load_matrix},
                                        {"stmatrix", store_matrix},
                                        {"movmatrix", transpose_matrix},
                                        {"mma", multiply_matrices},
                                        {"wmma", wmma}};
  return kTable;
}

}  // namespace attn_diag::source
