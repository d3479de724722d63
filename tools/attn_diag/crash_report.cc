#include "tools/attn_diag/crash_report.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "harness/base/pending_file.h"
#include "harness/base/printable.h"
#include "harness/lines/crash_lines.h"
#include "harness/report/junit.h"
#include "tools/attn_diag/crash_check.h"
#include "tools/attn_diag/located_output.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/repair_case.h"
#include "tools/attn_diag/source_lines.h"

namespace attn_diag::cli {
namespace {

using report::CrashReport;
namespace fs = std::filesystem;

constexpr std::uintptr_t kNullPages = 64 * 1024;
constexpr std::uintptr_t kNearStack = 256 * 1024;  // a frame may be this large

CrashReport::AddressKind address_kind_of(const CrashPage& page) {
  const std::uintptr_t at = page.address;
  if (at < kNullPages) return CrashReport::AddressKind::kNull;
  if (page.near_buffer) return CrashReport::AddressKind::kBuffer;
  const host::FlightRecord& flight = page.flight;
  if (flight.in_kernel)
    return at < flight.stack_bottom && flight.stack_bottom - at <= kNearStack
               ? CrashReport::AddressKind::kThreadStack
               : CrashReport::AddressKind::kUnknown;
  const std::uintptr_t distance =
      at > page.stack_pointer ? at - page.stack_pointer : page.stack_pointer - at;
  return distance <= kNearStack ? CrashReport::AddressKind::kHostStack
                                : CrashReport::AddressKind::kUnknown;
}

bool is_one_line(const std::string& file, int line, const std::string& other, int other_line) {
  return line == other_line && fs::path(file).filename() == fs::path(other).filename();
}

// An access out of bounds that went well comes before the one that did not.
void put_out_of_bounds_first(const CrashPage& page, const std::vector<host::SourcePlace>& crashed,
                             CrashReport& crash) {
  const std::optional<OutOfBounds> found = first_out_of_bounds(page);
  if (!found) return;
  const host::SourcePlace& first = found->places.front();
  if (!crashed.empty() &&
      is_one_line(crashed.front().file, crashed.front().line, first.file, first.line))
    return;
  crash.found = found->message;
  LineDivergence lines = lines::crash_lines(found->places, lines::CrashOf::kBounds, found->message);
  for (LineSuspect& suspect : crash.lines.suspects) {
    const auto is_same = [&](const LineSuspect& one) {
      return is_one_line(one.place.file, one.place.line, suspect.place.file, suspect.place.line);
    };
    if (std::none_of(lines.suspects.begin(), lines.suspects.end(), is_same))
      lines.suspects.push_back(std::move(suspect));
  }
  crash.lines = std::move(lines);
}

CrashReport describe(const CrashPage& page, const HowItEnded& ended, bool may_check) {
  CrashReport crash;
  crash.kind = ended.kind;
  crash.code = ended.code;
  crash.seconds = ended.seconds;
  crash.step = page.step.data();
  crash.where_known = page.signal != 0;
  if (!crash.where_known) return crash;
  crash.flight = page.flight;
  Frames frames = frames_of(page);
  crash.frames = std::move(frames.texts);
  if (crash.kind == CrashReport::Kind::kSignal) {
    const bool divides = crash.code == SIGFPE;
    const bool accesses = crash.code == SIGSEGV || crash.code == SIGBUS;
    // What host code was asked to do is seldom why it crashed: its callers are not looked at.
    if (!page.flight.in_kernel && frames.places.size() > 1) frames.places.resize(1);
    crash.lines = lines::crash_lines(frames.places,
                                     divides    ? lines::CrashOf::kDivisor
                                     : accesses ? lines::CrashOf::kAddress
                                                : lines::CrashOf::kOther,
                                     report::crash_headline(crash));
    if (may_check && page.flight.in_kernel && !divides)
      put_out_of_bounds_first(page, frames.places, crash);
  }
  // As code does that calls exit() where a launch has failed.
  if (crash.kind == CrashReport::Kind::kExit && report::has_failed_launch(crash)) {
    const host::FlightRecord& flight = crash.flight;
    if (flight.failed_line > 0)
      crash.lines = lines::crash_lines({{flight.failed_file.data(), flight.failed_line, ""}},
                                       lines::CrashOf::kOther, flight.failed.data());
    if (may_check) put_out_of_bounds_first(page, {}, crash);
  }
  if (crash.kind == CrashReport::Kind::kTimeout)
    crash.lines = lines::endless_lines(frames.places, report::crash_headline(crash));
  if (!page.has_address) return crash;
  crash.has_address = true;
  crash.address = page.address;
  crash.address_kind = address_kind_of(page);
  if (crash.address_kind == CrashReport::AddressKind::kBuffer) {
    crash.buffer = page.buffer.name;
    crash.offset = page.buffer.offset;
    crash.buffer_bytes = page.buffer.bytes;
  }
  return crash;
}

}  // namespace

void remove_temporary_files(const Session& session, pid_t child) {
  const Flags& flags = session.flags;
  // As TextFile and PendingFile name them.
  std::error_code ignored;
  if (!flags.junit.empty())
    fs::remove(fmt::format("{}.{}.tmp", where_it_leads(flags.junit), child), ignored);
  if (!flags.located.sarif.empty())
    fs::remove(fmt::format("{}.{}.tmp", where_it_leads(flags.located.sarif), child), ignored);
  if (flags.output.empty()) return;
  const fs::path target(where_it_leads(flags.output));
  const std::string prefix = fmt::format(".{}.{}-", target.filename().string(), child);
  const fs::path directory = target.parent_path().empty() ? "." : target.parent_path();
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".part")) fs::remove(entry.path(), ignored);
  }
}

int report_crash(const Session& session, const CrashPage& page, const HowItEnded& ended,
                 pid_t child) {
  remove_temporary_files(session, child);
  const Flags& flags = session.flags;
  const std::string again = session.this_command();
  CrashReport crash = describe(page, ended, flags.command != "check");
  if (const double seconds = edit_seconds(flags); seconds > 0) {
    Progress progress(!flags.quiet);
    try_edits(flags, seconds, progress, crash.lines);
  }
  const KeptReport kept = kept_report(page);
  crash.others_kept = !kept.out.empty();
  std::string text = "attn-diag: error: " + report::crash_headline(crash) + '\n';
  if (!flags.quiet) text += report::crash_text(crash, again);
  write_stderr(text);
  if (!flags.junit.empty()) {
    std::vector<report::JunitCase> cases = kept.junit;
    cases.push_back(report::crash_junit(crash, again));
    TextFile junit(flags.junit);
    junit.finish(report::junit_xml("attn-diag " + flags.command, cases));
  }
  CommandResult outcome;
  outcome.code = ExitCode::kCouldNotCompare;
  if (flags.command == "check" || flags.command == "trace") {
    LocatedOutput located(session);
    located.finish({report::unplaced("crash", report::crash_headline(crash))}, outcome);
    if (!outcome.out.empty()) write_stdout(outcome.out);
  }
  if (flags.json) {
    report::Json json = report::crash_json(crash, {flags.command, again, ATTN_DIAG_VERSION});
    if (crash.others_kept) json["before"] = report::Json::parse(kept.out);
    write_stdout(report::dump_json(json));
  } else if (crash.others_kept) {
    write_stdout(printable(kept.out, session.style.colour));
  }
  return static_cast<int>(ExitCode::kCouldNotCompare);
}

}  // namespace attn_diag::cli
