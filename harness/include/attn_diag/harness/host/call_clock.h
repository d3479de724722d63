// How long the code under test has been running: told by the process that runs it, read by the one that
// waits for it. Both see the clock in shared memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace attn_diag::host {

struct CallClock {
  // When the call in progress began, in ns of the steady clock; 0: none is.
  std::atomic<std::int64_t> since{0};
  // The call that may take no longer, by its `since`. Kernels that wait or loop then end with a finding that
  // says where.
  std::atomic<std::int64_t> out_of_time{0};
};

// The clock that calls of this process are noted on; null: none.
void use_call_clock(CallClock* clock);

// While it lives, code of a user runs. What attn-diag itself does lies outside.
class TimedCall {
 public:
  TimedCall();
  ~TimedCall();
  TimedCall(const TimedCall&) = delete;
  TimedCall& operator=(const TimedCall&) = delete;
};

// Safe in signal handlers.
bool is_out_of_time() noexcept;

}  // namespace attn_diag::host
