#include "harness/run/jobs.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
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

enum class Said : std::uint8_t { kDone, kFailed };

// SIGPROF, which ends the process: RLIMIT_CPU knows whole seconds only.
void limit_processor_time(double seconds) {
  if (seconds <= 0) return;
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec =
      static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6) + 1;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

void work_and_answer(int pipe, const std::function<Bytes()>& work) {
  Said kind = Said::kDone;
  Bytes answer;
  try {
    answer = work();
  } catch (const Error& e) {
    kind = Said::kFailed;
    answer.resize(std::strlen(e.what()));
    std::memcpy(answer.data(), e.what(), answer.size());
  } catch (const std::bad_alloc&) {
    kind = Said::kFailed;
  }
  write_all(pipe, &kind, sizeof kind);
  write_all(pipe, answer.data(), answer.size());
}

}  // namespace

Jobs::~Jobs() { stop_all(); }

int Jobs::start(const std::function<Bytes()>& work, double seconds, double processor_seconds) {
  Pipe pipe;
  Running running;
  running.process = fork_child([&] {
    ::setpgid(0, 0);
    pipe.close_read();
    for (const Running& other : x_running) ::close(other.pipe);
    host::use_call_clock(nullptr);
    if (!x_scratch.empty()) ::setenv("TMPDIR", x_scratch.c_str(), 1);
    limit_processor_time(processor_seconds);
    work_and_answer(pipe.write_end(), work);
  });
  running.id = x_next++;
  running.pipe = pipe.take_read_end();
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
  const ProcessEnd end = wait_for(running.process);
  Result result;
  result.id = running.id;
  result.seconds = std::chrono::duration<double>(Clock::now() - running.begin).count();
  result.processor_seconds = end.processor_seconds;
  if (end.signal == SIGPROF) too_long = true;
  if (too_long) {
    result.end = End::kTookTooLong;
  } else if (running.answer.empty() || end.signal != 0) {
    result.end = End::kCrashed;
    result.signal = end.signal;
  } else {
    const bool done = running.answer[0] == static_cast<char>(Said::kDone);
    result.end = done ? End::kDone : End::kFailed;
    const auto* bytes = reinterpret_cast<const std::byte*>(running.answer.data());
    result.answer.assign(bytes + 1, bytes + running.answer.size());
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
      if (!read_some(x_running[i].pipe, x_running[i].answer)) return finish(i, false);
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
