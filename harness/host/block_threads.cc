#include "harness/host/block_threads.h"

namespace attn_diag::host {

thread_local constinit BlockThreads* BlockThreads::s_running = nullptr;

void BlockThreads::renew(unsigned thread) {
  FiberStack& stack = x_stack[thread];
  const std::size_t bytes = stack.top - stack.bottom;
  forget_poison(stack.bottom, bytes);
  stack.sanitizer_stack = nullptr;
  x_fibers[thread].context = make_context(stack.top, bytes, x_fiber_main);
}

void BlockThreads::begin_launch(const LaunchPlan& plan, void (*fiber_main)()) {
  const dim3 shape = plan.config.blockDim;
  x_plan = &plan;
  x_fiber_main = fiber_main;
  x_step_limit = plan.step_limit;
  x_threads = shape.x * shape.y * shape.z;
  x_words = (x_threads + 63) / 64;
  for (; x_made < x_threads; ++x_made) {
    x_stack[x_made] = x_stacks.allocate();
    renew(x_made);
  }
  if (shape.x == x_indexed_for.x && shape.y == x_indexed_for.y && shape.z == x_indexed_for.z)
    return;
  x_indexed_for = dim3(0, 0, 0);
  for (unsigned t = 0; t < x_threads; ++t)
    x_fibers[t].index = {{t % shape.x, t / shape.x % shape.y, t / shape.x / shape.y}, t};
  x_indexed_for = shape;
}

void BlockThreads::begin_block() {
  for (unsigned w = 0; w < x_words; ++w) {
    const unsigned bits = x_threads - w * 64;
    x_alive[w] = x_runnable[w] = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  }
  for (unsigned t = 0; t < x_threads; ++t) {
    x_fibers[t].file = nullptr;
    x_fibers[t].wait = Wait::kNone;
  }
  x_live = x_threads;
  x_steps = 0;
}

void BlockThreads::enter_block(Fiber& first) {
  x_current = &first;
  threadIdx = first.index;
  const FiberStack& stack = x_stack[first.index.linear];
  leaving_stack(&x_worker_sanitizer_stack, stack.bottom, stack.top - stack.bottom);
  x_from_worker = true;
  switch_context(x_worker, first.context);
  arrived_on_stack(x_worker_sanitizer_stack);
}

void BlockThreads::leave_block(bool for_good) {
  Fiber& from = *x_current;
  leaving_stack(for_good ? nullptr : &x_stack[from.index.linear].sanitizer_stack,
                reinterpret_cast<std::uintptr_t>(x_worker_stack_bottom), x_worker_stack_bytes);
  switch_context(from.context, x_worker);
  s_running->arrived_on_fiber();
}

}  // namespace attn_diag::host
