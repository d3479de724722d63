// A forked child that does what may crash, loop or take all memory: reading a file of others with a library of
// others, or loading a kernel library to see what it is. It answers questions until its Helper is gone.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attn_diag {

using Bytes = std::vector<std::byte>;

// Limits of a helper; 0: none.
struct HelperLimits {
  std::uint64_t memory = 0;       // bytes, beyond what this process has
  double processor_seconds = 0;   // in all
  double seconds_per_answer = 0;  // by the clock
};

// The helper came to an end that it should not have come to.
class HelperLost : public std::runtime_error {
 public:
  enum class How : std::uint8_t { kCrashed, kExited, kTookTooLong };
  HelperLost(How how, const std::string& what) : std::runtime_error(what), x_how(how) {}
  How how() const { return x_how; }

 private:
  How x_how;
};

// A library that takes longer to load is taken to hang.
inline constexpr double kSecondsToLoad = 20;

class Helper {
 public:
  // Called in the child. If it throws Error or std::bad_alloc, ask() throws that in the parent.
  using Answer = std::function<Bytes(const Bytes& question)>;

  // Throws Error if no process can be made.
  Helper(const HelperLimits& limits, const Answer& answer);
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Any thread may ask. Throws what the answer threw, or HelperLost.
  Bytes ask(const Bytes& question);

 private:
  [[noreturn]] void lost(bool too_long);
  void receive(std::byte* to, std::size_t size);

  HelperLimits x_limits;
  std::mutex x_turn;
  pid_t x_child = -1;
  int x_socket = -1;
};

// Questions and answers: numbers and texts one after the other.
class WireWriter {
 public:
  WireWriter& number(std::uint64_t value);
  WireWriter& truth(bool value) { return number(value ? 1 : 0); }
  WireWriter& text(std::string_view value);
  WireWriter& texts(const std::vector<std::string>& values);
  Bytes take() { return std::move(x_bytes); }

 private:
  Bytes x_bytes;
};

// Throws HelperLost for what no WireWriter has written.
class WireReader {
 public:
  explicit WireReader(const Bytes& bytes) : x_bytes(bytes) {}
  std::uint64_t number();
  std::int64_t signed_number() { return static_cast<std::int64_t>(number()); }
  bool truth() { return number() != 0; }
  std::string text();
  std::vector<std::string> texts();
  std::size_t count();  // of what follows: no more than there are bytes left

 private:
  const std::byte* next(std::size_t size);

  const Bytes& x_bytes;
  std::size_t x_at = 0;
};

}  // namespace attn_diag
