// What a checker has seen, with source lines.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "attn_diag/harness/host/symbolizer.h"
#include "attn_diag_host/stand_in_headers.h"
#include "harness/host/check/checker.h"
#include "harness/host/text.h"

namespace attn_diag::host {
namespace {

std::array<unsigned, 3> position(std::uint64_t linear, const dim3& shape) {
  return {static_cast<unsigned>(linear % shape.x),
          static_cast<unsigned>(linear / shape.x % shape.y),
          static_cast<unsigned>(linear / shape.x / shape.y)};
}

auto line_of(const CheckAccess& access) {
  return access.places.empty() ? std::tuple(access.symbol, 0)
                               : std::tuple(access.places.front().file, access.places.front().line);
}

// Whether both are about the same two lines, in either order: which comes first is up to the schedule. Lanes of
// one warp that meet at lines at which other threads meet too are no finding of their own.
bool is_same_pair(const CheckFinding& a, const CheckFinding& b) {
  if (a.kind != b.kind || a.kernel != b.kernel || a.has_other != b.has_other) return false;
  // An index past the end of an array's type, and the access outside the array that follows.
  const bool is_index = a.space.empty() || b.space.empty();
  if (a.kind == CheckKind::kOutOfBounds && is_index) return line_of(a.access) == line_of(b.access);
  if (a.array != b.array) return false;
  if (!a.has_other) return a.message == b.message && line_of(a.access) == line_of(b.access);
  // Equal values where other accesses of these lines race are nothing apart.
  const bool any_access = a.severity == Severity::kBenign || b.severity == Severity::kBenign;
  const auto same = [&](const CheckAccess& x, const CheckAccess& y) {
    return (any_access || x.write == y.write) && line_of(x) == line_of(y);
  };
  return (same(a.access, b.access) && same(a.other, b.other)) ||
         (same(a.access, b.other) && same(a.other, b.access));
}

// A read that comes before the store it races with reads what nobody has written; the race says why.
bool is_consequence(const CheckFinding& read, const CheckFinding& race) {
  if (read.kind != CheckKind::kUninitialisedRead || race.kind != CheckKind::kRace) return false;
  if (race.severity == Severity::kBenign || read.array != race.array) return false;
  const auto reads_there = [&](const CheckAccess& a) {
    return !a.write && line_of(a) == line_of(read.access);
  };
  return reads_there(race.access) || reads_there(race.other);
}

// Whether it is about a load that no line of the source makes: the compiler may load early, and throw away what the
// source would not have loaded.
bool is_of_compilers_load(const SeenFinding& seen, const SourceLines& lines) {
  if (seen.kind != CheckKind::kUninitialisedRead && seen.kind != CheckKind::kRace) return false;
  const auto is = [&](const SeenAccess& a) {
    return !a.write && !a.atomic && lines.without_line.count(a.pc) != 0;
  };
  return is(seen.access) || (seen.has_other && is(seen.other));
}

// Which of two accesses came first is up to the schedule; between which lines a barrier can stand is not.
void name_lines_to_part(CheckFinding& finding) {
  if (finding.access.places.empty() || finding.other.places.empty()) return;
  const SourcePlace &a = finding.access.places.front(), &b = finding.other.places.front();
  if (a.file != b.file || a.function != b.function || a.line == b.line) return;
  finding.advice =
      concat("Put __syncthreads() between line ", std::min(a.line, b.line), " and line ",
             std::max(a.line, b.line), "; in a loop, between its steps as well");
}

void sort_by_severity(std::vector<CheckFinding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const CheckFinding& a, const CheckFinding& b) {
                     return static_cast<int>(a.severity) < static_cast<int>(b.severity);
                   });
}

// Of a path as the kernel or its debug information has it.
std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The statement is known from the kernel itself; what called it is not. Of what lies on a stack an address is the one if
// its line is that of the statement, and one further up if it lies where the function before it returns to.
void add_callers(std::vector<SourcePlace>& places, const std::vector<StackWord>& returns,
                 const SourceLines& lines, const std::string& library) {
  if (places.empty()) return;
  const auto is_statement = [place = places.front()](const SourcePlace& one) {
    return one.line == place.line && name_of(one.file) == name_of(place.file);
  };
  const auto stack_of = [&](const StackWord& word) -> const std::vector<SourcePlace>& {
    return lines.places.at(word.value);
  };
  // Up to where the kernel was launched.
  const auto add = [&](auto begin, auto end) {
    const auto launch = std::find_if(
        begin, end, [](const SourcePlace& place) { return is_stand_in_header(place.file); });
    places.insert(places.end(), begin, launch);
    return launch == end;
  };
  auto word = std::find_if(returns.begin(), returns.end(), [&](const StackWord& one) {
    return std::any_of(stack_of(one).begin(), stack_of(one).end(), is_statement);
  });
  if (word == returns.end()) return;
  const auto at = std::find_if(stack_of(*word).begin(), stack_of(*word).end(), is_statement);
  if (!add(std::next(at), stack_of(*word).end())) return;
  std::vector<std::uint64_t> offsets;
  for (auto other = word; other != returns.end(); ++other) offsets.push_back(other->value);
  const std::map<std::uint64_t, std::int64_t> frames = find_frames(library, offsets);
  const auto caller_of = [&](const StackWord& called) {
    const auto frame = frames.find(called.value);
    if (frame == frames.end()) return returns.end();
    // Behind the return the stack pointer is one word further up.
    const std::uintptr_t at =
        called.at + sizeof(called.at) + static_cast<std::uintptr_t>(frame->second);
    return std::find_if(returns.begin(), returns.end(),
                        [&](const StackWord& one) { return one.at == at; });
  };
  // What was called may have kept the address elsewhere, too.
  word = std::find_if(word, returns.end(), [&, value = word->value](const StackWord& one) {
    return one.value == value && caller_of(one) != returns.end();
  });
  while (word != returns.end() && (word = caller_of(*word)) != returns.end())
    if (!add(stack_of(*word).begin(), stack_of(*word).end())) return;
}

}  // namespace

CheckReport Checker::report() const {
  std::map<std::string, std::set<std::uint64_t>> wanted;
  for (const SeenFinding& seen : x_findings) {
    std::set<std::uint64_t>& offsets = wanted[x_launches[seen.launch].library];
    offsets.insert(seen.access.pc);
    if (seen.has_other) offsets.insert(seen.other.pc);
    if (seen.wait) offsets.insert(seen.wait->pc);
    if (seen.writer) offsets.insert(*seen.writer);
  }
  for (const EndedLaunch& ended : x_ended_launches)
    for (const Returns& returns : ended.returns)
      for (const StackWord& word : returns)
        wanted[x_launches[ended.launch].library].insert(word.value);
  for (const auto& [from, what] : x_unseen) wanted[x_launches[from.launch].library].insert(from.pc);
  CheckReport report;
  report.summary = x_summary;
  std::map<std::string, SourceLines> lines;
  for (const auto& [library, offsets] : wanted) {
    lines[library] = find_source_lines(library, {offsets.begin(), offsets.end()});
    if (!lines[library].problem.empty()) report.summary.symbolizer_note = lines[library].problem;
  }

  const auto place = [&](CheckAccess& access, std::uint32_t pc, const LaunchSeen& launch) {
    access.places = users_places(lines[launch.library].places[pc]);
    if (access.places.empty()) {
      const std::size_t slash = launch.library.rfind('/');
      access.symbol =
          concat(slash == std::string::npos ? launch.library : launch.library.substr(slash + 1),
                 "+0x", std::hex, pc);
    }
  };
  const auto resolve = [&](const SeenAccess& seen, const LaunchSeen& launch) {
    CheckAccess access;
    access.block = position(seen.block, launch.grid);
    access.thread = position(seen.thread, launch.block);
    access.interval = seen.interval;
    access.bytes = seen.bytes;
    access.write = seen.write;
    access.atomic = seen.atomic;
    access.is_volatile = seen.is_volatile;
    access.async = seen.async;
    access.tile = seen.tile;
    place(access, seen.pc, launch);
    return access;
  };
  for (const auto& [from, what] : x_unseen) {
    UnseenCall& call = report.unseen.emplace_back();
    call.what = what;
    place(call.from, from.pc, x_launches[from.launch]);
  }
  for (const SeenFinding& seen : x_findings) {
    const LaunchSeen& launch = x_launches[seen.launch];
    CheckFinding finding;
    finding.kind = seen.kind;
    finding.severity = seen.severity;
    finding.kernel = launch.kernel;
    finding.space = seen.space;
    finding.array = seen.array;
    finding.offset = seen.offset;
    finding.extents = seen.shape.declared();
    finding.element = seen.element;
    if (finding.element.empty() && seen.shape.is_known()) {
      const ArrayElement element = element_at(seen.shape, seen.offset);
      finding.element = seen.array + element.indices;
      finding.byte_of_element = element.byte;
    }
    finding.access = resolve(seen.access, launch);
    finding.has_other = seen.has_other;
    if (seen.has_other) finding.other = resolve(seen.other, launch);
    finding.folded = seen.count - 1;
    if (seen.returned.count > 0)
      finding.returned_before = {seen.returned.file, seen.returned.line, ""};
    if (seen.wait) finding.wait = resolve(*seen.wait, launch);
    if (seen.writer) place(finding.writer, *seen.writer, launch);
    finding.written_below = seen.written_below;
    finding.written_above = seen.written_above;
    finding.message = seen.message;
    finding.advice = seen.advice;
    if (seen.wants_barrier) name_lines_to_part(finding);
    if (finding.severity == Severity::kError && is_of_compilers_load(seen, lines[launch.library])) {
      finding.severity = Severity::kLatent;
      finding.message +=
          "; but no line of the source makes this load: the compiler may have added it";
      finding.advice = "Build with -- -O0, where every load is the source's, and check again";
    }
    const auto same = std::find_if(report.findings.begin(), report.findings.end(),
                                   [&](const CheckFinding& f) { return is_same_pair(f, finding); });
    if (same == report.findings.end()) {
      report.findings.push_back(std::move(finding));
      continue;
    }
    const std::uint64_t folded = same->folded + seen.count;
    if (finding.severity < same->severity) *same = std::move(finding);
    same->folded = folded;
  }
  const std::vector<CheckFinding> all = report.findings;
  std::erase_if(report.findings, [&](const CheckFinding& f) {
    return std::any_of(all.begin(), all.end(),
                       [&](const CheckFinding& race) { return is_consequence(f, race); });
  });
  std::vector<CheckFinding> ended;
  for (const EndedLaunch& launch : x_ended_launches) {
    ended.push_back(launch.finding);
    const std::string& library = x_launches[launch.launch].library;
    std::vector<SourcePlace>& first = ended.back().access.places;
    std::vector<std::vector<SourcePlace>>& others = ended.back().others_wait;
    const auto is_known = [&](const std::vector<SourcePlace>& places) {
      const auto same = [](const SourcePlace& a, const SourcePlace& b) {
        return a.line == b.line && a.file == b.file;
      };
      const auto is = [&](const std::vector<SourcePlace>& known) {
        return std::equal(known.begin(), known.end(), places.begin(), places.end(), same);
      };
      return is(first) || std::any_of(others.begin(), others.end(), is);
    };
    const std::vector<std::vector<SourcePlace>> waiting = std::move(others);
    others.clear();
    if (!launch.returns.empty())
      add_callers(first, launch.returns.front(), lines[library], library);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      std::vector<SourcePlace> places = waiting[i];
      add_callers(places, launch.returns[i + 1], lines[library], library);
      if (!is_known(places)) others.push_back(std::move(places));
    }
  }
  report.findings.insert(report.findings.begin(), ended.begin(), ended.end());
  sort_by_severity(report.findings);
  std::array<int, kNumCheckKinds> kept{};
  std::erase_if(report.findings, [&](const CheckFinding& f) {
    const bool surplus = ++kept[static_cast<std::size_t>(f.kind)] > x_options.max_findings;
    report.summary.dropped += surplus ? 1 : 0;
    return surplus;
  });
  return report;
}

void add_report(CheckReport& to, const CheckReport& from) {
  for (const CheckFinding& finding : from.findings) {
    const auto same = std::find_if(to.findings.begin(), to.findings.end(),
                                   [&](const CheckFinding& f) { return is_same_pair(f, finding); });
    if (same == to.findings.end())
      to.findings.push_back(finding);
    else if (finding.severity < same->severity)
      *same = finding;
  }
  const std::vector<CheckFinding> all = to.findings;
  std::erase_if(to.findings, [&](const CheckFinding& f) {
    return std::any_of(all.begin(), all.end(),
                       [&](const CheckFinding& race) { return is_consequence(f, race); });
  });
  sort_by_severity(to.findings);
  CheckSummary& sum = to.summary;
  const CheckSummary& more = from.summary;
  for (std::uint64_t CheckSummary::*count :
       {&CheckSummary::launches, &CheckSummary::blocks, &CheckSummary::loads, &CheckSummary::stores,
        &CheckSummary::local, &CheckSummary::block_barriers, &CheckSummary::warp_syncs,
        &CheckSummary::atomics, &CheckSummary::fences, &CheckSummary::async_copies,
        &CheckSummary::unknown, &CheckSummary::dropped})
    sum.*count += more.*count;
  if (sum.symbolizer_note.empty()) sum.symbolizer_note = more.symbolizer_note;
}

void Checker::add_launch_finding(const LaunchFinding& found) {
  CheckFinding finding;
  finding.kind = CheckKind::kLaunch;
  finding.kernel = x_launches.empty() ? "" : x_launches.back().kernel;
  finding.message = found.message;
  finding.unending = found.kind == LaunchFindingKind::kStepLimit;
  if (!found.file.empty()) finding.access.places.push_back({found.file, found.line, ""});
  for (const SourcePlace& place : x_others_wait) finding.others_wait.push_back({place});
  const auto launch = static_cast<std::uint32_t>(x_launches.empty() ? 0 : x_launches.size() - 1);
  x_ended_launches.push_back({std::move(finding), x_ended_at, launch});
}

}  // namespace attn_diag::host
