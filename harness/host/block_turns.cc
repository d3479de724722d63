#include "harness/host/block_turns.h"

#include <algorithm>
#include <utility>

#include "attn_diag/harness/host/call_clock.h"

namespace attn_diag::host {
namespace {

// The time left to polling blocks once another block has failed.
constexpr double kLastSeconds = 0.05;

}  // namespace

double seconds_of_silence(double limit) {
  return is_out_of_time() ? std::min(kLastSeconds, limit) : limit;
}

BlockTurns::BlockTurns(std::uint64_t blocks, const TurnLimits& limits,
                       std::function<bool()> add_worker)
    : x_blocks(blocks), x_limits(limits), x_add_worker(std::move(add_worker)) {}

void BlockTurns::wait_for_turn(std::unique_lock<std::mutex>& lock) {
  std::binary_semaphore turn(0);
  x_waiting.push_back(&turn);
  lock.unlock();
  turn.acquire();
  lock.lock();
}

// The caller's turn goes to the next that waits, if any does.
void BlockTurns::hand_on() {
  if (x_waiting.empty()) {
    --x_running;
    return;
  }
  std::binary_semaphore* next = x_waiting.front();
  x_waiting.pop_front();
  next->release();
}

void BlockTurns::enter() {
  std::unique_lock lock(x_mutex);
  ++x_workers;
  if (x_promised > 0) {
    --x_promised;
  } else if (x_running < x_limits.workers) {
    ++x_running;
  } else {
    wait_for_turn(lock);
  }
}

void BlockTurns::leave() {
  const std::lock_guard lock(x_mutex);
  --x_workers;
  hand_on();
}

std::optional<std::uint64_t> BlockTurns::take() {
  if (x_stopped) return std::nullopt;
  const std::uint64_t number = x_next++;
  return number < x_blocks ? std::optional(number) : std::nullopt;
}

void BlockTurns::block_ended() {
  if (!x_polling) return;
  std::unique_lock lock(x_mutex);
  note_progress();
  if (x_waiting.empty()) return;
  hand_on();
  wait_for_turn(lock);
}

void BlockTurns::got_on() {
  if (!x_polling) return;
  const std::lock_guard lock(x_mutex);
  note_progress();
}

void BlockTurns::note_progress() {
  ++x_progress;
  x_in_vain = 0;
  x_vain_seconds = 0;
}

void BlockTurns::stop() { x_stopped = true; }

// The caller's turn goes to the new worker.
bool BlockTurns::start_another() {
  if (x_stopped || x_next >= x_blocks || x_workers + x_promised >= x_limits.most_workers)
    return false;
  ++x_promised;
  if (x_add_worker()) return true;
  --x_promised;
  return false;
}

bool BlockTurns::pass(double seconds, std::uint64_t& seen) {
  x_polling = true;
  std::unique_lock lock(x_mutex);
  if (std::exchange(seen, x_progress) != x_progress) ++x_in_vain;
  x_vain_seconds += seconds;
  const double limit = x_stopped ? std::min(kLastSeconds, x_limits.silent_seconds)
                                 : seconds_of_silence(x_limits.silent_seconds) *
                                       std::min(x_limits.workers, x_workers);
  if (everyone_polls() && start_another()) {
    wait_for_turn(lock);
  } else if (everyone_polls() && x_vain_seconds >= limit) {
    x_gave_up = true;
  } else if (!x_waiting.empty()) {
    hand_on();
    wait_for_turn(lock);
  }
  return !x_gave_up;
}

}  // namespace attn_diag::host
