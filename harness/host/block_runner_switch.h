// The switch from one thread of a block to another, inlined where threads wait.
#pragma once

#include <bit>

#include "attn_diag_host/indices.h"
#include "harness/host/block_runner.h"
#include "harness/host/sanitizer.h"

namespace attn_diag::host {

inline std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

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
  if (next == nullptr) next = next_poller();
  if (next == nullptr && release_joins()) next = next_thread();
  if (next == nullptr) report_stuck();
  switch_to(*next);
}

__attribute__((always_inline)) inline Fiber& BlockRunner::arrive(Wait wait, const char* file,
                                                                 int line, std::uintptr_t pc,
                                                                 std::uintptr_t frame) {
  Fiber& fiber = *x_current;
  fiber.file = file;
  fiber.line = line;
  fiber.wait = wait;
  if (is_lockstep()) [[unlikely]]
    note_position(fiber, pc, frame);
  if (++x_steps > x_step_limit) [[unlikely]]
    report_step_limit();
  return fiber;
}

__attribute__((always_inline)) inline void BlockRunner::wait_for_others(Fiber& fiber) {
  const unsigned thread = fiber.index.linear;
  std::uint64_t& word = x_runnable[thread / 64];
  word &= ~(1ull << (thread % 64));
  // Usually the next thread is the neighbour. Asking so, instead of searching, lets the processor predict
  // the answer: each switch would otherwise wait for the search before it.
  if (x_kind == ScheduleKind::kForward && (word >> (thread % 64) & 2u) != 0) [[likely]]
    switch_between(fiber, (&fiber)[1]);
  else
    switch_to_next_or_report();
}

// In lockstep, the lanes that stand here go on together, after all that they did before.
inline void BlockRunner::step_together(std::uintptr_t pc, std::uintptr_t frame) {
  if (!is_lockstep()) return;
  note_position(*x_current, pc, frame);
  switch_to(*next_lockstep());
}

}  // namespace attn_diag::host
