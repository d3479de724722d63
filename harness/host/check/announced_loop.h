// What a loop is going to load and store, as instrumented code says it before the loop (callouts.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "attn_diag_host/callouts.h"

namespace attn_diag::host {

// Stretches without gaps, of `bytes` each.
struct Stretches {
  struct Row {
    std::uint64_t stride, count;
  };
  std::uintptr_t begin = 0, end = 0;
  std::uint64_t bytes = 0;
  std::array<Row, callouts::kMostLoops> rows;
  unsigned num_rows = 0;

  bool operator==(const Stretches& other) const;
  bool may_overlap(std::uintptr_t at, std::size_t n) const;
  // Calls act(begin, bytes) for each, until it is false; in no particular order.
  template <class Act>
  bool each(const Act& act) const;
};

// One access of all iterations: of `bytes` each, at `first` + sum of stride * iteration.
struct AccessOfLoop {
  struct Dimension {
    std::int64_t stride = 0;
    std::uint64_t count = 1,
                  steps = 0;  // `steps`: accesses of the thread from one iteration to the next
  };
  std::array<Dimension, callouts::kMostLoops> dimensions;  // the outermost loop first
  unsigned num_dimensions = 0;
  std::uintptr_t first = 0, begin = 0, end = 0;  // all of it lies in [begin, end)
  std::uint64_t count = 1, first_step = 0;
  std::uintptr_t pc = 0;
  std::size_t bytes = 0;
  bool write = false;
  bool own = false;  // of the thread's stack

  bool has_same_places(const AccessOfLoop& other) const;
  bool may_overlap(const AccessOfLoop& other) const;
  Stretches stretches() const;
  // Calls act(at, step) in the order of the loop, until it is false.
  template <class Act>
  bool each(const Act& act) const;
};

struct AnnouncedLoop {
  std::array<AccessOfLoop, callouts::kMostAccesses> access;
  unsigned num_accesses = 0;
  std::uint64_t steps = 0;  // all accesses, without those to the thread's own stack

  const AccessOfLoop* begin() const { return access.data(); }
  const AccessOfLoop* end() const { return access.data() + num_accesses; }
};

// For tests: whether any loop may be noted as a whole, and how many accesses of this process were.
struct WholeLoops {
  std::atomic<bool> allowed{true};
  std::atomic<std::uint64_t> accesses{0};
};
WholeLoops& whole_loops();

// Whether the tests hold, so that the loop without them computes what its source does.
bool tests_hold(const std::uint32_t* shape, const std::int64_t* values);

// False: not all accesses are known to be of whole elements at aligned addresses, or in memory seen before.
// [own_begin, own_end): the stack of the thread.
bool read_loop(const std::uint32_t* shape, const std::int64_t* values, const std::uint64_t* sites,
               std::uintptr_t own_begin, std::uintptr_t own_end, AnnouncedLoop& loop);

template <class Act>
bool Stretches::each(const Act& act) const {
  std::array<std::uint64_t, callouts::kMostLoops> at{};
  std::uintptr_t place = begin;
  for (;;) {
    if (!act(place, static_cast<std::size_t>(bytes))) return false;
    unsigned i = 0;
    for (; i < num_rows; ++i) {
      place += rows[i].stride;
      if (++at[i] < rows[i].count) break;
      place -= rows[i].stride * rows[i].count;
      at[i] = 0;
    }
    if (i == num_rows) return true;
  }
}

template <class Act>
bool AccessOfLoop::each(const Act& act) const {
  std::array<std::uint64_t, callouts::kMostLoops> at{};
  std::uintptr_t place = first;
  std::uint64_t step = first_step;
  for (;;) {
    if (!act(place, step)) return false;
    unsigned i = num_dimensions;
    for (; i-- > 0;) {
      const Dimension& d = dimensions[i];
      place += static_cast<std::uintptr_t>(d.stride);
      step += d.steps;
      if (++at[i] < d.count) break;
      place -= static_cast<std::uintptr_t>(d.stride) * d.count;
      step -= d.steps * d.count;
      at[i] = 0;
    }
    if (i + 1 == 0) return true;
  }
}

}  // namespace attn_diag::host
