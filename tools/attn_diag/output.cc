#include "tools/attn_diag/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attn_diag/harness/error.h"

namespace attn_diag::cli {
namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] != '\0';
}

int g_reports = STDOUT_FILENO;  // the descriptor

// 0, or the errno of the write that failed.
int write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    done += static_cast<std::size_t>(n);
  }
  return 0;
}

}  // namespace

void guard_standard_streams() {
  // A closed stdout would otherwise be the number of the next file opened: a dump, perhaps.
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      const int opened = ::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
      if (opened >= 0 && opened != descriptor) ::close(opened);
    }
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error like a full disk
}

report::Style stdout_style() {
  std::setlocale(LC_CTYPE, "");
  report::Style style;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* const term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::strcmp(term, "dumb") == 0;
  const char* const force = std::getenv("CLICOLOR_FORCE");
  const bool forced = is_set("CLICOLOR_FORCE") && std::strcmp(force, "0") != 0;
  style.colour = !is_set("NO_COLOR") && (forced || (terminal && !dumb));
  style.unicode = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
  winsize size{};
  if (terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = std::clamp<int>(size.ws_col, 60, 160);
  return style;
}

void keep_stdout_for_reports() {
  std::fflush(stdout);
  const int kept = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept < 0) return;
  g_reports = kept;
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

void write_stdout(const std::string& text) {
  if (const int failed = write_all(g_reports, text); failed != 0)
    throw Error(
        fmt::format("The output could not be written to stdout: {}.", std::strerror(failed)));
}

TextFile::TextFile(std::string path) : x_path(std::move(path)) {
  struct stat there {};
  if (::stat(x_path.c_str(), &there) == 0 && S_ISDIR(there.st_mode))
    throw Error(fmt::format("{} cannot be written: it is a directory.", x_path));
  if (::stat(x_path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    x_descriptor = ::open(x_path.c_str(), O_WRONLY | O_CLOEXEC);  // a pipe or a device
  } else {
    x_temporary = fmt::format("{}.{}.tmp", x_path, ::getpid());
    x_descriptor = ::open(x_temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (x_descriptor < 0)
    throw Error(fmt::format("{} cannot be written: {}.", x_path, std::strerror(errno)));
}

TextFile::~TextFile() {
  if (x_descriptor >= 0) ::close(x_descriptor);
  if (!x_temporary.empty()) ::unlink(x_temporary.c_str());
}

void TextFile::finish(const std::string& text) {
  int failed = write_all(x_descriptor, text);
  if (::close(x_descriptor) != 0 && failed == 0) failed = errno;
  x_descriptor = -1;
  if (failed == 0 && !x_temporary.empty() && std::rename(x_temporary.c_str(), x_path.c_str()) != 0)
    failed = errno;
  if (failed != 0)
    throw Error(fmt::format("{} could not be written: {}.", x_path, std::strerror(failed)));
  x_temporary.clear();
}

}  // namespace attn_diag::cli
