// Switching between the stacks of fibers.
//
// On x86-64 this is a few instructions of our own, inlined; elsewhere Boost.Context's jump_fcontext.
// jump_fcontext is called but never returns to its caller, so that the processor's return stack is off
// by one and every return of the fiber that resumes is mispredicted, and it saves and restores the
// floating-point control words: 50 ns for a barrier instead of 6 (docs/benchmarks.md). A kernel that
// changes the rounding mode therefore changes it for its whole worker.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && defined(__ELF__) && !defined(ATTN_DIAG_HOST_BOOST_CONTEXT)
#define ATTN_DIAG_HOST_OWN_SWITCH 1
#else
#define ATTN_DIAG_HOST_OWN_SWITCH 0
#include <boost/context/detail/fcontext.hpp>
#endif

namespace attn_diag::host {

#if ATTN_DIAG_HOST_OWN_SWITCH

// Where a parked stack goes on: its stack pointer, at which the address to jump to lies.
struct Context {
  void* stack_pointer = nullptr;
};

inline const void* stack_of(const Context& parked) { return parked.stack_pointer; }

inline Context make_context(std::uintptr_t stack_top, std::size_t, void (*entry)()) {
  auto* top = reinterpret_cast<void**>(stack_top / 16 * 16);
  *--top = nullptr;  // keeps the entry's stack aligned as if it had been called, ...
  *--top = nullptr;  // ... with no caller: the end of a backtrace
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  return {top};
}

// Pushes: its callers must be compiled with -mno-red-zone.
__attribute__((always_inline)) inline void switch_context(Context& from, const Context& to) {
  Context* save = &from;
  void* resume = to.stack_pointer;
  asm volatile(
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%%rdi)\n\t"
      "movq %%rsi, %%rsp\n\t"
      "popq %%rax\n\t"
      "jmp *%%rax\n"
      "1:\tpopq %%rbp"
      : "+D"(save), "+S"(resume)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15",
#if defined(__AVX512F__)
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6",
        "k7",
#endif
        "cc", "memory");
}

#else

struct Context {
  boost::context::detail::fcontext_t resume = nullptr;
  void (*entry)() = nullptr;
};

inline const void* stack_of(const Context& parked) { return parked.resume; }

inline void arrived(const boost::context::detail::transfer_t& from) {
  static_cast<Context*>(from.data)->resume = from.fctx;
}

// The first switch into a context brings the address of its entry in g_entry.
inline thread_local void (*g_entry)() = nullptr;

inline Context make_context(std::uintptr_t stack_top, std::size_t stack_bytes, void (*entry)()) {
  const auto start = [](boost::context::detail::transfer_t from) {
    arrived(from);
    g_entry();
  };
  return {
      boost::context::detail::make_fcontext(reinterpret_cast<void*>(stack_top), stack_bytes, start),
      entry};
}

inline void switch_context(Context& from, const Context& to) {
  g_entry = to.entry;
  arrived(boost::context::detail::jump_fcontext(to.resume, &from));
}

#endif

}  // namespace attn_diag::host
