// Work in processes of its own, several at a time: building libraries, running what may crash, loop or write anywhere.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/helper.h"

namespace attn_diag {

class Jobs {
 public:
  enum class End { kDone, kFailed, kCrashed, kTookTooLong };
  struct Result {
    int id = 0;
    End end = End::kDone;
    Bytes answer;                  // of kDone; of kFailed the words of the error
    int signal = 0;                // of kCrashed: what ended it; 0: it ended itself
    double seconds = 0;            // that it took
    double processor_seconds = 0;  // of its own, not of what it started
  };

  // `scratch`: where jobs have their temporary files, which those that are stopped leave behind; empty: as ever.
  explicit Jobs(int most, std::string scratch = {}) : x_most(most), x_scratch(std::move(scratch)) {}
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  bool full() const { return static_cast<int>(x_running.size()) >= x_most; }
  bool empty() const { return x_running.empty(); }
  int running() const { return static_cast<int>(x_running.size()); }
  int most() const { return x_most; }

  // `work` is called in a fork of this process; what it starts ends with it. An Error that it throws is kFailed.
  // `processor_seconds`: how long it may compute, however busy the machine is; 0: as long as it likes.
  // Throws Error if no process can be made.
  int start(const std::function<Bytes()>& work, double seconds, double processor_seconds = 0);
  // The next that ends; there must be one that runs.
  Result wait();
  void stop_all();

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    int id = 0;
    pid_t process = -1;
    int pipe = -1;
    Clock::time_point begin, end;
    std::string answer;
  };
  Result finish(std::size_t i, bool too_long);

  int x_most;
  std::string x_scratch;
  int x_next = 0;
  std::vector<Running> x_running;
};

}  // namespace attn_diag
