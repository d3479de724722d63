// Accesses that end a process, as findings: the signal handler leaves the block, as the watchdog does, and
// what happened is put into words where memory may be allocated again.
#include <execinfo.h>
#include <signal.h>

#include <algorithm>
#include <atomic>

#include "attn_diag/harness/host/faults.h"
#include "attn_diag/harness/host/symbolizer.h"
#include "harness/host/block_runner.h"
#include "harness/host/once_per_process.h"
#include "harness/host/operand_address.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

constexpr std::uintptr_t kNullPages = 64 * 1024;
constexpr std::uintptr_t kVector = 16, kWidest = 64;  // bytes: of a GPU's loads, and of the host's
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

std::atomic<bool> g_wanted{false};
struct sigaction g_before[NSIG];
KernelLibrary g_executor;

void handle(int signal, siginfo_t* info, void* context) {
  if (BlockRunner* const runner = BlockRunner::current())
    runner->leave_after_fault(signal, *info, context);
  // Not a kernel's: as if nobody had looked.
  sigaction(signal, &g_before[signal], nullptr);
}

void install_handlers() {
  static OncePerProcess s_once;
  s_once.call([] {
    g_executor = find_library(reinterpret_cast<const void*>(&install_handlers));
    void* warm_up[1];
    backtrace(warm_up, 1);  // loads what it needs, which must not happen in a handler
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (const int signal : kSignals) install_handler(signal, action, g_before[signal]);
  });
}

}  // namespace

void make_faults_findings() {
#if !defined(ATTN_DIAG_HOST_ASAN)
  g_wanted = true;
#endif
}

void BlockRunner::prepare_for_faults() {
#if !defined(ATTN_DIAG_HOST_ASAN)
  x_keeps_faults = g_wanted || x_check != nullptr;
  install_handlers();
#endif
}

// In a signal handler. The kernel's own code can be left, and what it calls directly: other code may hold
// locks.
void BlockRunner::leave_after_fault(int signal, const siginfo_t& info, const void* context) {
  // A general protection fault: the processor does not say where. The report of a crash would not either.
  const bool is_general = signal == SIGSEGV && info.si_code == SI_KERNEL;
  if ((!x_keeps_faults && !is_general) || !x_running) return;
  const Interrupted at(context);
  const KernelLibrary& library = x_plan->library;
  std::uintptr_t in_kernel = at.program_counter() + 1;  // as a return address
  if (!library.has_code_at(at.program_counter())) {
    constexpr int kMost = 24;
    void* frames[kMost];
    const int n = backtrace(frames, kMost);
    const auto frame = [&](int i) { return reinterpret_cast<std::uintptr_t>(frames[i]); };
    int first = 0;
    while (first < n && frame(first) != at.program_counter()) ++first;
    int kernel = first;
    int foreign = 0;
    for (; kernel < n && !library.has_code_at(frame(kernel)); ++kernel)
      if (!g_executor.has_code_at(frame(kernel))) ++foreign;
    if (kernel >= n || foreign > 1) return;
    in_kernel = frame(kernel);
  }
  x_fault = Fault{};
  x_fault.signal = signal;
  x_fault.pc = in_kernel;
  x_fault.address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  if (is_general) {
    const auto operand = operand_address(context);
    x_fault.address = operand.value_or(0);
    x_fault.is_misaligned = operand && *operand >> 47 == 0 && *operand % kWidest != 0;
    x_fault.is_unknown = !x_fault.is_misaligned;
  }
  leave_for_good();
}

// What lies at an address, for a sentence that begins "accesses ".
std::string BlockRunner::place_text(const Fault& fault) const {
  const std::uintptr_t at = fault.address;
  if (fault.is_unknown) return "memory at an address that cannot be one, or is misaligned";
  const std::string address_text = concat("address 0x", std::hex, at);
  if (fault.is_misaligned) {
    const std::uintptr_t multiple = at % kVector != 0 ? kVector : kWidest;
    return concat("a vector at the misaligned ", address_text, ", ", at % multiple,
                  " bytes past a multiple of ", multiple);
  }
  if (at < kNullPages) return concat("a null pointer (", address_text, ')');
  const FiberStack& stack = x_stack[x_current->index.linear];
  if (at < stack.bottom && stack.bottom - at <= FiberStacks::kBytes)
    return concat("memory below its stack: the stack overflowed (", FiberStacks::kBytes / 1024,
                  " KiB are here, a GPU has less)");
  if (x_memory.dynamic().is_near(at)) {
    const auto offset = static_cast<std::int64_t>(at - address(x_memory.dynamic().data()));
    return offset < 0
               ? concat("memory ", -offset, " bytes before dynamic shared memory")
               : concat("memory ", offset - static_cast<std::int64_t>(x_memory.dynamic().bytes()),
                        " bytes past the end of dynamic shared memory, which has ",
                        x_memory.dynamic().bytes(), " bytes");
  }
  return concat(address_text, ", where there is no memory");
}

void BlockRunner::record_fault() {
  const Fault fault = std::exchange(x_fault, Fault{});
  const unsigned thread = x_current->index.linear;
  if (fault.signal == SIGFPE || fault.signal == SIGILL)
    return record_at(LaunchFindingKind::kTrap,
                     fault.signal == SIGFPE ? "divides an integer by zero" : "executes a trap",
                     "See what led there", fault.pc);
  const std::string text = "accesses " + place_text(fault);
  const char* const advice =
      fault.is_misaligned
          ? "Vector loads and stores need addresses that are multiples of their size"
          : "Check the pointer, and the index against the size of the array";
  if (x_check != nullptr)
    x_check->fault(thread, fault.address, fault.is_misaligned, text, advice, fault.pc);
  else
    record_at(LaunchFindingKind::kIllegalAddress, text, advice, fault.pc);
}

// A finding whose line is that of a call, or of the instruction before `pc`.
void BlockRunner::record_at(LaunchFindingKind kind, const std::string& what, const char* advice,
                            std::uintptr_t pc) {
  const KernelLibrary& library = x_plan->library;
  const std::uint64_t offset = pc - library.base;
  SourceLines lines = find_source_lines(library.path, {offset});
  const std::vector<SourcePlace> places = users_places(lines.places[offset]);
  const std::string text = concat(thread_name(*x_current), ' ', what);
  if (places.empty())
    record(kind, concat(text, " at ", library.path, "+0x", std::hex, offset - 1), advice, nullptr,
           0);
  else
    record(kind, concat(text, " at ", places[0].file, ':', places[0].line), advice,
           places[0].file.c_str(), places[0].line);
}

void BlockRunner::report_local_atomic(std::uintptr_t pc) {
  x_fault = Fault{};
  x_fault.local_atomic = true;
  x_fault.pc = pc;
  leave_for_good();
}

void BlockRunner::record_what_ended_block() {
  if (x_fault.pc == 0) return;
  if (x_fault.local_atomic) {
    const Fault fault = std::exchange(x_fault, Fault{});
    return record_at(
        LaunchFindingKind::kAtomicMisuse, "makes an atomic operation on a variable of its own",
        "Atomic operations need global or shared memory: on a thread's local memory they "
        "are undefined, and end a launch on a GPU",
        fault.pc);
  }
  record_fault();
}

}  // namespace attn_diag::host
