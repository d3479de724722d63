// What a thread knows to have happened in blocks: vector clocks of threads, by block.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "harness/host/check/record.h"

namespace attn_diag::host {

// All accesses of a block's intervals before `segment`, and of thread t in it those at ticks below
// ticks[t] (0 beyond the end).
struct BlockView {
  std::uint32_t segment = 0;
  std::vector<std::uint32_t> ticks;

  bool covers(Epoch e) const {
    const std::uint32_t at = segment_of(e);
    if (at != segment) return at < segment;
    return thread_of(e) < ticks.size() && tick_of(e) < ticks[thread_of(e)];
  }
  void raise(unsigned thread, std::uint32_t tick);
  void join(const BlockView& other);
};

class Clock {
 public:
  bool covers(std::uint64_t block, Epoch e) const {
    const auto it = x_views.find(block);
    return it != x_views.end() && it->second.covers(e);
  }
  BlockView& view(std::uint64_t block) { return x_views[block]; }
  const BlockView* find(std::uint64_t block) const {
    const auto it = x_views.find(block);
    return it == x_views.end() ? nullptr : &it->second;
  }
  void join(const Clock& other);

 private:
  std::map<std::uint64_t, BlockView> x_views;
};

using SharedClock = std::shared_ptr<const Clock>;  // null: knows nothing
SharedClock joined(const SharedClock& a, const SharedClock& b);

// What is handed over at an address or barrier.
struct Handover {
  Clock arrived;  // of the phase under way
  SharedClock done,
      unfenced;  // what who takes it learns; and what it would, had there been a fence
};
using Handovers = std::unordered_map<std::uintptr_t, Handover>;

}  // namespace attn_diag::host
