// Threads that wait by polling: they run when no other thread of the block can, and blocks of which all
// threads wait or poll let other blocks run.
//
// Polling shows itself by a call (give_way and what else ends in poll()), or by a loop that comes back to
// the same registers and stack: the watchdog's signal finds it there, and switches to another thread from
// within the handler, whose frame keeps the registers.
#include <algorithm>

#include "harness/host/block_scheduler.h"
#include "harness/host/block_turns.h"

namespace attn_diag::host {
namespace {

// How often a thread may ask for an mbarrier's phase while nothing happens in the block.
constexpr unsigned kIdleRounds = 1u << 14;
// How often all polling threads are asked in vain before other blocks get their turn. A thread that was
// interrupted has looked many times when it is interrupted again.
constexpr unsigned kVainRounds = 16, kVainSlices = 2;
// How long a thread may run before it is looked at (again).
constexpr double kFirstSlice = 5e-5, kLongestSlice = 5e-3;
constexpr unsigned kFirstLooks = 32;  // after the first slice each; then they grow
// A thread whose state changes may still wait for another. This part of the limit it may run alone.
constexpr double kPartAlone = 0.25;
// Unproductive atomic operations in a row.
constexpr unsigned kMostIdleAtomics = 32;

}  // namespace

void BlockScheduler::count_idle_atomic(std::uintptr_t pc, std::uintptr_t frame) {
  if (++x_idle_atomics < kMostIdleAtomics) return;
  x_idle_atomics = 0;
  if (is_lockstep()) note_position(*x_current, pc, frame);
  stand_back(Wait::kLoop);
}

void BlockScheduler::poll(Wait wait, const char* file, int line, std::uintptr_t pc,
                          std::uintptr_t frame) {
  Fiber& fiber = *x_current;
  fiber.file = file;
  fiber.line = line;
  if (is_lockstep()) note_position(fiber, pc, frame);
  stand_back(wait);
}

// Until every thread that neither waits nor polls has run as far as it could.
void BlockScheduler::stand_back(Wait wait) {
  Fiber& fiber = *x_current;
  const unsigned thread = fiber.index.linear;
  fiber.wait = wait;
  clear_runnable(thread);
  x_polling[thread / 64] |= 1ull << (thread % 64);
  switch_to_next_or_report();
  x_current->wait = Wait::kNone;
}

Fiber* BlockScheduler::next_poller() {
  bool any = false, only_mbarriers = true;
  for (unsigned t = 0; t < x_threads; ++t) {
    if ((x_polling[t / 64] >> (t % 64) & 1u) == 0) continue;
    any = true;
    only_mbarriers = only_mbarriers && x_fibers[t].wait == Wait::kMbarrier;
  }
  if (!any) return nullptr;
  if (x_silent) leave_for_good();
  if (std::exchange(x_round_steps, x_steps) != x_steps) {
    x_idle_rounds = 0;
    x_plan->turns->got_on();
  } else {
    ++x_idle_rounds;
  }
  const bool in_vain = x_idle_rounds >= (x_interrupted ? kVainSlices : kVainRounds);
  if (in_vain && release_joins()) {
    x_idle_rounds = 0;
    return next_thread();
  }
  if (only_mbarriers) {
    if (x_idle_rounds > kIdleRounds) return nullptr;  // nobody else can end their phases
  } else if (in_vain) {
    pass_turn();
  }
  for (unsigned w = 0; w < x_words; ++w) {
    x_runnable[w] = x_polling[w];
    x_polling[w] = 0;
  }
  x_step_lanes = 0;
  if (x_interrupted) {
    look_soon();
    // A thread that has long polled in vain may poll longer at a time: looking costs more than waiting.
    x_slice = std::min(kFirstSlice * (1 + x_idle_rounds / 32), kLongestSlice);
    x_watchdog.call_after(x_slice);
  }
  return next_thread();
}

void BlockScheduler::pass_turn() {
  const double now = thread_seconds();
  const double used = x_turn_begin == 0 ? 0 : now - x_turn_begin;
  x_turn_begin = now;  // handing turns on takes time too, of many blocks more than polling
  x_passing = true;
  const bool go_on = x_plan->turns->pass(used, x_seen_progress);
  x_passing = false;
  x_silent_since = thread_seconds();
  if (go_on) return;
  x_silent = true;
  leave_for_good();
}

// A thread is given the first slice.
void BlockScheduler::look_soon() {
  x_looks = 0;
  x_slice = kFirstSlice;
  x_watchdog.call_after(x_slice);
}

void BlockScheduler::look_again() {
  if (++x_looks > kFirstLooks) x_slice = std::min(2 * x_slice, kLongestSlice);
  x_watchdog.call_after(x_slice);
}

void BlockScheduler::tick(void* scheduler, const Interrupted& at) {
  auto& self = *static_cast<BlockScheduler*>(scheduler);
  if (s_running == &self && !self.x_passing) self.look_at_running_thread(at);
}

// In a signal handler. Only the kernel's own code can be left anywhere; libraries and the executor may hold
// locks.
void BlockScheduler::look_at_running_thread(const Interrupted& at) {
  const std::uint64_t steps = static_cast<const volatile std::uint64_t&>(x_steps);
  const std::uintptr_t pc = at.program_counter();
  const bool in_kernel =
      x_plan->library.has_code_at(pc) ||
      (is_in_tls_accessor(pc) && x_plan->library.has_code_at(at.return_address()));
  const double now = thread_seconds();
  if (x_blocks_run != x_seen_blocks || steps != x_seen_steps) {
    x_seen_blocks = x_blocks_run;
    x_seen_steps = steps;
    x_silent_since = now;
    x_fingerprints.clear();
    x_looks = 0;
    x_slice = kFirstSlice;
    if (in_kernel) x_plan->turns->got_on();
    if (x_interrupted || x_plan->turns->polling()) look_soon();
    return;
  }
  const double silent = now - x_silent_since;
  if (!in_kernel) {
    // The lockstep call-outs and threads that poll look at x_silent themselves.
    x_silent = x_silent || silent >= seconds_of_silence(x_plan->silent_seconds);
    look_again();
    return;
  }
  if (x_silent) leave_for_good();
  const std::uintptr_t stack_top = x_stack[x_current->index.linear].top;
  const bool loops = x_fingerprints.comes_back(at.fingerprint(stack_top));
  if (loops || silent >= kPartAlone * seconds_of_silence(x_plan->silent_seconds)) {
    x_interrupted = true;
    look_soon();  // at the next, which may poll too
    if (is_lockstep()) note_position(*x_current, pc, at.stack_pointer());
    stand_back(loops ? Wait::kLoop : Wait::kBusy);
  } else {
    look_again();
  }
}

}  // namespace attn_diag::host
