#include "tools/attn_diag/child.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <new>
#include <string_view>

#include "tools/attn_diag/crash_page.h"
#include "tools/attn_diag/crash_report.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

constexpr std::array<int, 4> kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile pid_t g_child = 0;

void pass_on(int signal) {
  const int saved = errno;
  ::kill(g_child, signal);
  errno = saved;
}

// What asks this process to end goes to the child; its end then ends this one.
class Forwarding {
 public:
  Forwarding() {
    for (std::size_t i = 0; i < kEnding.size(); ++i) {
      sigaction(kEnding[i], nullptr, &x_before[i]);
      if (x_before[i].sa_handler == SIG_IGN) continue;  // as under nohup
      struct sigaction action {};
      action.sa_handler = &pass_on;
      action.sa_flags = SA_RESTART;
      sigaction(kEnding[i], &action, nullptr);
    }
  }
  ~Forwarding() {
    for (std::size_t i = 0; i < kEnding.size(); ++i) sigaction(kEnding[i], &x_before[i], nullptr);
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

 private:
  std::array<struct sigaction, kEnding.size()> x_before{};
};

// Blocked signals wait until parent and child are set up for them.
class Blocked {
 public:
  Blocked() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kEnding) sigaddset(&set, signal);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &x_before);
  }
  void release() { sigprocmask(SIG_SETMASK, &x_before, nullptr); }
  // All but SIGCHLD, which wait_for() waits for.
  void release_ending() {
    sigset_t set = x_before;
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_SETMASK, &set, nullptr);
  }

 private:
  sigset_t x_before;
};

// The wait status of the child; nullopt when `seconds` (if not 0) are over first.
std::optional<int> wait_for(pid_t child, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  sigset_t changed;
  sigemptyset(&changed);
  sigaddset(&changed, SIGCHLD);
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, seconds > 0 ? WNOHANG : 0);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR)
      throw Error("The process that runs the kernel was lost. Run this with --in-process.");
    if (seconds <= 0) continue;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    timespec pause{};
    pause.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
    pause.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    sigtimedwait(&changed, nullptr, &pause);
  }
}

// Asks the child where it is, and ends it.
int stop(pid_t child) {
  constexpr double kPatience = 2;
  ::kill(child, SIGUSR2);
  if (const auto status = wait_for(child, kPatience)) return *status;
  ::kill(child, SIGKILL);
  return *wait_for(child, 0);
}

[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  ::raise(signal);
  std::_Exit(128 + signal);
}

[[noreturn]] void be_child(pid_t parent, CrashPage& page, const std::function<int()>& command) {
  // The parent may be killed where it cannot pass that on.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(2);
  watch_for_crashes(page);
  page.code = command();
  page.finished = true;
  // What the user's code has printed is still in its buffers. Other clean-up at exit is the user's, too,
  // and HDF5's crashes after a write that failed.
  std::fflush(nullptr);
  std::_Exit(page.code);
}

CrashPage* shared_page() {
  void* const memory =
      ::mmap(nullptr, sizeof(CrashPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) CrashPage;
}

}  // namespace

bool wants_child(const Flags& flags) {
  constexpr std::array<std::string_view, 8> kRunCode = {"bench",  "check", "diagnose", "dump",
                                                        "inputs", "run",   "trace",    "xray"};
  return !flags.child.in_process &&
         std::find(kRunCode.begin(), kRunCode.end(), flags.command) != kRunCode.end();
}

int run_in_child(const Session& session, const std::function<int()>& command) {
  const std::string& timeout = session.flags.child.timeout;
  constexpr double kLeastSeconds = 1e-3;
  const double seconds = timeout.empty() ? 0 : parse_real("--timeout", timeout, kLeastSeconds);
  CrashPage* const page = shared_page();
  if (page == nullptr) return command();
  std::fflush(nullptr);  // or both would write it

  Blocked blocked;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    blocked.release();
    return command();
  }
  if (child == 0) {
    blocked.release();
    be_child(parent, *page, command);
  }
  g_child = child;
  std::optional<int> status;
  {
    const Forwarding forwarding;
    blocked.release_ending();
    status = wait_for(child, seconds);
    if (!status) {
      const int stopped = stop(child);
      if (!page->finished) {
        blocked.release();
        return report_crash(session, *page, {report::CrashReport::Kind::kTimeout, 0, seconds},
                            child);
      }
      status = stopped;
    }
  }
  blocked.release();
  if (page->finished) return page->code;
  if (WIFEXITED(*status))
    return report_crash(session, *page, {report::CrashReport::Kind::kExit, WEXITSTATUS(*status), 0},
                        child);
  const int signal = WTERMSIG(*status);
  if (std::find(kEnding.begin(), kEnding.end(), signal) != kEnding.end()) {
    remove_temporary_files(session, child);
    end_by(signal);
  }
  return report_crash(session, *page, {report::CrashReport::Kind::kSignal, signal, 0}, child);
}

}  // namespace attn_diag::cli
