// Calls a thread back, by a signal, whenever it has used a given amount of CPU time.
#pragma once

#include <csignal>
#include <cstdint>
#include <ctime>

#include "harness/host/once_per_process.h"

namespace attn_diag::host {

// Where the signal found the thread.
class __attribute__((visibility("hidden"))) Interrupted {
 public:
  explicit Interrupted(const void* context) : x_context(context) {}
  std::uintptr_t program_counter() const;
  std::uintptr_t stack_pointer() const;
  // Right only in a function that has pushed nothing.
  std::uintptr_t return_address() const;
  // A hash of the registers and the nearest part of the stack, which ends at `stack_top`. A loop that comes back
  // to the same state waits for memory that others write.
  std::uint64_t fingerprint(std::uintptr_t stack_top) const;

 private:
  const void* x_context;
};

class __attribute__((visibility("hidden"))) Watchdog {
 public:
  // `tick` runs in a signal handler of the thread that made this object. It may switch to another stack and
  // come back later.
  using Tick = void (*)(void* argument, const Interrupted& at);

  Watchdog(Tick tick, void* argument);  // throws std::system_error
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // CPU time between calls. May be called in the handler.
  void set_interval(double seconds);
  // One more call, after `seconds` of CPU time. May be called in the handler.
  void call_after(double seconds);

 private:
  static void handle(int signal, siginfo_t* info, void* context);
  void make_timers();
  void ensure_timers();

  Tick x_tick;
  void* x_argument;
  timer_t x_timer{}, x_alarm{};
  OncePerProcess x_made;
  double x_interval = 0;
};

// CPU time that the calling thread has used.
double thread_seconds();

}  // namespace attn_diag::host
