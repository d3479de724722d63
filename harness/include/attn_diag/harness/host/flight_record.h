// What the executor was running when something went wrong: for signal handlers.
#pragma once

#include <array>
#include <cstdint>

namespace attn_diag::host {

struct FlightRecord {
  bool in_kernel = false;            // a thread of a kernel was running
  std::array<char, 256> kernel{};    // its name; otherwise that of the last kernel launched, or ""
  std::array<unsigned, 3> block{};   // of a kernel: blockIdx,
  std::array<unsigned, 3> thread{};  // threadIdx,
  std::array<char, 256> file{};      // and where it last synchronised; "" if it has not yet
  int line = 0;
  std::uintptr_t stack_bottom = 0, stack_top = 0;  // of that thread
  std::array<char, 1024> failed{};  // what was wrong with the launch that failed last; "": none has
  std::array<char, 256> failed_file{};  // and where; "" if that is not known
  int failed_line = 0;
};

// From now on launches note the names of their kernels, which takes a microsecond each.
void enable_flight_records();

// What the calling thread does or, if it runs no kernel, any thread that does. Safe in a signal handler; for
// another thread it is what that was doing about now.
void read_flight_record(FlightRecord& out) noexcept;

}  // namespace attn_diag::host
