// Which blocks of a launch run, and when: blocks are handed out in order, and where blocks wait for one
// another, by polling memory, their workers take turns.
//
// No more workers than the launch was given run at a time. A worker whose block can only poll passes its turn on.
// When every started block polls in vain, one more worker starts another block, so that all blocks of a launch make
// progress, whatever the order in which they need each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <semaphore>

namespace attn_diag::host {

struct TurnLimits {
  unsigned workers = 1;       // that run at a time
  unsigned most_workers = 1;  // that may exist, each with a block that polls
  double silent_seconds = 0;  // of CPU time that workers may poll in vain
};

// `limit`, but little once the launch is out of time.
double seconds_of_silence(double limit);

class BlockTurns {
 public:
  // `add_worker` makes another thread enter; false: it could not.
  BlockTurns(std::uint64_t blocks, const TurnLimits& limits, std::function<bool()> add_worker);

  // A worker enters and waits for its turn; a worker leaves.
  void enter();
  void leave();
  // The number of the next block to start; none: there are no more, or the launch has failed.
  std::optional<std::uint64_t> take();
  // A block has ended. Those that poll go first.
  void block_ended();
  // The caller's block can only poll, and has done so in vain for `seconds`. Returns at its next turn; false: no
  // block has got on for too long, give up. `seen`: the caller's own, for its next call.
  bool pass(double seconds, std::uint64_t& seen);
  // Something other than polling has happened in a block.
  void got_on();
  // A block has failed: no further ones are started, and those that poll give up soon.
  void stop();
  // Whether some block has passed its turn.
  bool polling() const { return x_polling; }

  std::uint64_t started() const { return x_next < x_blocks ? x_next.load() : x_blocks; }
  std::uint64_t blocks() const { return x_blocks; }
  unsigned most_workers() const { return x_limits.most_workers; }

 private:
  // With the mutex held.
  bool everyone_polls() const { return x_in_vain >= x_workers; }
  void note_progress();
  bool start_another();
  void wait_for_turn(std::unique_lock<std::mutex>& lock);
  void hand_on();

  const std::uint64_t x_blocks;
  const TurnLimits x_limits;
  const std::function<bool()> x_add_worker;
  std::atomic<std::uint64_t> x_next{0};
  std::atomic<bool> x_stopped{false}, x_gave_up{false};
  std::atomic<bool> x_polling{false};  // some worker passes its turn

  std::mutex x_mutex;
  std::deque<std::binary_semaphore*> x_waiting;  // workers, the next first
  unsigned x_workers = 0;                        // that have entered
  unsigned x_running = 0;                        // that have a turn
  unsigned x_promised = 0;                       // turns kept for workers on their way
  std::uint64_t x_progress = 1;                  // how often something has happened
  unsigned x_in_vain = 0;                        // workers that have polled in vain since
  double x_vain_seconds = 0;                     // CPU time that they spent on it
};

}  // namespace attn_diag::host
