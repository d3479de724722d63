#include "tools/attn_diag/source_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <utility>

extern char** environ;

namespace attn_diag::cli {
namespace {

namespace fs = std::filesystem;

// What a program prints; empty where it cannot be run.
std::string output_of(std::vector<std::string> words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t n = 0; failed == 0 && (n = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  if (failed == 0) ::waitpid(child, nullptr, 0);
  return text;
}

// "attend(float*) (/src/mine.cu:12)"
std::string frame_text(const CrashPage::Frame& frame) {
  const std::string module = frame.module.data();
  const std::string place =
      fmt::format("{}+{:#x}", fs::path(module).filename().string(), frame.offset);
  const std::string lines =
      output_of({"addr2line", "-C", "-f", "-e", module, fmt::format("{:#x}", frame.offset)});
  const std::size_t end = lines.find('\n');
  if (end == std::string::npos || lines.starts_with("??")) return place;
  const std::string function = lines.substr(0, end);
  std::string line = lines.substr(end + 1, lines.find('\n', end + 1) - end - 1);
  line = line.substr(0, line.find(" (discriminator"));
  const bool known = !line.starts_with("??") && !line.ends_with(":?") && !line.ends_with(":0");
  return fmt::format("{} ({})", function, known ? line : place);
}

// Whether a frame is of what runs a kernel, and not of the kernel or of what it calls.
bool is_ours(const CrashPage::Frame& frame) {
  const std::string name = fs::path(frame.module.data()).filename().string();
  return name.empty() || name.starts_with("libattn_diag_host_executor");
}

// Of the C and C++ libraries.
bool is_system(const CrashPage::Frame& frame) {
  const std::string module = frame.module.data();
  return module.starts_with("/lib") || module.starts_with("/usr/lib") ||
         module.starts_with("linux-vdso");
}

}  // namespace

std::vector<std::string> frames_of(const CrashPage& page) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> frames;
  // Of what the user's code called, the call itself is enough: abort, not what that does.
  int first = 0;
  bool of_user = false;
  while (first + 2 < page.num_frames && is_system(page.frames[static_cast<std::size_t>(first)]) &&
         is_system(page.frames[static_cast<std::size_t>(first) + 1]))
    ++first;
  for (int i = first; i < page.num_frames && frames.size() < kMost; ++i) {
    const CrashPage::Frame& frame = page.frames[static_cast<std::size_t>(i)];
    // Below the user's code is only what called it.
    if (is_ours(frame)) {
      if (of_user) break;
      frames.clear();  // what the executor itself called
      continue;
    }
    of_user = of_user || !is_system(frame);
    std::string text = frame_text(frame);
    // From here on only what brought the launch to the kernel.
    if (text.find("std::__invoke_impl<") != std::string::npos) break;
    if (frames.empty() || frames.back() != text) frames.push_back(std::move(text));
  }
  if (!of_user) frames.clear();
  return frames;
}

}  // namespace attn_diag::cli
