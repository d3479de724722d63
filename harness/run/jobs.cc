#include "harness/run/jobs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/call_clock.h"
#include "harness/base/child_process.h"

namespace attn_diag {
namespace {

enum class Answer : std::uint8_t { kDone, kFailed };

void set_up() {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  host::use_call_clock(nullptr);
  forget_parent();
  rlimit core{};
  ::setrlimit(RLIMIT_CORE, &core);
}

// SIGPROF, which ends the process: RLIMIT_CPU knows whole seconds only.
void limit_processor_time(double seconds) {
  if (seconds <= 0) return;
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec =
      static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6) + 1;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

void write_all(int to, const void* from, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::write(to, static_cast<const std::byte*>(from) + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void work_and_end(int pipe, const std::function<Bytes()>& work) {
  Answer kind = Answer::kDone;
  Bytes answer;
  try {
    answer = work();
  } catch (const Error& e) {
    kind = Answer::kFailed;
    answer.resize(std::strlen(e.what()));
    std::memcpy(answer.data(), e.what(), answer.size());
  } catch (const std::bad_alloc&) {
    kind = Answer::kFailed;
  }
  write_all(pipe, &kind, sizeof kind);
  write_all(pipe, answer.data(), answer.size());
  ::_exit(0);
}

}  // namespace

Jobs::~Jobs() { stop_all(); }

int Jobs::start(const std::function<Bytes()>& work, double seconds, double processor_seconds) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(fmt::format("No pipe could be made: {}.", std::strerror(errno)));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw Error(fmt::format("No process could be made: {}.", std::strerror(errno)));
  }
  if (child == 0) {
    ::close(ends[0]);
    for (const Running& other : x_running) ::close(other.pipe);
    set_up();
    if (!x_scratch.empty()) ::setenv("TMPDIR", x_scratch.c_str(), 1);
    limit_processor_time(processor_seconds);
    if (::getppid() != parent) ::_exit(0);
    try {
      work_and_end(ends[1], work);
    } catch (...) {
      ::abort();
    }
  }
  ::close(ends[1]);
  Running running;
  running.id = x_next++;
  running.process = child;
  running.pipe = ends[0];
  running.begin = Clock::now();
  running.end = running.begin +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  x_running.push_back(std::move(running));
  return x_running.back().id;
}

Jobs::Result Jobs::finish(std::size_t i, bool too_long) {
  Running running = std::move(x_running[i]);
  x_running.erase(x_running.begin() + static_cast<std::ptrdiff_t>(i));
  // With all that it has started.
  if (too_long) ::kill(-running.process, SIGKILL);
  if (too_long) ::kill(running.process, SIGKILL);
  ::close(running.pipe);
  int status = 0;
  rusage used{};
  while (::wait4(running.process, &status, 0, &used) < 0 && errno == EINTR) {
  }
  Result result;
  result.id = running.id;
  result.seconds = std::chrono::duration<double>(Clock::now() - running.begin).count();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  result.processor_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) too_long = true;
  if (too_long) {
    result.end = End::kTookTooLong;
  } else if (running.answer.empty() || !WIFEXITED(status)) {
    result.end = End::kCrashed;
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  } else {
    const bool done = running.answer[0] == static_cast<std::byte>(Answer::kDone);
    result.end = done ? End::kDone : End::kFailed;
    result.answer.assign(running.answer.begin() + 1, running.answer.end());
  }
  return result;
}

Jobs::Result Jobs::wait() {
  for (;;) {
    std::vector<pollfd> polled;
    Clock::time_point next = Clock::time_point::max();
    for (const Running& running : x_running) {
      polled.push_back({running.pipe, POLLIN, 0});
      next = std::min(next, running.end);
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count() + 1;
    const int ready = ::poll(polled.data(), polled.size(),
                             static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (ready < 0 && errno != EINTR)
      throw Error(fmt::format("Processes could not be waited for: {}.", std::strerror(errno)));
    for (std::size_t i = 0; ready > 0 && i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      std::array<std::byte, 4096> piece{};
      const ssize_t n = ::read(x_running[i].pipe, piece.data(), piece.size());
      if (n > 0) {
        x_running[i].answer.insert(x_running[i].answer.end(), piece.begin(), piece.begin() + n);
      } else if (n == 0 || errno != EINTR) {
        return finish(i, false);
      }
    }
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < x_running.size(); ++i)
      if (now >= x_running[i].end) return finish(i, true);
  }
}

void Jobs::stop_all() {
  while (!x_running.empty()) finish(0, true);
}

}  // namespace attn_diag
