#include "harness/base/helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include "attn_diag/harness/error.h"
#include "harness/base/child_process.h"

namespace attn_diag {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

enum class Reply : std::uint8_t { kAnswer, kError, kNoMemory };

bool send_all(int socket, const void* from, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n =
        ::send(socket, static_cast<const std::byte*>(from) + done, size - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_all(int socket, void* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::recv(socket, static_cast<std::byte*>(to) + done, size - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

void lower(__rlimit_resource resource, std::uint64_t limit) {
  rlimit now{};
  getrlimit(resource, &now);
  now.rlim_cur = std::min<rlim_t>(now.rlim_max, limit);
  setrlimit(resource, &now);
}

std::uint64_t address_space() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void obey(const HelperLimits& limits) {
  if (limits.processor_seconds > 0)
    lower(RLIMIT_CPU, static_cast<std::uint64_t>(std::ceil(limits.processor_seconds)));
  if (limits.memory > 0 && !kSanitized) lower(RLIMIT_AS, address_space() + limits.memory);
}

void serve(int socket, const Helper::Answer& answer) {
  for (;;) {
    std::uint64_t size = 0;
    if (!receive_all(socket, &size, sizeof size)) return;  // nobody asks any more
    Reply kind = Reply::kAnswer;
    Bytes reply;
    try {
      Bytes question(size);
      if (!receive_all(socket, question.data(), size)) return;
      reply = answer(question);
    } catch (const Error& e) {
      kind = Reply::kError;
      const std::string_view what = e.what();
      reply.resize(what.size());
      std::memcpy(reply.data(), what.data(), what.size());
    } catch (const std::bad_alloc&) {
      kind = Reply::kNoMemory;
      reply.clear();
    }
    size = reply.size();
    if (!send_all(socket, &kind, sizeof kind) || !send_all(socket, &size, sizeof size) ||
        !send_all(socket, reply.data(), reply.size()))
      return;
  }
}

std::string words(const ProcessEnd& end) {
  if (end.signal == 0) return fmt::format("it ended the process by exit({})", end.exit_code);
  const char* const name = ::strsignal(end.signal);
  return fmt::format("{}", name == nullptr ? "unknown signal" : name);
}

}  // namespace

Helper::Helper(const HelperLimits& limits, const Answer& answer) : x_limits(limits) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error(fmt::format("No socket could be made: {}.", std::strerror(errno)));
  x_socket = ends[0];
  try {
    x_child = fork_child([&] {
      ::close(ends[0]);
      obey(limits);
      serve(ends[1], answer);
    });
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
}

Helper::~Helper() {
  if (x_socket >= 0) ::close(x_socket);
  if (x_child <= 0) return;
  ::kill(x_child, SIGKILL);
  wait_for(x_child);
}

void Helper::lost(bool too_long) {
  using How = HelperLost::How;
  ::close(std::exchange(x_socket, -1));
  if (too_long) ::kill(x_child, SIGKILL);
  const ProcessEnd end = wait_for(std::exchange(x_child, -1));
  if (too_long)
    throw HelperLost(How::kTookTooLong,
                     fmt::format("it took more than {:g} s", x_limits.seconds_per_answer));
  if (end.signal == SIGXCPU)
    throw HelperLost(How::kTookTooLong, fmt::format("it took more than {:g} s of processor time",
                                                    x_limits.processor_seconds));
  throw HelperLost(end.signal == 0 ? How::kExited : How::kCrashed, words(end));
}

void Helper::receive(std::byte* to, std::size_t size) {
  constexpr std::size_t kPiece = std::size_t{1} << 26;
  for (std::size_t done = 0; done < size;) {
    pollfd polled{x_socket, POLLIN, 0};
    const int patience =
        x_limits.seconds_per_answer > 0 ? static_cast<int>(1000 * x_limits.seconds_per_answer) : -1;
    const int ready = ::poll(&polled, 1, patience);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) lost(true);
    const ssize_t n = ::recv(x_socket, to + done, std::min(kPiece, size - done), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) lost(false);
    done += static_cast<std::size_t>(n);
  }
}

Bytes Helper::ask(const Bytes& question) {
  const std::lock_guard lock(x_turn);
  if (x_socket < 0) throw HelperLost(HelperLost::How::kCrashed, "it has ended before");
  std::uint64_t size = question.size();
  if (!send_all(x_socket, &size, sizeof size) ||
      !send_all(x_socket, question.data(), question.size()))
    lost(false);
  Reply kind{};
  receive(reinterpret_cast<std::byte*>(&kind), sizeof kind);
  receive(reinterpret_cast<std::byte*>(&size), sizeof size);
  // The size it announces is believed only as far as bytes come.
  constexpr std::uint64_t kStep = std::uint64_t{1} << 28;
  Bytes reply;
  while (reply.size() < size) {
    const std::size_t had = reply.size();
    reply.resize(std::min(size, had + kStep));
    receive(reply.data() + had, reply.size() - had);
  }
  if (kind == Reply::kNoMemory) throw std::bad_alloc();
  if (kind == Reply::kError)
    throw Error(std::string(reinterpret_cast<const char*>(reply.data()), reply.size()));
  return reply;
}

WireWriter& WireWriter::number(std::uint64_t value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  x_bytes.insert(x_bytes.end(), from, from + sizeof value);
  return *this;
}

WireWriter& WireWriter::text(std::string_view value) {
  number(value.size());
  const auto* from = reinterpret_cast<const std::byte*>(value.data());
  x_bytes.insert(x_bytes.end(), from, from + value.size());
  return *this;
}

WireWriter& WireWriter::texts(const std::vector<std::string>& values) {
  number(values.size());
  for (const std::string& value : values) text(value);
  return *this;
}

const std::byte* WireReader::next(std::size_t size) {
  if (size > x_bytes.size() - x_at)
    throw HelperLost(HelperLost::How::kCrashed, "its answer makes no sense");
  return x_bytes.data() + std::exchange(x_at, x_at + size);
}

std::uint64_t WireReader::number() {
  std::uint64_t value = 0;
  std::memcpy(&value, next(sizeof value), sizeof value);
  return value;
}

std::size_t WireReader::count() {
  const std::uint64_t n = number();
  if (n > x_bytes.size() - x_at)
    throw HelperLost(HelperLost::How::kCrashed, "its answer makes no sense");
  return n;
}

std::string WireReader::text() {
  const std::size_t size = count();
  return {reinterpret_cast<const char*>(next(size)), size};
}

std::vector<std::string> WireReader::texts() {
  std::vector<std::string> values(count());
  for (std::string& value : values) value = text();
  return values;
}

}  // namespace attn_diag
