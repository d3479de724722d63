// "step 3 of 8: ..." on stderr for work that takes longer than a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace attn_diag::cli {

class Progress {
 public:
  // Says nothing at all unless enabled.
  explicit Progress(bool enabled);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(int i, int n, const std::string& what);

 private:
  void watch();
  void print();  // x_mutex held

  using Clock = std::chrono::steady_clock;
  std::mutex x_mutex;
  std::condition_variable x_changed;
  std::string x_line, x_printed;
  Clock::time_point x_due;  // nothing is printed before
  bool x_done = false, x_terminal;
  std::thread x_watcher;
};

}  // namespace attn_diag::cli
