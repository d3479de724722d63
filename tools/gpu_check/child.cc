#include "tools/gpu_check/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "attn_diag/harness/error.h"

extern char** environ;

namespace attn_diag::gpu_check {
namespace {

constexpr std::size_t kShownOfStderr = 600;

class Pipe {
 public:
  Pipe() {
    if (pipe2(x_ends.data(), O_CLOEXEC) != 0)
      throw Error(fmt::format("no pipe for a child process: {}", std::strerror(errno)));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int end(std::size_t i) const { return x_ends[i]; }
  void close_end(std::size_t i) {
    if (x_ends[i] >= 0) close(x_ends[i]);
    x_ends[i] = -1;
  }
  // Reads what is there; closes the reading end at the end of the data.
  void drain(std::string& to) {
    std::array<char, 65536> buffer;
    const ssize_t n = read(x_ends[0], buffer.data(), buffer.size());
    if (n > 0) {
      to.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      close_end(0);
    }
  }

 private:
  std::array<int, 2> x_ends{-1, -1};
};

pid_t start(const std::vector<std::string>& words, const Pipe& out, const Pipe& err) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.end(1), 1);
  posix_spawn_file_actions_adddup2(&actions, err.end(1), 2);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(fmt::format("{} cannot be started: {}.", words[0], std::strerror(error)));
  return pid;
}

}  // namespace

std::string ChildResult::trouble(const std::vector<int>& accepted) const {
  std::string s;
  if (timed_out) {
    s = "took too long and was stopped";
  } else if (signal != 0) {
    s = fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
  } else if (std::find(accepted.begin(), accepted.end(), exit_code) == accepted.end()) {
    s = fmt::format("ended with exit code {}", exit_code);
  } else {
    return "";
  }
  std::string tail = err.size() > kShownOfStderr ? err.substr(err.size() - kShownOfStderr) : err;
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail.empty() ? s : s + ": " + tail;
}

ChildResult run_child(const std::vector<std::string>& words, double seconds) {
  using Clock = std::chrono::steady_clock;
  Pipe out, err;
  const pid_t pid = start(words, out, err);
  out.close_end(1);
  err.close_end(1);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  ChildResult result;
  while (out.end(0) >= 0 || err.end(0) >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      result.timed_out = true;
      kill(pid, SIGKILL);
      break;
    }
    std::array<pollfd, 2> fds{{{out.end(0), POLLIN, 0}, {err.end(0), POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), static_cast<int>(std::min<long>(left, 1000))) <= 0) continue;
    if (fds[0].revents != 0) out.drain(result.out);
    if (fds[1].revents != 0) err.drain(result.err);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace attn_diag::gpu_check
