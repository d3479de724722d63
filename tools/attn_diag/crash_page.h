// What the child that runs a user's code tells its parent, in memory that both see.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "attn_diag/harness/host/flight_record.h"
#include "harness/guarded_buffer.h"

namespace attn_diag::cli {

struct CrashPage {
  // The command came to its end, with this exit code.
  std::atomic<bool> finished{false};
  int code = 0;

  // What the command was doing: written before every step.
  std::array<char, 256> step{};

  // Filled by the signal handler, or with kExited when exit() was called; everything below is valid if
  // this is not 0.
  static constexpr int kExited = -1;
  std::atomic<int> signal{0};
  bool has_address = false;
  std::uintptr_t address = 0, stack_pointer = 0;
  host::FlightRecord flight;
  bool near_buffer = false;
  NearBuffer buffer;  // its name is a literal of this program: the same in parent and child
  struct Frame {
    std::array<char, 512> module{};  // path of the program or library
    std::uintptr_t offset = 0;       // from where that was loaded
  };
  static constexpr int kMaxFrames = 32;
  std::array<Frame, kMaxFrames> frames{};
  std::atomic<int> num_frames{0};
};

// In the child: from now on signals that end the process fill the page first; SIGUSR2, which the parent
// sends to a child that takes too long, too.
void watch_for_crashes(CrashPage& page);

// Notes what is being done, for the report of a crash. Nothing in a process without a page.
void note_step(const char* step);

}  // namespace attn_diag::cli
