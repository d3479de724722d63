// Threads that poll: they run when no other thread of the block can.
#include <thread>

#include "attn_diag_host/give_way.h"
#include "harness/host/block_runner_switch.h"

namespace attn_diag::host {
namespace {

// So often a thread may ask for an mbarrier's phase although nothing has happened in the block since.
constexpr unsigned kIdleRounds = 1u << 14;

}  // namespace

void give_way(const char* file, int line) {
  BlockRunner::current()->poll(Wait::kSpin, file, line, address(__builtin_return_address(0)),
                               address(__builtin_frame_address(0)));
}

void BlockRunner::poll(Wait wait, const char* file, int line, std::uintptr_t pc,
                       std::uintptr_t frame) {
  Fiber& fiber = *x_current;
  const unsigned thread = fiber.index.linear;
  fiber.file = file;
  fiber.line = line;
  fiber.wait = wait;
  if (is_lockstep()) note_position(fiber, pc, frame);
  clear_runnable(thread);
  x_polling[thread / 64] |= 1ull << (thread % 64);
  switch_to_next_or_report();
  x_current->wait = Wait::kNone;
}

Fiber* BlockRunner::next_poller() {
  bool any = false, others = false;
  for (unsigned t = 0; t < x_threads; ++t) {
    if ((x_polling[t / 64] >> (t % 64) & 1u) == 0) continue;
    any = true;
    others = others || x_fibers[t].wait != Wait::kMbarrier;
  }
  if (!any) return nullptr;
  if (x_silent) leave_for_good();
  if (others || x_steps != x_round_steps) {
    x_idle_rounds = 0;
  } else if (++x_idle_rounds > kIdleRounds) {
    return nullptr;
  }
  if (others && x_steps == x_round_steps) std::this_thread::yield();
  x_round_steps = x_steps;
  for (unsigned w = 0; w < x_words; ++w) {
    x_runnable[w] = x_polling[w];
    x_polling[w] = 0;
  }
  x_step_lanes = 0;
  return next_thread();
}

}  // namespace attn_diag::host
