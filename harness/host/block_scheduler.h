// Which thread of a block runs next, and the switch to it; threads that wait by polling (block_polling.cc).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "harness/host/block_reporter.h"
#include "harness/host/fingerprints.h"
#include "harness/host/warp_regions.h"
#include "harness/host/watchdog.h"

namespace attn_diag::host {

// Reports what cannot go on: to be a BlockReporter is to know how.
class __attribute__((visibility("hidden"))) BlockScheduler : public BlockReporter {
 public:
  bool is_lockstep() const { return x_kind == ScheduleKind::kLockstep; }

  // The current thread comes to a synchronisation point. `pc` is the address in the kernel from which that
  // happened, `frame` tells the depth of the call.
  Fiber& arrive(Wait wait, const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  // It waits there until another lets it go on.
  void wait_for_others(Fiber& fiber);
  // All can go on: switches to the schedule's first. In lockstep, where the others may be anywhere,
  // switch_to_anyone() goes on with the step.
  void switch_to_first() { switch_to(first_thread()); }
  void switch_to_first_lane(unsigned warp, std::uint32_t lanes) {
    switch_to(first_lane(warp, lanes));
  }
  void switch_to_anyone() { switch_to(is_lockstep() ? *next_lockstep() : first_thread()); }
  void switch_to_next_or_report();
  // In lockstep, the lanes that stand here go on together, after all that they did before.
  void step_together(std::uintptr_t pc, std::uintptr_t frame);
  // In lockstep, waits for the lanes on their way here; returns those that then go on together.
  std::uint32_t lanes_that_come(std::uintptr_t pc, std::uintptr_t frame);
  // Before a branch, and where its paths meet again.
  void enter_region(std::uint32_t region, std::uintptr_t pc, std::uintptr_t frame);
  void join_region(std::uint32_t region, std::uintptr_t pc, std::uintptr_t frame);

  // Lets the threads run that neither wait nor poll, then comes back.
  void poll(Wait wait, const char* file, int line, std::uintptr_t pc, std::uintptr_t frame);
  // An atomic operation has changed nothing; something.
  void count_idle_atomic(std::uintptr_t pc, std::uintptr_t frame);
  void forget_idle_atomics() { x_idle_atomics = 0; }
  // The block has done nothing for too long: it is to be abandoned at its next call.
  bool is_silent() const { return x_silent; }
  // The current thread, of an instrumented build, is about to use memory of others: if it is what it has used all
  // along, the thread may be waiting for another.
  void note_use(std::uintptr_t at, bool used_other, std::uintptr_t pc, std::uintptr_t frame);
  void note_other_use(unsigned thread) { x_position[thread].again = 0; }

 protected:
  BlockScheduler();
  void begin_launch(const LaunchPlan& plan, void (*fiber_main)());
  void begin_block(std::uint64_t number);
  // The first thread of a block; where it starts.
  Fiber& start();
  void thread_exits();
  Fiber& first_thread();

 private:
  Fiber* next_thread();  // null: nobody can run
  Fiber* next_lockstep();
  Fiber& first_lane(unsigned warp, std::uint32_t lanes);
  bool choose_step(unsigned warp);
  bool release_joins();
  std::uint64_t random();
  void switch_to(Fiber& to);
  void note_position(const Fiber& fiber, std::uintptr_t pc, std::uintptr_t frame);

  void stand_back(Wait wait);
  Fiber* next_poller();  // null: nobody polls
  void pass_turn();
  void look_soon();
  void look_again();
  // Runs now and then in a signal handler, while a kernel runs.
  static void tick(void* scheduler, const Interrupted& at);
  void look_at_running_thread(const Interrupted& at);

  ScheduleKind x_kind = ScheduleKind::kForward;
  WarpOrder x_warp_order = WarpOrder::kForward;  // of lockstep
  std::uint64_t x_random = 0;
  unsigned x_step_warp = 0;        // lockstep: the warp that runs,
  std::uint32_t x_step_lanes = 0;  // the lanes that have yet to take the current step,
  std::uint32_t x_step_group = 0;  // and all that take it;
  std::uint64_t x_step_number = 0;
  std::array<WarpRegions, kMaxThreads / kWarpSize> x_regions;
  std::unique_ptr<Position[]> x_position = std::make_unique<Position[]>(kMaxThreads);

  std::array<std::uint64_t, kMaxThreads / 64> x_polling{};  // run when no other thread can
  unsigned x_idle_rounds = 0;                               // of these, in which nothing happened
  std::uint64_t x_round_steps = 0;                          // steps before the last round
  unsigned x_idle_atomics = 0;                              // in a row

  std::uint64_t x_blocks_run = 0;
  std::uint64_t x_seen_blocks = 0, x_seen_steps = 0;  // when last looked at
  double x_silent_since = 0;                          // CPU time when they changed,
  Fingerprints x_fingerprints;                        // and states of threads since then
  double x_slice = 0;                                 // until the next look,
  unsigned x_looks = 0;                               // how many looks there were
  bool x_interrupted = false;                         // a thread of the block was, as it polls
  double x_turn_begin = 0;  // CPU time; 0: the block has not passed its turn
  std::uint64_t x_seen_progress = 0;
  volatile bool x_passing = false;
  volatile bool x_silent = false;  // for too long: abandon the block
  Watchdog x_watchdog;
};

inline void BlockScheduler::switch_to(Fiber& to) {
  if (&to != x_current) switch_between(*x_current, to);
}

inline void BlockScheduler::note_position(const Fiber& fiber, std::uintptr_t pc,
                                          std::uintptr_t frame) {
  Position& position = x_position[fiber.index.linear];
  position.pc = pc;
  position.depth = static_cast<std::uint32_t>(x_stack[fiber.index.linear].top - frame);
}

inline void BlockScheduler::switch_to_next_or_report() {
  Fiber* next = next_thread();
  if (next == nullptr) next = next_poller();
  if (next == nullptr && release_joins()) next = next_thread();
  if (next == nullptr) report_stuck();
  switch_to(*next);
}

__attribute__((always_inline)) inline Fiber& BlockScheduler::arrive(Wait wait, const char* file,
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

__attribute__((always_inline)) inline void BlockScheduler::wait_for_others(Fiber& fiber) {
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

inline void BlockScheduler::thread_exits() {
  const unsigned thread = current_thread(), warp = thread / kWarpSize;
  clear_runnable(thread);
  x_alive[thread / 64] &= ~(1ull << (thread % 64));
  x_current->wait = Wait::kNone;
  --x_live;
  if (is_lockstep()) let_lanes_go_on(warp, x_regions[warp].exit(thread % kWarpSize));
}

inline void BlockScheduler::step_together(std::uintptr_t pc, std::uintptr_t frame) {
  if (!is_lockstep()) return;
  note_position(*x_current, pc, frame);
  switch_to(*next_lockstep());
}

}  // namespace attn_diag::host
