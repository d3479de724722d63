#include "harness/base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "attn_diag/harness/error.h"

extern char** environ;

namespace attn_diag {
namespace {

using Clock = std::chrono::steady_clock;

pid_t start(const std::vector<std::string>& words, const std::filesystem::path& folder,
            const Pipe& out, const Pipe& err) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw Error(fmt::format("'{}' could not be started: {}.", words[0], std::strerror(failed)));
  return child;
}

// Milliseconds until then, for poll().
int left_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

// Until it has closed both; false where that takes too long.
bool read_both(Pipe& out, Pipe& err, double seconds, ProcessResult& result) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  while (out.read_end() >= 0 || err.read_end() >= 0) {
    if (seconds > 0 && Clock::now() >= end) return false;
    std::array<pollfd, 2> polled{{{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), seconds > 0 ? left_until(end) : -1) <= 0) continue;
    if (polled[0].revents != 0 && !read_some(out.read_end(), result.out)) out.close_read();
    if (polled[1].revents != 0 && !read_some(err.read_end(), result.err)) err.close_read();
  }
  return true;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& words, const ProcessOptions& options) {
  Pipe out, err;
  const pid_t child = start(words, options.folder, out, err);
  out.close_write();
  err.close_write();
  ProcessResult result;
  result.timed_out = !read_both(out, err, options.seconds, result);
  if (result.timed_out) ::kill(child, SIGKILL);
  static_cast<ProcessEnd&>(result) = wait_for(child);
  return result;
}

bool is_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && ::access((folder + '/' + name).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace attn_diag
