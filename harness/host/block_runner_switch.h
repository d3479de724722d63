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
  arrived_on_stack(x_stack[x_current->index.linear].sanitizer_stack, &bottom, &bytes);
  if (x_from_worker) {
    x_worker_stack_bottom = bottom;
    x_worker_stack_bytes = bytes;
  }
  x_from_worker = false;
#endif
}

__attribute__((always_inline)) inline void BlockRunner::switch_between(Fiber& from, Fiber& to) {
  x_current = &to;
  threadIdx = to.index;
#if defined(ATTN_DIAG_HOST_ASAN)
  const FiberStack& stack = x_stack[to.index.linear];
  leaving_stack(&x_stack[from.index.linear].sanitizer_stack, stack.bottom,
                stack.top - stack.bottom);
#endif
  switch_context(from.context, to.context);
  s_current->arrived_on_fiber();
}

inline void BlockRunner::switch_to(Fiber& to) {
  if (&to != x_current) switch_between(*x_current, to);
}

inline void BlockRunner::leave_block(bool for_good) {
  Fiber& from = *x_current;
  leaving_stack(for_good ? nullptr : &x_stack[from.index.linear].sanitizer_stack,
                reinterpret_cast<std::uintptr_t>(x_worker_stack_bottom), x_worker_stack_bytes);
  switch_context(from.context, x_worker);
  s_current->arrived_on_fiber();
}

inline void BlockRunner::note_position(const Fiber& fiber, std::uintptr_t pc,
                                       std::uintptr_t frame) {
  Position& position = x_position[fiber.index.linear];
  position.pc = pc;
  position.depth = static_cast<std::uint32_t>(x_stack[fiber.index.linear].top - frame);
}

inline void BlockRunner::switch_to_next_or_report() {
  Fiber* next = next_thread();
  if (next == nullptr) report_stuck();
  switch_to(*next);
}

}  // namespace attn_diag::host
