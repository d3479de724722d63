// The asynchronous copies of a block that have not landed yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "harness/host/values/copied_at.h"

namespace attn_diag::host {

struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
  std::size_t zeros;  // of these, at the end, written as 0 and not read
  const char* file;
  int line;
  bool around_l1 = false;  // cp.async.cg
  CopiedAt at = {};
};

// Those whose thread ended, or whose barrier's phase did not, before they landed.
struct DroppedCopies {
  std::uint64_t count = 0;
  const char* file = nullptr;  // of the first
  int line = 0;
};

class CopiesInFlight {
 public:
  explicit CopiesInFlight(unsigned threads) : x_queues(threads) {}

  // Whether the block has issued any: most blocks do not, and need not be asked more.
  bool any() const { return x_any; }
  bool take_any() { return std::exchange(x_any, false); }
  void add(unsigned thread, const AsyncCopy& copy) {
    x_any = true;
    x_queues[thread].copies.push_back(copy);
  }
  void add(const void* barrier, const AsyncCopy& copy) {
    x_any = true;
    x_bound.push_back({barrier, kNoThread, copy});
  }
  void commit(unsigned thread);
  // All groups of the thread but the last `prior` land.
  void land(unsigned thread, std::size_t prior);
  bool has(unsigned thread) const { return !x_queues[thread].copies.empty(); }
  // Those bound to the barrier land.
  void land(const void* barrier);
  // An arrival at an mbarrier, to follow all copies of the thread so far. They are no longer in its groups,
  // but land with the next of them at the latest.
  void arrive_after(unsigned thread, const void* mbarrier);
  // The copies that arrivals at this mbarrier follow land; returns how many arrivals those are.
  unsigned land_for(const void* mbarrier);
  // What the thread never waited for does not land.
  void drop(unsigned thread);
  void drop_bound();
  // Those dropped since the last call.
  DroppedCopies take_dropped() { return std::exchange(x_dropped, {}); }

 private:
  struct Queue {
    std::vector<AsyncCopy> copies;
    std::vector<std::size_t> group_ends;  // as indices into copies
  };
  static constexpr unsigned kNoThread = ~0u;
  struct Bound {
    const void* barrier;
    unsigned thread;  // that arrives at an mbarrier; kNoThread: a cuda::barrier
    AsyncCopy copy;
  };
  struct Arrival {
    const void* mbarrier;
    unsigned thread;
  };
  void land_bound(unsigned thread);
  void drop(const AsyncCopy& copy);

  bool x_any = false;
  std::vector<Queue> x_queues;
  std::vector<Bound> x_bound;
  std::vector<Arrival> x_arrivals;
  DroppedCopies x_dropped;
};

// `waited`: since the thread that issued it waits for it.
void land(const AsyncCopy& copy, bool waited);
// For the checker of the block that runs.
void note_landed(const AsyncCopy& copy, bool waited);

}  // namespace attn_diag::host
