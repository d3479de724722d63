#include "harness/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "attn_diag/harness/error.h"

namespace attn_diag {
namespace {

void forget_parent() {
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard <= 2 && nowhere >= 0; ++standard) ::dup2(nowhere, standard);
  rlimit core{};
  ::setrlimit(RLIMIT_CORE, &core);
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

}  // namespace

Pipe::Pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(fmt::format("No pipe could be made: {}.", std::strerror(errno)));
  x_read = ends[0];
  x_write = ends[1];
}

Pipe::~Pipe() {
  close_read();
  close_write();
}

void Pipe::close_read() {
  if (x_read >= 0) ::close(std::exchange(x_read, -1));
}

void Pipe::close_write() {
  if (x_write >= 0) ::close(std::exchange(x_write, -1));
}

bool read_some(int from, std::string& to) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(from, buffer.data(), buffer.size());
  if (n > 0) to.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

bool write_all(int to, const void* from, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::write(to, static_cast<const std::byte*>(from) + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

ProcessEnd wait_for(pid_t child) {
  int status = 0;
  rusage used{};
  while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  ProcessEnd end;
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  end.processor_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  return end;
}

pid_t fork_child(const std::function<void()>& work) {
  const pid_t parent = ::getpid();
  const bool main_thread = ::syscall(SYS_gettid) == parent;
  const pid_t child = ::fork();
  if (child < 0) throw Error(fmt::format("No process could be made: {}.", std::strerror(errno)));
  if (child != 0) return child;
  // The signal comes when the thread that forked ends, which others than the main one do in good order.
  if (main_thread) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  forget_parent();
  try {
    work();
  } catch (...) {
    ::abort();
  }
  ::_exit(0);
}

}  // namespace attn_diag
