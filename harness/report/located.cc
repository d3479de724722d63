#include "harness/report/located.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/report/lines_report.h"
#include "harness/report/trace_text.h"

namespace attn_diag::report {
namespace {

using host::CheckAccess;
using host::CheckFinding;
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

std::string sentence(const std::string& text) {
  return text.empty() || text.back() == '.' ? text : text + '.';
}

LocatedPlace place_of(const CheckAccess& access, std::string message) {
  LocatedPlace place;
  if (!access.places.empty()) {
    place.file = access.places.front().file;
    place.line = access.places.front().line;
  } else if (!access.symbol.empty()) {
    message += " (at " + access.symbol + ')';
  }
  place.message = std::move(message);
  return place;
}

std::string what_of(const CheckAccess& a) {
  return a.bytes == 0 ? "computed"
                      : fmt::format("{}{} of {}",
                                    a.async    ? "asynchronous "
                                    : a.atomic ? "atomic "
                                               : "",
                                    a.write ? "write" : "read", plural(a.bytes, "byte"));
}

// The calls around an access that were inlined into one function.
void add_calls(const std::vector<host::SourcePlace>& places, std::vector<LocatedPlace>& to) {
  for (std::size_t i = 1; i < places.size(); ++i)
    to.push_back({places[i].file, places[i].line, 0, "called from here"});
}

LocatedFinding located(const CheckFinding& f) {
  LocatedFinding one;
  one.level = f.severity == host::Severity::kError    ? LocatedFinding::Level::kError
              : f.severity == host::Severity::kLatent ? LocatedFinding::Level::kWarning
                                                      : LocatedFinding::Level::kNote;
  one.rule = host::name(f.kind);
  const std::string& memory = f.element.empty() ? f.array : f.element;
  std::string message = f.severity == host::Severity::kLatent ? "latent: " : "";
  if (!memory.empty()) message += memory + ": ";
  message += sentence(f.message);
  if (!f.advice.empty()) message += ' ' + sentence(f.advice);
  one.place = place_of(f.access, message);
  add_calls(f.access.places, one.related);
  if (f.has_other) {
    one.related.push_back(place_of(f.other, "and, before it, " + what_of(f.other) + " here"));
    add_calls(f.other.places, one.related);
  }
  for (const std::vector<host::SourcePlace>& places : f.others_wait) {
    one.related.push_back({places.front().file, places.front().line, 0, "other threads wait here"});
    add_calls(places, one.related);
  }
  return one;
}

LocatedPlace place_of(const LineSuspect& suspect, std::string message) {
  return {suspect.place.file, suspect.place.line, suspect.place.column, std::move(message)};
}

// The line that a trace names; nothing where it names none.
std::vector<LocatedFinding> of_lines(const LineDivergence& lines) {
  if (lines.suspects.empty() || lines.answer == LineAnswer::kNone) return {};
  const bool sure = lines.answer == LineAnswer::kLine;
  LocatedFinding one;
  one.level = sure ? LocatedFinding::Level::kError : LocatedFinding::Level::kWarning;
  one.rule = sure ? "wrong-line" : "likely-line";
  std::string message = fmt::format("{}{}: {}", sure ? "" : "not sure, likely: ", lines.what,
                                    lines.suspects.front().why);
  if (!sure && !lines.reason.empty()) message += " (" + lines.reason + ')';
  one.place = place_of(lines.suspects.front(), message);
  for (std::size_t i = 1; i < lines.suspects.size(); ++i)
    one.related.push_back(place_of(lines.suspects[i], lines.suspects[i].why));
  return {one};
}

// Compilers note a file as they were given it, perhaps from another folder: the library knows its sources by their
// whole paths. A name that fits two of them stays as it is.
void find_file(LocatedPlace& place, const Provenance& library) {
  if (place.file.empty() || place.file.starts_with('/')) return;
  const std::string end = '/' + std::filesystem::path(place.file).lexically_normal().string();
  std::string found;
  for (const SourceState& source : library.sources) {
    if (!source.path.ends_with(end)) continue;
    if (!found.empty() && found != source.path) return;
    found = source.path;
  }
  if (!found.empty()) place.file = found;
}

std::vector<LocatedFinding> with_whole_paths(std::vector<LocatedFinding> all,
                                             const Provenance& library) {
  for (LocatedFinding& f : all) {
    find_file(f.place, library);
    for (LocatedPlace& place : f.related) find_file(place, library);
  }
  return all;
}

}  // namespace

const char* name(LocatedFinding::Level level) {
  return level == LocatedFinding::Level::kError     ? "error"
         : level == LocatedFinding::Level::kWarning ? "warning"
                                                    : "note";
}

LocatedFinding unplaced(std::string rule, std::string message) {
  LocatedFinding one;
  one.rule = std::move(rule);
  one.place.message = std::move(message);
  return one;
}

std::vector<LocatedFinding> located(const CheckView& view) {
  std::vector<LocatedFinding> all;
  for (const CheckFinding& f : view.result.report.findings) all.push_back(located(f));
  for (const SuppressedFinding& f : view.suppressed) {
    all.push_back(located(f.finding));
    all.back().accepted = f.reason;
  }
  return with_whole_paths(std::move(all), view.result.provenance);
}

std::vector<LocatedFinding> located(const TraceResult& result) {
  const bool agrees = result.agrees();
  if (agrees && result.memory_errors.value_or(0) == 0) return {};
  const Answer answer = result.answer();
  LocatedFinding verdict = unplaced(agrees                         ? "memory"
                                    : result.latent()              ? "latent"
                                    : answer == Answer::kNotJudged ? "could_not_compare"
                                                                   : "diverges",
                                    one_line(trace_headline(result)));
  if (agrees)
    verdict.place.message +=
        "; but attn-diag check finds " + plural(*result.memory_errors, "error");
  const bool warns = agrees || result.latent();
  if (warns) verdict.level = LocatedFinding::Level::kWarning;
  std::vector<LocatedFinding> all;
  if (result.lines) all = of_lines(*result.lines);
  // What a line explains is said at that line.
  if (all.empty()) return {verdict};
  if (warns) all.front().level = LocatedFinding::Level::kWarning;
  all.front().place.message += ". " + verdict.place.message;
  return with_whole_paths(std::move(all), result.capture.provenance);
}

std::vector<LocatedFinding> located(const LineDivergence& lines, const std::string& why,
                                    const Provenance& library) {
  std::vector<LocatedFinding> all = of_lines(lines);
  if (all.empty()) return {unplaced("could_not_compare", one_line(why))};
  all.front().place.message += ". " + one_line(why);
  return with_whole_paths(std::move(all), library);
}

std::string file_below(const std::string& file, const std::string& folder) {
  namespace fs = std::filesystem;
  const fs::path from = fs::path(folder).lexically_normal(), to = fs::path(file).lexically_normal();
  if (!to.is_absolute() || folder.empty()) return to.string();
  const fs::path relative = to.lexically_relative(from);
  return relative.empty() || *relative.begin() == ".." ? to.string() : relative.string();
}

std::string gcc_text(const std::vector<LocatedFinding>& findings, const std::string& folder) {
  std::string text;
  const auto add = [&](const LocatedPlace& place, const char* level, const std::string& end) {
    // As compilers begin a message that has no place.
    std::string where = place.file.empty()
                            ? "attn-diag"
                            : fmt::format("{}:{}", file_below(place.file, folder), place.line);
    if (!place.file.empty() && place.column > 0) where += fmt::format(":{}", place.column);
    text += fmt::format("{}: {}: {}{}\n", where, level, one_line(place.message), end);
  };
  for (const LocatedFinding& f : findings) {
    if (!f.accepted.empty()) continue;
    add(f.place, name(f.level), fmt::format(" [{}]", f.rule));
    for (const LocatedPlace& place : f.related) add(place, "note", "");
  }
  return text;
}

namespace {

// As GitHub's runner undoes it: of a message, and of a property, which ends at ',' and ':'.
std::string github_escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string github_text(const std::vector<LocatedFinding>& findings, const std::string& folder) {
  std::string text;
  for (const LocatedFinding& f : findings) {
    if (!f.accepted.empty()) continue;
    std::string properties;
    if (!f.place.file.empty()) {
      properties = fmt::format(
          "file={},line={},", github_escaped(file_below(f.place.file, folder), true), f.place.line);
      if (f.place.column > 0) properties += fmt::format("col={},", f.place.column);
    }
    std::string message = f.place.message;
    for (const LocatedPlace& place : f.related)
      message += fmt::format(
          "\n{}{}",
          place.file.empty() ? ""
                             : fmt::format("{}:{}: ", file_below(place.file, folder), place.line),
          place.message);
    text += fmt::format(
        "::{} {}title={}::{}\n", f.level == LocatedFinding::Level::kNote ? "notice" : name(f.level),
        properties, github_escaped("attn-diag: " + f.rule, true), github_escaped(message, false));
  }
  return text;
}

}  // namespace attn_diag::report
