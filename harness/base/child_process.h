// Forked processes, what they send home, and how they end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace attn_diag {

// Throws Error if none can be made. Programs that are started do not inherit it.
class Pipe {
 public:
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return x_read; }
  int write_end() const { return x_write; }
  int take_read_end() { return std::exchange(x_read, -1); }
  void close_read();
  void close_write();

 private:
  int x_read = -1, x_write = -1;
};

// Appends what is there. False at the end of the data, or where it cannot be read.
bool read_some(int from, std::string& to);
// False if nobody reads any more.
bool write_all(int to, const void* from, std::size_t size);

struct ProcessEnd {
  int exit_code = -1;            // -1: it did not end by itself
  int signal = 0;                // that ended it
  double processor_seconds = 0;  // of its own, not of what it started
};

// Until it has ended.
ProcessEnd wait_for(pid_t child);

// A fork of this process that calls `work` and ends with exit code 0, by abort() if it throws. It keeps nothing that
// this process has set up for itself: handlers, blocked signals, where it writes. It leaves no core file, and ends when
// the thread that forked does, if that is the main one. Throws Error if no process can be made.
pid_t fork_child(const std::function<void()>& work);

}  // namespace attn_diag
