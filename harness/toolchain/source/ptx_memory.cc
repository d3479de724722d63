// Loads, stores, atomics, asynchronous copies and fences of PTX.
#include <fmt/format.h>

#include "harness/toolchain/source/ptx_emitter.h"

namespace attn_diag::source {
namespace {

// Hints that do not change what is read or written.
void take_cache_hints(PtxEmitter& e) {
  e.take_any({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  while (!e.take_prefix("L1::").empty() || !e.take_prefix("L2::").empty()) {
  }
}

// Whether the access is one that another thread's may meet: volatile, or of the memory model.
bool take_order(PtxEmitter& e) {
  const bool is_volatile = e.take("volatile");
  const bool in_model = !e.take_any({"relaxed", "acquire", "release", "acq_rel"}).empty();
  e.take("weak");
  e.take_any({"cta", "cluster", "gpu", "sys"});
  e.take("mmio");
  return is_volatile || in_model;
}

int take_width(PtxEmitter& e) {
  if (e.take("v2")) return 2;
  if (e.take("v4")) return 4;
  if (e.take("v8")) return 8;
  return 1;
}

// The parts of a vector operand, or the operand alone.
std::vector<PtxOperand> parts_of(const PtxEmitter& e, std::size_t i, int width) {
  const PtxOperand& operand = e.operand(i);
  if (width == 1) return {operand};
  if (operand.kind != PtxOperand::Kind::kVector || static_cast<int>(operand.parts.size()) != width)
    e.fail(fmt::format("PTX: {} needs {} registers in braces", e.instruction().opcode, width));
  return operand.parts;
}

void load(PtxEmitter& e) {
  const bool hinted = e.take("L2::cache_hint");
  take_cache_hints(e);
  e.take("nc");
  const bool ordered = take_order(e);
  const std::string space = e.take_space();
  const int width = take_width(e);
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(hinted ? 3 : 2, hinted ? 3 : 2);
  const std::string loaded = e.fresh("loaded");
  e.run(fmt::format("const auto {} = attn_diag_ptx::{}<{}, {}>({}{})", loaded,
                    ordered ? "load_ordered" : "load", type, width, e.pointer(1, space),
                    ordered ? ", " + e.place() : ""));
  const std::vector<PtxOperand> parts = parts_of(e, 0, width);
  for (std::size_t i = 0; i < parts.size(); ++i)
    e.set(parts[i], fmt::format("{}.value[{}]", loaded, i));
}

void store(PtxEmitter& e) {
  const bool hinted = e.take("L2::cache_hint");
  take_cache_hints(e);
  const bool ordered = take_order(e);
  if (e.take("async")) e.unsupported("stores to other blocks' shared memory need clusters");
  const std::string space = e.take_space();
  const int width = take_width(e);
  const std::string type = e.take_type();
  e.end_of_modifiers();
  e.expect_operands(hinted ? 3 : 2, hinted ? 3 : 2);
  std::string values;
  for (const PtxOperand& part : parts_of(e, 1, width))
    values += (values.empty() ? "" : ", ") + e.value(type, part);
  e.run(fmt::format("attn_diag_ptx::{}<{}, {}>({}, {{{{{}}}}})",
                    ordered ? "store_ordered" : "store", type, width, e.pointer(0, space), values));
}

void atomic(PtxEmitter& e) {
  const bool returns = e.instruction().root == "atom";
  const bool hinted = e.take("L2::cache_hint");
  take_order(e);
  e.take("noftz");
  e.take("async");
  const std::string space = e.take_space();
  const std::string operation =
      e.take_any({"add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"});
  if (operation.empty()) e.unsupported("its operation");
  const std::string type = e.take_type();
  e.end_of_modifiers();
  const std::size_t address = returns ? 1 : 0;
  const std::size_t operands = address + 2 + (operation == "cas" ? 1 : 0) + (hinted ? 1 : 0);
  e.expect_operands(operands, operands);
  std::string values = e.get(type, address + 1);
  if (operation == "cas") values += ", " + e.get(type, address + 2);
  const std::string call =
      fmt::format("attn_diag_ptx::atomic_{}({}, {})", operation, e.pointer(address, space), values);
  if (returns)
    e.set(0, call);
  else
    e.run(call);
}

void copy_bulk(PtxEmitter& e) {
  if (e.take("tensor"))
    e.unsupported(
        "tensor copies (TMA) are not run on the host: copy with cp.async or plain loads there, or "
        "build with --backend cuda");
  e.unsupported(
      "bulk copies are not run on the host: copy with cp.async (16 bytes) there, or build with "
      "--backend cuda");
}

void copy_async(PtxEmitter& e) {
  if (!e.take("async")) e.unsupported();
  if (e.take("bulk")) return copy_bulk(e);
  if (e.take("commit_group")) {
    e.end_of_modifiers();
    return e.run("::attn_diag::host::async_commit()");
  }
  if (e.take("wait_all")) {
    e.end_of_modifiers();
    return e.run("::attn_diag::host::async_commit(), ::attn_diag::host::async_wait(0)");
  }
  if (e.take("wait_group")) {
    e.end_of_modifiers();
    e.expect_operands(1, 1);
    return e.run(fmt::format("::attn_diag::host::async_wait({})", e.get("std::uint64_t", 0)));
  }
  if (e.take("mbarrier")) {
    if (!e.take("arrive")) e.unsupported();
    const bool noinc = e.take("noinc");
    const std::string space = e.take_space();
    e.take("b64");
    e.end_of_modifiers();
    return e.run(fmt::format(
        "::attn_diag::host::cp_async_mbarrier_arrive(static_cast<std::uint64_t*>({}), {}, {})",
        e.pointer(0, space), noinc, e.place()));
  }
  const std::string cache = e.take_any({"ca", "cg"});
  const bool hinted = e.take("L2::cache_hint");
  while (!e.take_prefix("L2::").empty()) {
  }
  const std::string to = e.take_space(), from = e.take_space();
  e.end_of_modifiers();
  if (cache.empty() || to != "shared" || from != "global")
    e.unsupported("expected cp.async.ca.shared.global or cp.async.cg.shared.global");
  e.expect_operands(hinted ? 4 : 3, hinted ? 5 : 4);
  const std::string& size = e.operand(2).text;
  const bool is_number = !size.empty() && size.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && size != "16" && (cache == "cg" || (size != "4" && size != "8")))
    e.fail(cache == "cg" ? "cp.async.cg copies 16 bytes, not " + size
                         : "cp.async.ca copies 4, 8 or 16 bytes, not " + size);
  const std::string bytes = e.get("std::uint64_t", 2);
  const std::size_t sources = e.count() - (hinted ? 1 : 0);
  std::string source_bytes = bytes;
  if (sources == 4 && e.is_predicate(3))  // whether the source is to be ignored
    source_bytes = fmt::format("{} ? 0u : {}", e.get("bool", 3), bytes);
  else if (sources == 4)
    source_bytes = e.get("std::uint32_t", 3);
  e.run(fmt::format("attn_diag_ptx::cp_async({}, {}, {}, {}, {}, {})", e.pointer(0, "shared"),
                    e.pointer(1, "global"), bytes, source_bytes, cache == "cg", e.place()));
}

void fence(PtxEmitter& e) { e.run("::__threadfence()"); }

void is_space(PtxEmitter& e) {
  const std::string space = e.take_space();
  e.take_any({"u64", "u32"});
  e.end_of_modifiers();
  e.expect_operands(2, 2);
  if (space.empty()) e.unsupported("of this state space there is nothing on the host");
  e.set(0, fmt::format("attn_diag_ptx::is_{}({})", space, e.get("std::uint64_t", 1)));
}

void create_policy(PtxEmitter& e) { e.set(0, "std::uint64_t{0}"); }

void map_address(PtxEmitter& e) {  // mapa: without clusters every block is rank 0 of its own
  e.unsupported("shared memory of other blocks needs clusters, which the host executor has not");
}

}  // namespace

const PtxTranslators& ptx_memory() {
  static const PtxTranslators kTable = {{"ld", load},
                                        {"ldu", load},
                                        {"st", store},
                                        {"atom", atomic},
                                        {"red", atomic},
                                        {"cp", copy_async},
                                        {"prefetch", nothing},
                                        {"prefetchu", nothing},
                                        {"applypriority", nothing},
                                        {"fence", fence},
                                        {"membar", fence},
                                        {"isspacep", is_space},
                                        {"createpolicy", create_policy},
                                        {"mapa", map_address}};
  return kTable;
}

}  // namespace attn_diag::source
