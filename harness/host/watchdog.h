// Calls a thread back, by a signal, after it has used a given amount of CPU time, again and again.
#pragma once

#include <csignal>
#include <ctime>

namespace attn_diag::host {

class __attribute__((visibility("hidden"))) Watchdog {
 public:
  // `tick` runs in a signal handler of the thread that made this object; `pc` is where the thread was.
  using Tick = void (*)(void* argument, const void* pc);

  Watchdog(Tick tick, void* argument);  // throws std::system_error
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Time between calls. May be called in the handler.
  void set_interval(double seconds);

 private:
  static void handle(int signal, siginfo_t* info, void* context);
  static void install_handler();

  Tick x_tick;
  void* x_argument;
  timer_t x_timer{};
  double x_interval = 0;
};

}  // namespace attn_diag::host
