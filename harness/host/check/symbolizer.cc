#include "harness/host/check/symbolizer.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "harness/host/text.h"

extern char** environ;

namespace attn_diag::host {
namespace {

// What a program prints, given `input`; false if it cannot be run or fails.
bool run(const std::vector<std::string>& command, const std::string& input, std::string& output) {
  // A file holds the input: a pipe could fill up while the program waits to be read.
  std::FILE* const in = std::tmpfile();
  if (in == nullptr) return false;
  std::fwrite(input.data(), 1, input.size(), in);
  std::rewind(in);
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) {
    std::fclose(in);
    return false;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in), 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  if (failed == 0) {
    char buffer[4096];
    ssize_t n = 0;
    while ((n = read(out[0], buffer, sizeof buffer)) > 0)
      output.append(buffer, static_cast<std::size_t>(n));
  }
  close(out[0]);
  std::fclose(in);
  int status = 0;
  return failed == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

std::vector<std::string_view> lines_of(const std::string& text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    lines.emplace_back(text.data() + at, end - at);
    at = end + 1;
  }
  return lines;
}

// "kernel.cu:12 (discriminator 3)"
SourcePlace place_of(std::string_view function, std::string_view text) {
  SourcePlace place;
  const std::size_t note = text.find(" (");
  if (note != std::string_view::npos) text = text.substr(0, note);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.starts_with("??")) return place;
  place.line = std::atoi(std::string(text.substr(colon + 1)).c_str());
  if (place.line == 0) return {};
  place.file = text.substr(0, colon);
  place.function = function == "??" ? "" : function;
  return place;
}

}  // namespace

SourceLines find_source_lines(const std::string& library,
                              const std::vector<std::uint64_t>& offsets) {
  SourceLines result;
  if (offsets.empty()) return result;
  std::string input;
  // The call is before the address that it returns to.
  for (const std::uint64_t offset : offsets)
    input += concat("0x", std::hex, offset > 0 ? offset - 1 : 0, '\n');
  std::string output;
  if (!run({"addr2line", "-a", "-i", "-f", "-C", "-e", library}, input, output)) {
    result.problem =
        "addr2line (of the GNU binutils) could not be run: places are given as offsets into the "
        "library";
    return result;
  }
  // For each address a line "0x...", then pairs of lines: a function and its place.
  const std::vector<std::string_view> lines = lines_of(output);
  std::size_t next = 0;
  std::vector<SourcePlace>* places = nullptr;
  bool any = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("0x")) {
      places = next < offsets.size() ? &result.places[offsets[next++]] : nullptr;
      continue;
    }
    if (i + 1 >= lines.size()) break;
    const SourcePlace place = place_of(lines[i], lines[i + 1]);
    ++i;
    if (places == nullptr || place.file.empty()) continue;
    places->push_back(place);
    any = true;
  }
  if (!any)
    result.problem =
        concat(library, " has no debug information (-g1): places are given as offsets into it");
  return result;
}

}  // namespace attn_diag::host
