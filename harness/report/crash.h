// How the process that ran a user's code came to its end, where that was not the end it should have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn_diag/harness/host/flight_record.h"
#include "attn_diag/harness/lines.h"
#include "harness/report/json.h"
#include "harness/report/junit.h"

namespace attn_diag::report {

struct CrashReport {
  enum class Kind : std::uint8_t {
    kSignal,   // `code` is the signal
    kExit,     // the user's code called exit(code)
    kTimeout,  // it was stopped after `seconds`
  };
  // Where the faulting address of a signal is.
  enum class AddressKind : std::uint8_t { kUnknown, kNull, kBuffer, kThreadStack, kHostStack };

  Kind kind = Kind::kSignal;
  int code = 0;
  double seconds = 0;
  std::string step;          // what the command was doing; may be empty
  bool others_kept = false;  // steps before it, which are reported apart

  bool has_address = false;
  std::uint64_t address = 0;
  AddressKind address_kind = AddressKind::kUnknown;
  std::string buffer;              // of kBuffer: its name,
  std::int64_t offset = 0;         // bytes from its start,
  std::uint64_t buffer_bytes = 0;  // and its size

  // SIGKILL and _exit() leave no time to look: then nothing below is known.
  bool where_known = true;
  host::FlightRecord flight;
  // Where it was, innermost first: "function (file:line)", of the user's code and what that called.
  std::vector<std::string> frames;
  std::string found;  // out of bounds before the crash, by attn-diag check
  LineDivergence
      lines;  // of a crash: the line, and what its address is made of; with `found`, of that first
};

// Whether a launch had failed before host code ended the process.
bool has_failed_launch(const CrashReport& crash);

// "./mine.so:x crashed: segmentation fault (SIGSEGV), ..." One line, complete.
std::string crash_headline(const CrashReport& crash);
// The lines below it, each indented.
std::string crash_text(const CrashReport& crash, const std::string& again);
// With the keys that every report has, and "error".
Json crash_json(const CrashReport& crash, const CommandContext& context);
JunitCase crash_junit(const CrashReport& crash, const std::string& again);

}  // namespace attn_diag::report
