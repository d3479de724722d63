#include "tools/attn_diag/child.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "tools/attn_diag/commands.h"
#include "tools/attn_diag/crash_page.h"
#include "tools/attn_diag/crash_report.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<int, 4> kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile pid_t g_child = 0;
volatile std::sig_atomic_t g_asked = 0;  // the signal that asked this process to end

void pass_on(int signal) {
  constexpr unsigned kPatience = 3;
  const int saved = errno;
  g_asked = signal;
  ::kill(g_child, signal);
  ::alarm(kPatience);
  errno = saved;
}

void insist(int) {
  const int saved = errno;
  ::kill(g_child, SIGKILL);
  errno = saved;
}

// What asks this process to end goes to the child; its end then ends this one. The user's code may ignore it, but
// not for long.
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
    struct sigaction action {};
    action.sa_handler = &insist;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &x_alarm);
  }
  ~Forwarding() {
    ::alarm(0);
    sigaction(SIGALRM, &x_alarm, nullptr);
    for (std::size_t i = 0; i < kEnding.size(); ++i) sigaction(kEnding[i], &x_before[i], nullptr);
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

 private:
  std::array<struct sigaction, kEnding.size()> x_before{};
  struct sigaction x_alarm {};
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

// As wait_for(), but `seconds` limits each call of the code under test. A child whose call takes longer is asked
// to say where it is, and then given a little more.
std::optional<int> wait_for_calls(pid_t child, double seconds, host::CallClock& clock) {
  constexpr double kLook = 0.05, kPatience = 2;
  const auto allowed = static_cast<std::int64_t>(seconds * 1e9);
  for (;;) {
    if (const auto status = wait_for(child, kLook)) return status;
    const std::int64_t since = clock.since;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::int64_t used =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - since;
    if (since == 0 || used < allowed) continue;
    clock.out_of_time = since;
    if (const auto status = wait_for(child, std::min(kPatience, kLook + seconds))) return status;
    if (clock.since == since) return std::nullopt;
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

// Processes that the user's code leaves behind become children of this one and are ended. Those that this one
// had before are not the user's code's.
class Descendants {
 public:
  Descendants() : x_before(children()) { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  // To be called when the child has ended. Ending one may leave others.
  void end() {
    constexpr int kMostRounds = 100;
    std::size_t ended = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      std::size_t left = 0;
      for (const pid_t child : children()) {
        if (x_before.contains(child)) continue;
        ++left;
        if (::waitpid(child, nullptr, WNOHANG) == child) {
          --left;
          continue;
        }
        if (round == 0) continue;  // one that is about to end has time to
        if (x_killed.insert(child).second) ++ended;
        ::kill(child, SIGKILL);
      }
      if (left == 0) break;
      const timespec pause{0, 10'000'000};
      ::nanosleep(&pause, nullptr);
    }
    if (ended > 0)
      write_stderr(fmt::format("attn-diag: the code under test left {} behind, now ended\n",
                               ended == 1 ? "a process" : fmt::format("{} processes", ended)));
  }

 private:
  static std::set<pid_t> children() {
    std::set<pid_t> found;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ignored)) {
      const std::string name = entry.path().filename().string();
      pid_t process = 0;
      if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc())
        continue;
      std::ifstream file(entry.path() / "stat");
      std::string text;
      std::getline(file, text);
      const std::size_t behind_name = text.rfind(')');  // which may hold anything
      if (behind_name == std::string::npos) continue;
      std::istringstream rest(text.substr(behind_name + 1));
      char state = 0;
      pid_t parent = 0;
      if (rest >> state >> parent && parent == ::getpid()) found.insert(process);
    }
    return found;
  }

  std::set<pid_t> x_before, x_killed;
};

[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  ::raise(signal);
  std::_Exit(128 + signal);
}

[[noreturn]] void be_child(pid_t parent, CrashPage& page, SharedOutput& output,
                           const std::function<int()>& command) {
  // The parent may be killed where it cannot pass that on.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(2);
  watch_for_crashes(page);
  output.take_over();
  host::use_call_clock(&page.clock);
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
  // Files are read by a helper of their own.
  if ((flags.command == "diagnose" || flags.command == "report") && flags.kernel.empty())
    return false;
  if (flags.command == "sweep" && (!flags.files.empty() || !flags.sweep.print.empty()))
    return false;
  return !flags.child.in_process && find_command(flags.command)->runs_kernels;
}

int run_in_child(const Session& session, const std::function<int()>& command) {
  const std::string& timeout = session.flags.child.timeout;
  constexpr double kLeastSeconds = 1e-3;
  const double seconds = timeout.empty() ? 0 : parse_real("--timeout", timeout, kLeastSeconds);
  CrashPage* const page = shared_page();
  if (page == nullptr) return command();
  page->report = ::memfd_create("attn-diag report", MFD_CLOEXEC);
  std::fflush(nullptr);  // or both would write it
  SharedOutput output;
  Descendants descendants;

  Blocked blocked;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    blocked.release();
    return command();
  }
  if (child == 0) {
    blocked.release();
    be_child(parent, *page, output, command);
  }
  g_child = child;
  std::optional<int> status;
  {
    const Forwarding forwarding;
    blocked.release_ending();
    status = seconds > 0 ? wait_for_calls(child, seconds, page->clock) : wait_for(child, 0);
    if (!status) {
      const int stopped = stop(child);
      if (!page->finished) {
        blocked.release();
        descendants.end();
        return report_crash(session, *page, {report::CrashReport::Kind::kTimeout, 0, seconds},
                            child);
      }
      status = stopped;
    }
  }
  blocked.release();
  descendants.end();
  if (page->finished) {
    output.write_out();
    return page->code;
  }
  if (WIFEXITED(*status))
    return report_crash(session, *page, {report::CrashReport::Kind::kExit, WEXITSTATUS(*status), 0},
                        child);
  int signal = WTERMSIG(*status);
  if (signal == SIGKILL && g_asked != 0) signal = g_asked;
  if (std::find(kEnding.begin(), kEnding.end(), signal) != kEnding.end()) {
    remove_temporary_files(session, child);
    end_by(signal);
  }
  return report_crash(session, *page, {report::CrashReport::Kind::kSignal, signal, 0}, child);
}

}  // namespace attn_diag::cli
