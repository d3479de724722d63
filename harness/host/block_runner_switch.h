// The switch from one thread of a block to another, inlined where threads wait.
#pragma once

#include <bit>

#include "attn_diag_host/indices.h"
#include "harness/host/block_runner.h"
#include "harness/host/sanitizer.h"

namespace attn_diag::host {

inline void BlockRunner::arrived_on_fiber() {
#if defined(ATTN_DIAG_HOST_ASAN)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  arrived_on_stack(x_stack[x_current->thread].sanitizer_stack, &bottom, &bytes);
  if (x_from_worker) {
    x_worker_stack_bottom = bottom;
    x_worker_stack_bytes = bytes;
  }
  x_from_worker = false;
#endif
}

__attribute__((always_inline)) inline void BlockRunner::switch_to(Fiber& to) {
  Fiber& from = *x_current;
  if (&from == &to) return;
  x_current = &to;
  threadIdx = to.index;
#if defined(ATTN_DIAG_HOST_ASAN)
  const FiberStack& stack = x_stack[to.thread];
  leaving_stack(&x_stack[from.thread].sanitizer_stack, stack.bottom, stack.top - stack.bottom);
#endif
  switch_context(from.context, to.context);
  s_current->arrived_on_fiber();
}

inline void BlockRunner::leave_block(bool for_good) {
  Fiber& from = *x_current;
  leaving_stack(for_good ? nullptr : &x_stack[from.thread].sanitizer_stack,
                reinterpret_cast<std::uintptr_t>(x_worker_stack_bottom), x_worker_stack_bytes);
  switch_context(from.context, x_worker);
  s_current->arrived_on_fiber();
}

// The usual case of next_thread: the next higher runnable thread of the same 64.
__attribute__((always_inline)) inline void BlockRunner::switch_to_next_or_report() {
  const unsigned at = x_current->thread;
  const std::uint64_t above = x_runnable[at / 64] & (~0ull << (at % 64) << 1);
  if (x_kind == ScheduleKind::kForward && above != 0) {
    switch_to(x_fibers[at / 64 * 64 + static_cast<unsigned>(std::countr_zero(above))]);
    return;
  }
  Fiber* next = next_thread();
  if (next == nullptr) report_stuck();
  switch_to(*next);
}

}  // namespace attn_diag::host
