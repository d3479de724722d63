#include "attn_diag/harness/host/call_clock.h"

#include <chrono>

namespace attn_diag::host {
namespace {

std::atomic<CallClock*> g_clock{nullptr};

}  // namespace

void use_call_clock(CallClock* clock) { g_clock = clock; }

TimedCall::TimedCall() {
  CallClock* const clock = g_clock;
  if (clock == nullptr) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  clock->since = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

TimedCall::~TimedCall() {
  if (CallClock* const clock = g_clock) clock->since = 0;
}

bool is_out_of_time() noexcept {
  const CallClock* const clock = g_clock;
  if (clock == nullptr) return false;
  const std::int64_t since = clock->since;
  return since != 0 && clock->out_of_time == since;
}

}  // namespace attn_diag::host
