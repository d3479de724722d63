#include "tools/attn_diag/source_lines.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "attn_diag/harness/host/symbolizer.h"

namespace attn_diag::cli {
namespace {

namespace fs = std::filesystem;

// "attend(float*) (/src/mine.cu:12)"
std::string frame_text(const CrashPage::Frame& frame, std::vector<host::SourcePlace>& its_places) {
  const std::string module = frame.module.data();
  // Looked up as a call that returns behind it.
  host::SourceLines lines = host::find_source_lines(module, {frame.offset + 1});
  const std::vector<host::SourcePlace> places =
      host::users_places(std::move(lines.places[frame.offset + 1]));
  its_places = places;
  // Only the debug information knows the name of an inlined function.
  std::string function = places.size() > 1 ? "" : host::function_name(module, frame.offset);
  if (function.empty() && !places.empty()) function = places[0].function;
  const std::string offset =
      fmt::format("{}+{:#x}", fs::path(module).filename().string(), frame.offset);
  if (function.empty()) return offset;
  return fmt::format(
      "{} ({})", function,
      places.empty() ? offset : fmt::format("{}:{}", places[0].file, places[0].line));
}

// Whether a frame is of what runs a kernel, and not of the kernel or of what it calls.
bool is_ours(const CrashPage::Frame& frame) {
  const std::string name = fs::path(frame.module.data()).filename().string();
  return name.empty() || name.starts_with("libattn_diag_host_executor");
}

// Whether the frame is in the C or C++ library.
bool is_system(const CrashPage::Frame& frame) {
  const std::string module = frame.module.data();
  return module.starts_with("/lib") || module.starts_with("/usr/lib") ||
         module.starts_with("linux-vdso");
}

}  // namespace

Frames frames_of(const CrashPage& page) {
  constexpr std::size_t kMost = 8;
  Frames out;
  std::vector<std::string>& frames = out.texts;
  // Only the outermost frame of what the user's code called: abort, not what that does.
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
      out.places.clear();
      continue;
    }
    of_user = of_user || !is_system(frame);
    std::vector<host::SourcePlace> places;
    std::string text = frame_text(frame, places);
    // From here on only what brought the launch to the kernel.
    if (text.find("std::__invoke_impl<") != std::string::npos) break;
    if (!frames.empty() && frames.back() == text) continue;
    frames.push_back(std::move(text));
    out.places.insert(out.places.end(), places.begin(), places.end());
  }
  if (!of_user) return {};
  return out;
}

}  // namespace attn_diag::cli
