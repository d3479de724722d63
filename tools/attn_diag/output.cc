#include "tools/attn_diag/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "attn_diag/harness/error.h"
#include "harness/base/pending_file.h"
#include "harness/base/printable.h"

namespace attn_diag::cli {
namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] != '\0';
}

int g_reports = STDOUT_FILENO;  // the descriptor
SharedOutput* g_shared = nullptr;

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

// Which file a descriptor is; none if it is closed.
std::optional<std::pair<dev_t, ino_t>> identity(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return std::nullopt;
  return std::pair{status.st_dev, status.st_ino};
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
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored nobody learns how a child ended
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

// Address space; memory is used as far as it is written to.
struct SharedOutput::Part {
  static constexpr std::size_t kRoom = std::size_t{1} << 30;
  std::size_t size = 0;
  char text[kRoom];
};

SharedOutput::SharedOutput() {
  void* const memory = ::mmap(nullptr, 2 * sizeof(Part), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) x_memory = memory;
}

SharedOutput::~SharedOutput() {
  if (x_memory != nullptr) ::munmap(x_memory, 2 * sizeof(Part));
}

void SharedOutput::take_over() { g_shared = this; }

bool SharedOutput::put(int part, const std::string& text) {
  if (x_memory == nullptr) return false;
  Part& to = static_cast<Part*>(x_memory)[part];
  if (text.size() > Part::kRoom - to.size) return false;
  std::memcpy(to.text + to.size, text.data(), text.size());
  to.size += text.size();
  return true;
}

void SharedOutput::write_out() {
  if (x_memory == nullptr) return;
  const auto* parts = static_cast<const Part*>(x_memory);
  write_stderr({parts[1].text, parts[1].size});
  write_stdout({parts[0].text, parts[0].size});
}

bool stdout_is_terminal() { return ::isatty(g_reports) == 1; }

void write_stderr(const std::string& raw) {
  const std::string text = printable(raw, true);
  if (g_shared == nullptr || !g_shared->put(1, text)) write_all(STDERR_FILENO, text);
}

void write_stdout(const std::string& text) {
  if (g_shared != nullptr && g_shared->put(0, text)) return;
  if (const int failed = write_all(g_reports, text); failed != 0)
    throw Error(
        fmt::format("The output could not be written to stdout: {}.", std::strerror(failed)));
}

TextFile::TextFile(const std::string& path)
    : x_path(where_it_leads(std::filesystem::absolute(path).string())) {
  struct stat there {};
  const bool exists = ::stat(x_path.c_str(), &there) == 0;
  const std::pair file{there.st_dev, there.st_ino};
  if (exists && S_ISDIR(there.st_mode))
    throw Error(fmt::format("{} cannot be written: it is a directory.", x_path));
  const bool is_stdout =
      path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
  if (is_stdout || (exists && (file == identity(g_reports) || file == identity(STDERR_FILENO)))) {
    // Written in turn with what else is written there.
    x_descriptor = ::fcntl(is_stdout || file == identity(g_reports) ? g_reports : STDERR_FILENO,
                           F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  } else if (exists && !S_ISREG(there.st_mode)) {
    x_descriptor = ::open(x_path.c_str(), O_WRONLY | O_CLOEXEC);  // a pipe or a device
  } else {
    x_temporary = fmt::format("{}.{}.tmp", x_path, ::getpid());
    x_descriptor = ::open(x_temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (x_descriptor < 0)
    throw Error(fmt::format("{} cannot be written: {}.", path, std::strerror(errno)));
  x_opened = identity(x_descriptor);
}

TextFile::~TextFile() {
  if (x_descriptor >= 0 && identity(x_descriptor) == x_opened) ::close(x_descriptor);
  if (!x_temporary.empty()) ::unlink(x_temporary.c_str());
}

void TextFile::finish(const std::string& text) {
  if (identity(x_descriptor) != x_opened)  // user code closed it, and may have opened another
    x_descriptor =
        ::open((x_temporary.empty() ? x_path : x_temporary).c_str(), O_WRONLY | O_CLOEXEC);
  if (x_descriptor < 0)
    throw Error(fmt::format("{} could not be written: {}.", x_path, std::strerror(errno)));
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
