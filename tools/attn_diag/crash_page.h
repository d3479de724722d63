// What the child that runs a user's code tells its parent, in memory that both see.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/host/call_clock.h"
#include "attn_diag/harness/host/flight_record.h"
#include "harness/report/junit.h"
#include "harness/run/guarded_buffer.h"

namespace attn_diag::cli {

struct CrashPage {
  pid_t process = 0;  // the child's; copies of it that the user's code makes have no say here

  // The command came to its end, with this exit code.
  std::atomic<bool> finished{false};
  int code = 0;

  // How long the code under test has been running.
  host::CallClock clock;

  // What the command was doing: written before every step.
  std::array<char, 256> step{};

  // The words of the attn-diag check that looks at the case in progress, each with a zero behind it.
  std::array<char, 4096> check{};

  // A file of what the command would report if it ended here, rewritten by keep_report(); -1: none.
  int report = -1;

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

// Notes how attn-diag check looks at the case that comes next. Nothing in a process without a page.
void note_check(const std::vector<std::string>& words);

// What is written if the process does not end by itself from here on.
struct KeptReport {
  std::string out;  // to stdout
  std::vector<report::JunitCase> junit;
};
void keep_report(const KeptReport& report);
// In the parent: the last that was kept; empty if none was.
KeptReport kept_report(const CrashPage& page);

}  // namespace attn_diag::cli
