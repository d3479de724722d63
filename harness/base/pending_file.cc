#include "harness/base/pending_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "attn_diag/harness/error.h"

namespace attn_diag {
namespace {

std::string exists_message(const std::string& path) {
  return fmt::format("{} exists already. Choose another name, or give --force to replace it.",
                     path);
}

}  // namespace

std::string where_it_leads(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  namespace fs = std::filesystem;
  fs::path at(path);
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 ? !S_ISREG(there.st_mode) : errno != ENOENT) return path;
  std::error_code error;
  for (int link = 0; link < kMostLinks && fs::is_symlink(at, error); ++link)
    at = at.parent_path() / fs::read_symlink(at, error);
  return at.string();
}

PendingFile::PendingFile(const std::string& path, bool replace)
    : x_path(where_it_leads(path)), x_replace(replace) {
  require_free();
  const std::filesystem::path target(x_path);
  std::filesystem::path directory = target.parent_path();
  if (directory.empty()) directory = ".";
  if (target.filename().empty())
    throw Error(fmt::format("{} names a directory. Name a file to write.", path));
  for (int attempt = 0;; ++attempt) {
    x_temporary =
        directory / fmt::format(".{}.{}-{}.part", target.filename().string(), getpid(), attempt);
    const int fd = open(x_temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      // Not left as a placeholder: ext4 flushes a file that was truncated when it is closed.
      close(fd);
      unlink(x_temporary.c_str());
      return;
    }
    if (errno == EEXIST) continue;
    throw Error(
        fmt::format("Could not create {} in {}: {}. Name a file in a directory that exists "
                    "and can be written.",
                    target.filename().string(), directory.string(), std::strerror(errno)));
  }
}

PendingFile::~PendingFile() {
  if (!x_committed) unlink(x_temporary.c_str());
}

void PendingFile::commit() {
  // RENAME_NOREPLACE closes the gap between looking and renaming; not every file system has it.
  bool renamed = false, unsupported = true;
  if (!x_replace) {
    renamed =
        renameat2(AT_FDCWD, x_temporary.c_str(), AT_FDCWD, x_path.c_str(), RENAME_NOREPLACE) == 0;
    if (!renamed && errno == EEXIST) throw Error(exists_message(x_path));
    unsupported = !renamed && (errno == EINVAL || errno == ENOSYS);
  }
  if (!renamed && unsupported) {
    require_free();
    renamed = rename(x_temporary.c_str(), x_path.c_str()) == 0;
  }
  if (!renamed)
    throw Error(
        fmt::format("Could not rename the finished file to {}: {}.", x_path, std::strerror(errno)));
  x_committed = true;
}

void PendingFile::require_free() const {
  struct stat status;
  if (stat(x_path.c_str(), &status) != 0) return;
  if (!S_ISREG(status.st_mode))
    throw Error(
        fmt::format("{} is not a regular file and cannot be replaced. Name a file to "
                    "write.",
                    x_path));
  if (!x_replace) throw Error(exists_message(x_path));
}

}  // namespace attn_diag
