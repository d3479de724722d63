// Barriers, mbarrier, control flow and what has no effect here.
#include <fmt/format.h>

#include "harness/toolchain/source/ptx_emitter.h"

namespace attn_diag::source {
namespace {

void barrier(PtxEmitter& e) {
  if (e.take("cluster"))
    e.unsupported("clusters: the host executor runs every block alone; build with --backend cuda");
  e.take("cta");
  if (e.take("warp")) {  // bar.warp.sync mask
    e.take("sync");
    e.end_of_modifiers();
    e.expect_operands(1, 1);
    return e.run(fmt::format("::__syncwarp({}, {})", e.get("std::uint32_t", 0), e.place()));
  }
  if (e.take("red")) {
    const std::string operation = e.take_any({"popc", "and", "or"});
    e.take("aligned");
    e.take_any({"u32", "pred"});
    e.end_of_modifiers();
    e.expect_operands(3, 3);
    if (e.operand(1).text != "0") e.unsupported("of another barrier than 0, or with a count");
    const char* function = operation == "popc"  ? "__syncthreads_count"
                           : operation == "and" ? "__syncthreads_and"
                                                : "__syncthreads_or";
    const std::string call = fmt::format("::{}({}, {})", function, e.get("bool", 2), e.place());
    return e.set(0, operation == "popc" ? call : call + " != 0");
  }
  const bool arrive = e.take("arrive");
  if (!arrive && !e.take("sync")) e.unsupported();
  e.take("aligned");
  e.end_of_modifiers();
  e.expect_operands(arrive ? 2 : 1, 2);
  e.run(fmt::format("::attn_diag::host::named_barrier_{}({}, {}, {})", arrive ? "arrive" : "sync",
                    e.get("std::uint32_t", 0), e.count() > 1 ? e.get("std::uint32_t", 1) : "0u",
                    e.place()));
}

// The order and scope of mbarrier operations, which are all as strong as can be here.
void take_scope(PtxEmitter& e) {
  e.take_any({"relaxed", "release", "acquire"});
  e.take_any({"cta", "cluster"});
}

std::string barrier_at(PtxEmitter& e, std::size_t i, const std::string& space) {
  return fmt::format("static_cast<std::uint64_t*>({})", e.pointer(i, space));
}

void mbarrier_wait(PtxEmitter& e) {
  const bool parity = e.take("parity");
  take_scope(e);
  const std::string space = e.take_space();
  e.take("b64");
  e.end_of_modifiers();
  e.expect_operands(3, 4);  // try_wait may have a time limit
  e.set(0, parity ? fmt::format("::attn_diag::host::mbarrier_test_wait_parity({}, {}, {})",
                                barrier_at(e, 1, space), e.get("std::uint32_t", 2), e.place())
                  : fmt::format("::attn_diag::host::mbarrier_test_wait({}, {}, {})",
                                barrier_at(e, 1, space), e.get("std::uint64_t", 2), e.place()));
}

void mbarrier_arrive(PtxEmitter& e) {
  const bool drop = e.take("arrive_drop");
  if (!drop) e.take("arrive");
  const bool expect = e.take("expect_tx");
  if (e.take("noComplete")) e.unsupported("the modifier .noComplete");
  if (drop && expect) e.unsupported();
  take_scope(e);
  const std::string space = e.take_space();
  e.take("b64");
  e.end_of_modifiers();
  // The state is not given for an mbarrier of another block.
  const bool returns = e.operand(0).kind != PtxOperand::Kind::kAddress;
  const std::size_t at = returns ? 1 : 0;
  e.expect_operands(at + (expect ? 2 : 1), at + 2);
  const std::string count = e.count() > at + 1 ? e.get("std::uint32_t", at + 1) : "1u";
  const char* function = expect ? "mbarrier_arrive_expect_tx"
                         : drop ? "mbarrier_arrive_drop"
                                : "mbarrier_arrive";
  const std::string call = fmt::format("::attn_diag::host::{}({}, {}, {})", function,
                                       barrier_at(e, at, space), count, e.place());
  if (returns)
    e.set(0, call);
  else
    e.run(call);
}

void mbarrier(PtxEmitter& e) {
  if (e.take("test_wait") || e.take("try_wait")) return mbarrier_wait(e);
  if (e.take("pending_count")) {
    e.take("b64");
    e.end_of_modifiers();
    e.expect_operands(2, 2);
    return e.set(
        0, fmt::format("::attn_diag::host::mbarrier_pending_count({})", e.get("std::uint64_t", 1)));
  }
  const bool init = e.take("init"), inval = e.take("inval");
  const std::string& opcode = e.instruction().opcode;
  if (!init && !inval && opcode.find("arrive") != std::string::npos) return mbarrier_arrive(e);
  const std::string bytes = init || inval ? "" : e.take_any({"expect_tx", "complete_tx"});
  if (!init && !inval && bytes.empty()) e.unsupported();
  take_scope(e);
  const std::string space = e.take_space();
  e.take("b64");
  e.end_of_modifiers();
  e.expect_operands(inval ? 1 : 2, inval ? 1 : 2);
  const std::string name = init ? "init" : inval ? "inval" : bytes;
  e.run(fmt::format("::attn_diag::host::mbarrier_{}({}{}, {})", name, barrier_at(e, 0, space),
                    inval ? "" : ", " + e.get("std::uint32_t", 1), e.place()));
}

void branch(PtxEmitter& e) {
  e.take("uni");
  e.end_of_modifiers();
  e.expect_operands(1, 1);
  e.run("goto " + e.variable(e.operand(0)));
}

void trap(PtxEmitter& e) { e.run("::__trap()"); }
void breakpoint(PtxEmitter& e) { e.run("::__brkpt()"); }

void sleep(PtxEmitter& e) {
  e.take("u32");
  e.end_of_modifiers();
  e.run(fmt::format("::attn_diag::host::give_way({})", e.place()));
}

void leave(PtxEmitter& e) {
  e.unsupported("ends the thread from within assembly: write return in the kernel");
}

// The products themselves are refused; what orders them has nothing to order then.
void wgmma(PtxEmitter& e) {
  const std::string part = e.take_any({"fence", "commit_group", "wait_group"});
  if (!part.empty()) {
    e.take("sync");
    e.take("aligned");
    e.end_of_modifiers();
    e.expect_operands(part == "wait_group" ? 1 : 0, part == "wait_group" ? 1 : 0);
    return;
  }
  e.unsupported(
      "warpgroup matrix products are not run on the host: give the kernel a path with mma.sync or "
      "wmma for it (#if defined(ATTN_DIAG_HOST_EXECUTOR)), or build with --backend cuda");
}
void tcgen05(PtxEmitter& e) {
  e.unsupported(
      "tensor memory of sm_100 is not run on the host: give the kernel a path with mma.sync or "
      "wmma for it (#if defined(ATTN_DIAG_HOST_EXECUTOR)), or build with --backend cuda");
}

}  // namespace

const PtxTranslators& ptx_synchronisation() {
  static const PtxTranslators kTable = {
      {"bar", barrier},        {"barrier", barrier}, {"mbarrier", mbarrier},
      {"bra", branch},         {"trap", trap},       {"brkpt", breakpoint},
      {"nanosleep", sleep},    {"exit", leave},      {"ret", leave},
      {"wgmma", wgmma},        {"tcgen05", tcgen05}, {"griddepcontrol", nothing},
      {"setmaxnreg", nothing}, {"pmevent", nothing}};
  return kTable;
}

}  // namespace attn_diag::source
