// What is to be done once in each process: a forked one has neither the threads nor the timers of its parent, and
// may have been given other signal handlers.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>

namespace attn_diag::host {

class OncePerProcess {
 public:
  bool is_done() const { return x_process == ::getpid(); }
  // Returns once `work` has been done in this process. What it throws leaves it undone.
  template <typename Work>
  void call(const Work& work) {
    if (is_done()) return;
    const std::lock_guard lock(x_mutex);
    if (is_done()) return;
    work();
    x_process = ::getpid();
  }

 private:
  std::atomic<pid_t> x_process{0};
  std::mutex x_mutex;
};

// `before`: what was there, kept where the handler is there already. False: it could not be installed.
inline bool install_handler(int signal, const struct sigaction& action, struct sigaction& before) {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) != 0) return false;
  return now.sa_sigaction == action.sa_sigaction || sigaction(signal, &action, &before) == 0;
}

}  // namespace attn_diag::host
