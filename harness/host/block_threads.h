// The threads of a block as fibers: which there are, which can run, which one runs. The lowest part of
// what a block's other parts share (block_context.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "attn_diag_host/indices.h"
#include "harness/host/check/block_checker.h"
#include "harness/host/fiber.h"
#include "harness/host/launch_plan.h"
#include "harness/host/sanitizer.h"

namespace attn_diag::host {

inline constexpr unsigned kMaxThreads = 1024;
inline constexpr unsigned kWarpSize = 32;

inline std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

class __attribute__((visibility("hidden"))) BlockThreads {
 public:
  BlockThreads(const BlockThreads&) = delete;
  BlockThreads& operator=(const BlockThreads&) = delete;

  // The block that the calling thread runs, or null. To be asked anew after a switch, which keeps no
  // registers.
  static BlockThreads* running() { return s_running; }

  const LaunchPlan& plan() const { return *x_plan; }
  BlockChecker* check() const { return x_check; }  // null: this launch is not checked
  unsigned threads() const { return x_threads; }   // of the block
  unsigned live() const { return x_live; }         // that have not exited
  unsigned words() const { return x_words; }       // of its bit sets
  Fiber& current() const { return *x_current; }
  unsigned current_thread() const { return x_current->index.linear; }
  Fiber& fiber(unsigned thread) const { return x_fibers[thread]; }
  Fiber* lanes_of(unsigned warp) const { return &x_fibers[warp * kWarpSize]; }
  const FiberStack& stack(unsigned thread) const { return x_stack[thread]; }
  // Whether the address is on the stack of the thread, or of the one that runs.
  bool is_of(unsigned thread, std::uintptr_t at) const {
    const FiberStack& stack = x_stack[thread];
    return at - stack.bottom < stack.top - stack.bottom;
  }
  bool is_own(std::uintptr_t at) const { return is_of(x_current->index.linear, at); }

  std::uint32_t runnable_lanes(unsigned warp) const {
    return static_cast<std::uint32_t>(x_runnable[warp / 2] >> (warp % 2 * 32));
  }
  bool is_runnable(unsigned thread) const {
    return (x_runnable[thread / 64] >> (thread % 64) & 1u) != 0;
  }
  void clear_runnable(unsigned thread) { x_runnable[thread / 64] &= ~(1ull << (thread % 64)); }
  void let_go_on(unsigned thread) { x_runnable[thread / 64] |= 1ull << (thread % 64); }
  void let_lanes_go_on(unsigned warp, std::uint32_t lanes) {
    x_runnable[warp / 2] |= std::uint64_t{lanes} << (warp % 2 * 32);
  }
  void let_word_go_on(unsigned word, std::uint64_t threads) { x_runnable[word] |= threads; }
  void let_all_go_on() {
    for (unsigned w = 0; w < x_words; ++w) x_runnable[w] = x_alive[w];
  }
  void stop_all() {
    for (unsigned w = 0; w < x_words; ++w) x_runnable[w] = 0;
  }
  void count_step() { ++x_steps; }

 protected:
  BlockThreads() = default;
  ~BlockThreads() = default;

  void begin_launch(const LaunchPlan& plan, void (*fiber_main)());
  void begin_block();
  // A new fiber on the thread's old stack.
  void renew(unsigned thread);

  // From the worker to the first thread; returns when a thread leaves the block.
  void enter_block(Fiber& first);
  void leave_block(bool for_good);
  void switch_between(Fiber& from, Fiber& to);
  void arrived_on_fiber();

  static thread_local constinit BlockThreads* s_running __attribute__((tls_model("initial-exec")));

  const LaunchPlan* x_plan = nullptr;
  BlockChecker* x_check = nullptr;
  Fiber* x_current = nullptr;
  unsigned x_threads = 0;
  unsigned x_live = 0;
  unsigned x_words = 0;
  std::uint64_t x_steps = 0;
  std::uint64_t x_step_limit = 0;
  std::array<std::uint64_t, kMaxThreads / 64> x_runnable{};
  std::array<std::uint64_t, kMaxThreads / 64> x_alive{};
  std::unique_ptr<Fiber[]> x_fibers = std::make_unique<Fiber[]>(kMaxThreads);
  std::unique_ptr<FiberStack[]> x_stack = std::make_unique<FiberStack[]>(kMaxThreads);
  unsigned x_made = 0;  // fibers that have a stack

 private:
  void (*x_fiber_main)() = nullptr;
  FiberStacks x_stacks;
  dim3 x_indexed_for{0, 0, 0};  // the block shape the fibers' indices are for
  Context x_worker;             // enter_block's own context
  void* x_worker_sanitizer_stack = nullptr;
  bool x_from_worker = false;  // whether the fiber that arrives was reached from there
  const void* x_worker_stack_bottom = nullptr;
  std::size_t x_worker_stack_bytes = 0;
};

inline void BlockThreads::arrived_on_fiber() {
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

__attribute__((always_inline)) inline void BlockThreads::switch_between(Fiber& from, Fiber& to) {
  x_current = &to;
  threadIdx = to.index;
#if defined(ATTN_DIAG_HOST_ASAN)
  const FiberStack& stack = x_stack[to.index.linear];
  leaving_stack(&x_stack[from.index.linear].sanitizer_stack, stack.bottom,
                stack.top - stack.bottom);
#endif
  switch_context(from.context, to.context);
  s_running->arrived_on_fiber();
}

}  // namespace attn_diag::host
