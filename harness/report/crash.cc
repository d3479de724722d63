#include "harness/report/crash.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "harness/report/lines_report.h"
#include "harness/report/text.h"

namespace attn_diag::report {
namespace {

struct SignalName {
  int number;
  const char* name;
  const char* meaning;
};
constexpr SignalName kSignals[] = {
    {SIGSEGV, "SIGSEGV", "segmentation fault"},
    {SIGBUS, "SIGBUS", "bus error: misaligned, or behind the end of a mapped file"},
    {SIGABRT, "SIGABRT", "abort: std::abort, a failed assert, or an exception that nobody caught"},
    {SIGFPE, "SIGFPE", "arithmetic error: an integer division by zero"},
    {SIGILL, "SIGILL", "illegal instruction: built for another processor, or unreachable code"},
    {SIGTRAP, "SIGTRAP", "trap"},
    {SIGKILL, "SIGKILL", "killed: by the system when memory ran out, or by someone"},
};

constexpr std::size_t kMostMade = 4;  // shown of what an address is made of

std::string signal_name(int number) {
  for (const SignalName& s : kSignals)
    if (s.number == number) return s.name;
  return fmt::format("signal {}", number);
}

std::string signal_text(int number) {
  for (const SignalName& s : kSignals)
    if (s.number == number) return fmt::format("{} ({})", s.meaning, s.name);
  const char* const known = ::strsignal(number);
  return fmt::format("{} (signal {})", known == nullptr ? "unknown" : known, number);
}

std::string address_words(const CrashReport& c) {
  switch (c.address_kind) {
    case CrashReport::AddressKind::kNull:
      return "a null pointer, or an index into one";
    case CrashReport::AddressKind::kThreadStack:
      return "below the stack of the kernel's thread: the stack overflowed. A thread has 256 KiB "
             "for "
             "local arrays and calls; look for endless recursion and large local arrays";
    case CrashReport::AddressKind::kHostStack:
      return "below the stack of the host code: it overflowed; look for endless recursion";
    case CrashReport::AddressKind::kBuffer: {
      const auto end = static_cast<std::int64_t>(c.buffer_bytes);
      return c.offset < 0 ? fmt::format("{} bytes before {}, which has {} bytes", count(-c.offset),
                                        c.buffer, count(end))
                          : fmt::format("{} bytes behind the end of {}, which has {} bytes",
                                        count(c.offset - end), c.buffer, count(end));
    }
    case CrashReport::AddressKind::kUnknown:
      break;
  }
  return "no memory of this process";
}

std::string index(const std::array<unsigned, 3>& i) {
  return fmt::format("({}, {}, {})", i[0], i[1], i[2]);
}

// With a blank before it; empty where it is not known.
std::string where(const CrashReport& c) {
  if (!c.where_known) return "";
  const host::FlightRecord& f = c.flight;
  const char* const kernel = f.kernel.data();
  if (f.in_kernel)
    return fmt::format(" in kernel {}, block {}, thread {}", kernel, index(f.block),
                       index(f.thread));
  return kernel[0] == '\0' ? " in host code, before any kernel was launched"
                           : fmt::format(" in host code; the last kernel launched was {}", kernel);
}

const char* json_kind(CrashReport::Kind kind) {
  switch (kind) {
    case CrashReport::Kind::kSignal:
      return "signal";
    case CrashReport::Kind::kExit:
      return "exit";
    case CrashReport::Kind::kTimeout:
      break;
  }
  return "timeout";
}

}  // namespace

bool has_failed_launch(const CrashReport& c) {
  return c.where_known && !c.flight.in_kernel && c.flight.failed[0] != '\0';
}

std::string crash_headline(const CrashReport& c) {
  switch (c.kind) {
    case CrashReport::Kind::kSignal:
      return fmt::format("The code under test crashed{}: {}.", where(c), signal_text(c.code));
    case CrashReport::Kind::kExit:
      return c.where_known
                 ? fmt::format("The code under test ended the process by exit({}),{}.", c.code,
                               where(c))
                 : fmt::format(
                       "The code under test ended the process by _exit({}) or quick_exit({}).",
                       c.code, c.code);
    case CrashReport::Kind::kTimeout:
      break;
  }
  return fmt::format(
      "The code under test did not end within {:g} s (--timeout) and was stopped{}{}.", c.seconds,
      c.where_known ? "," : "", where(c));
}

std::string crash_text(const CrashReport& c, const std::string& again) {
  std::string s;
  const auto line = [&](const std::string& text) { s += "  " + text + '\n'; };
  if (c.has_address) line(fmt::format("Address {:#x}: {}.", c.address, address_words(c)));
  if (c.flight.in_kernel && c.flight.line > 0)
    line(
        fmt::format("The thread last synchronised at {}:{}.", c.flight.file.data(), c.flight.line));
  if (has_failed_launch(c)) line(fmt::format("A launch had failed: {}", c.flight.failed.data()));
  for (std::size_t i = 0; i < c.frames.size(); ++i)
    line((i == 0 ? "At " : "called by ") + c.frames[i]);
  if (!c.found.empty()) line("Before that, attn-diag check finds: " + c.found + '.');
  const auto stands_above = [&](const LinePlace& place) {
    return !c.frames.empty() && c.frames.front().find(fmt::format("{}:{})", place.file,
                                                                  place.line)) != std::string::npos;
  };
  std::size_t said = 0;
  for (const LineSuspect& one : c.lines.suspects) {
    if (stands_above(one.place) || said == kMostMade) continue;
    ++said;
    line(fmt::format("{}:{} {}{}: {}", one.place.file, one.place.line, one.why,
                     one.place.variable.empty() ? "" : " (" + one.place.variable + ")",
                     one.place.text));
  }
  if (c.lines.edits) s += edits_text(*c.lines.edits, {});
  if (!c.step.empty()) line("While at " + c.step + ".");
  line(c.others_kept
           ? "It was not judged. The steps before it are reported; those after it were not tried."
           : "Nothing was judged, and no file was written.");
  line("In a debugger: gdb --args " + again + " --in-process");
  return s;
}

Json crash_json(const CrashReport& c, const CommandContext& context) {
  Json j = json_head(context);
  j["verdict"] = "could_not_compare";
  j["reproduce"] = context.reproduce;
  Json error;
  error["kind"] = json_kind(c.kind);
  error["text"] = crash_headline(c);
  if (c.kind == CrashReport::Kind::kSignal) error["signal"] = signal_name(c.code);
  if (c.kind == CrashReport::Kind::kExit) error["exit_code"] = c.code;
  if (c.kind == CrashReport::Kind::kTimeout) error["seconds"] = c.seconds;
  error["in_kernel"] = c.where_known ? Json(c.flight.in_kernel) : Json(nullptr);
  error["kernel"] = c.flight.kernel[0] == '\0' ? Json(nullptr) : Json(c.flight.kernel.data());
  if (c.flight.in_kernel) {
    error["block"] = c.flight.block;
    error["thread"] = c.flight.thread;
    error["last_synchronised"] =
        c.flight.line > 0 ? Json(fmt::format("{}:{}", c.flight.file.data(), c.flight.line))
                          : Json(nullptr);
  }
  if (c.has_address) {
    error["address"] = fmt::format("{:#x}", c.address);
    error["address_is"] = address_words(c);
  }
  error["frames"] = c.frames;
  error["step"] = c.step;
  if (has_failed_launch(c)) error["failed_launch"] = c.flight.failed.data();
  if (!c.found.empty()) error["check_finds"] = c.found;
  j["error"] = error;
  j["line_divergence"] = c.lines.suspects.empty() ? Json(nullptr) : to_json(c.lines);
  return j;
}

JunitCase crash_junit(const CrashReport& c, const std::string& again) {
  JunitCase one;
  one.class_name = "attn-diag";
  one.name = "the code under test runs to its end";
  one.kind = JunitCase::Kind::kError;
  one.message = crash_headline(c);
  one.detail = crash_text(c, again);
  return one;
}

}  // namespace attn_diag::report
