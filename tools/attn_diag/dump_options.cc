#include "tools/attn_diag/dump_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "attn_diag/harness/error.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {

DumpOptions parse_dump_options(const Flags& f) {
  DumpOptions options;
  options.force = f.force;
  if (!f.deflate.empty())
    options.deflate = static_cast<int>(parse_int("--deflate", f.deflate, 1, 9));
  options.with_reference = f.with_reference;
  if (!f.threads.empty())
    options.threads = static_cast<int>(parse_int("--threads", f.threads, 1, 1024));
  return options;
}

void require_writable(const std::string& path, bool force) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw Error(fmt::format("{} is a directory: name a file.", path));
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    throw Error(fmt::format("{} is not a regular file: an HDF5 file cannot be put there.", path));
  if (!force && fs::exists(path, ignored))
    throw Error(fmt::format("{} exists already. Use --force to overwrite it.", path));
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(
        fmt::format("{} cannot be written: {}: {}.", path, folder.string(), std::strerror(errno)));
}

std::string dump_words(const Flags& f) {
  std::string words;
  if (!f.deflate.empty()) words += " --deflate " + f.deflate;
  if (f.with_reference) words += " --with-reference";
  return words + " --force";
}

}  // namespace attn_diag::cli
