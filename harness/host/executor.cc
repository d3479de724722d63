#include "attn_diag/harness/host/executor.h"

#include <charconv>
#include <stdexcept>

#include "harness/host/launch_scope.h"

namespace attn_diag::host {
namespace {

thread_local ScopeState* g_scope = nullptr;

}  // namespace

struct LaunchScope::State : ScopeState {};

ScopeState* current_scope() { return g_scope; }

LaunchScope::LaunchScope(const LaunchOptions& options) : x_state(nullptr) {
  if (g_scope != nullptr)
    throw std::logic_error("a LaunchScope is already in force on this thread; they cannot nest");
  x_state = new State;
  x_state->options = options;
  if (options.check) x_state->checker = std::make_unique<Checker>(*options.check);
  g_scope = x_state;
}

LaunchScope::~LaunchScope() {
  g_scope = nullptr;
  delete x_state;
}

const LaunchReport& LaunchScope::report() const {
  if (x_state->checker != nullptr) x_state->report.check = x_state->checker->report();
  return x_state->report;
}

Schedule parse_schedule(const std::string& text) {
  if (text == "forward") return {ScheduleKind::kForward, 0};
  if (text == "reverse") return {ScheduleKind::kReverse, 0};
  if (text == "lockstep") return {ScheduleKind::kLockstep, 0};
  if (text == "lockstep:reverse") return {ScheduleKind::kLockstep, 0, WarpOrder::kReverse};
  if (text == "lockstep:turns") return {ScheduleKind::kLockstep, 0, WarpOrder::kTurns};
  const std::string prefix = "seed:";
  if (text.starts_with(prefix)) {
    Schedule schedule{ScheduleKind::kSeeded, 0};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + prefix.size(), end, schedule.seed);
    if (error == std::errc() && stop == end) return schedule;
  }
  throw std::invalid_argument("schedule \"" + text +
                              "\": expected forward, reverse, lockstep, lockstep:reverse, "
                              "lockstep:turns or seed:N with N from 0 to "
                              "18446744073709551615");
}

std::string to_string(const Schedule& schedule) {
  switch (schedule.kind) {
    case ScheduleKind::kForward:
      return "forward";
    case ScheduleKind::kReverse:
      return "reverse";
    case ScheduleKind::kLockstep:
      return schedule.warps == WarpOrder::kReverse ? "lockstep:reverse"
             : schedule.warps == WarpOrder::kTurns ? "lockstep:turns"
                                                   : "lockstep";
    case ScheduleKind::kSeeded:
      break;
  }
  return "seed:" + std::to_string(schedule.seed);
}

AsyncCopies parse_async_copies(const std::string& text) {
  if (text == "late") return AsyncCopies::kLate;
  if (text == "early") return AsyncCopies::kEarly;
  throw std::invalid_argument("asynchronous copies \"" + text + "\": expected late or early");
}

const char* limits_in_one_line() {
  return "The host executor does not show: how GPUs round matrix products, other than an H200 "
         "(--mma-order N tries what hardware might do), the error of ex2.approx, weak memory "
         "ordering between warps, hangs that depend on occupancy.";
}

}  // namespace attn_diag::host
