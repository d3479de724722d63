#include "tools/attn_diag/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "harness/base/printable.h"
#include "tools/attn_diag/crash_page.h"

namespace attn_diag::cli {
namespace {

constexpr std::chrono::milliseconds kQuiet{1000};        // work that is shorter shows nothing
constexpr std::chrono::milliseconds kTerminalRate{100};  // a line that is written over
constexpr std::chrono::milliseconds kLogRate{5000};      // lines of a log

}  // namespace

Progress::Progress(bool enabled)
    : x_due(Clock::now() + kQuiet), x_terminal(::isatty(STDERR_FILENO) == 1) {
  if (enabled) x_watcher = std::thread(&Progress::watch, this);
}

Progress::~Progress() {
  if (!x_watcher.joinable()) return;
  {
    const std::lock_guard lock(x_mutex);
    x_done = true;
    if (x_terminal && !x_printed.empty()) std::fputs("\r\x1b[K", stderr);
  }
  x_changed.notify_one();
  x_watcher.join();
}

void Progress::step(int i, int n, const std::string& what) {
  note_step(fmt::format("step {} of {}: {}", i, n, one_line(what)).c_str());
  if (!x_watcher.joinable()) return;
  const std::lock_guard lock(x_mutex);
  x_line = fmt::format("step {} of {}: {}", i, n, one_line(what));
  x_changed.notify_one();
}

void Progress::watch() {
  std::unique_lock lock(x_mutex);
  while (!x_done) {
    if (x_line == x_printed) {
      x_changed.wait(lock);
    } else if (Clock::now() < x_due) {
      x_changed.wait_until(lock, x_due);
    } else {
      print();
    }
  }
}

void Progress::print() {
  const std::string text = x_terminal ? "\r\x1b[K" + x_line : "attn-diag: " + x_line + "\n";
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  x_printed = x_line;
  x_due = Clock::now() + (x_terminal ? kTerminalRate : kLogRate);
}

}  // namespace attn_diag::cli
