#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "harness/report/check_report.h"

namespace attn_diag::report {
namespace {

using host::CheckAccess;
using host::CheckFinding;
using host::CheckKind;
using host::Severity;

constexpr std::size_t kMostFrames = 3;

// Below the working directory, as a reader there would type it.
std::string file_text(const std::string& file) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string() + "/";
  return !error && file.starts_with(here) ? file.substr(here.size()) : file;
}

std::string triple(const std::array<unsigned, 3>& at) {
  return fmt::format("({},{},{})", at[0], at[1], at[2]);
}

std::string calls_text(const std::vector<host::SourcePlace>& places) {
  std::string s;
  for (std::size_t i = 1; i < std::min(places.size(), kMostFrames); ++i)
    s += fmt::format("      called at {}:{}\n", file_text(places[i].file), places[i].line);
  return s;
}

std::string access_text(const CheckAccess& a) {
  const std::string how = a.async         ? "asynchronous "
                          : a.atomic      ? "atomic "
                          : a.is_volatile ? "volatile "
                                          : "";
  // Arithmetic has no bytes.
  const std::string what = a.bytes == 0 ? "computed"
                                        : fmt::format("{}{} of {}", how, a.write ? "write" : "read",
                                                      plural(a.bytes, "byte"));
  const std::string who = fmt::format("thread {}, block {}, after {}", triple(a.thread),
                                      triple(a.block), plural(a.interval, "barrier"));
  if (a.places.empty()) return fmt::format("    {} at {}\n      {}\n", what, a.symbol, who);
  std::string s =
      fmt::format("    {} at {}:{}", what, file_text(a.places[0].file), a.places[0].line);
  if (!a.places[0].function.empty())
    s += fmt::format(" in {}", short_function_name(a.places[0].function));
  s += '\n';
  return s + calls_text(a.places) + fmt::format("      {}\n", who);
}

std::string memory_text(const CheckFinding& f) {
  if (f.space.empty()) return "";
  if (!f.element.empty()) {
    std::string text = fmt::format(", {} ({} memory)", f.element, f.space);
    if (f.byte_of_element != 0) text += fmt::format(", byte {} of it", f.byte_of_element);
    if (f.kind == CheckKind::kOutOfBounds)
      text += fmt::format(", declared {}{}", f.array, f.extents);
    return text;
  }
  const unsigned bytes = std::max(1u, f.access.bytes);
  const std::string element =
      f.offset % bytes == 0
          ? fmt::format("element {} of {}", f.offset / bytes, plural(bytes, "byte"))
          : fmt::format("byte {}", f.offset);
  if (f.array.empty()) return fmt::format(", {} memory", f.space);
  return fmt::format(", {} ({} memory), {}", f.array, f.space, element);
}

std::string title(CheckKind kind) {
  std::string s(host::name(kind));
  std::replace(s.begin(), s.end(), '-', ' ');
  return s;
}

Colour colour_of(Severity severity) {
  return severity == Severity::kError    ? Colour::kRed
         : severity == Severity::kLatent ? Colour::kYellow
                                         : Colour::kDim;
}

std::string line_text(const CheckAccess& a) {
  return a.places.empty() ? a.symbol
                          : fmt::format("{}:{}", file_text(a.places[0].file), a.places[0].line);
}

// Findings that one edit is likely to mend: of one kind, one of whose lines they have in common. The
// first stands for all.
using Group = std::vector<const CheckFinding*>;

bool belongs_to(const Group& group, const CheckFinding& f) {
  const CheckFinding& first = *group.front();
  if (f.kind == CheckKind::kLaunch || f.kind == CheckKind::kUnwrittenOutput ||
      f.kind != first.kind || f.severity != first.severity || f.kernel != first.kernel ||
      f.space != first.space || f.has_other != first.has_other)
    return false;
  if (!f.has_other) return line_text(f.access) == line_text(first.access);
  // A store and the loads that race with it; with one store, the others.
  const auto store = [](const CheckFinding& x) {
    return line_text(x.access.write ? x.access : x.other);
  };
  return store(f) == store(first);
}

std::vector<Group> grouped(const std::vector<CheckFinding>& findings) {
  std::vector<Group> groups;
  for (const CheckFinding& f : findings) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const Group& g) { return belongs_to(g, f); });
    if (group == groups.end())
      groups.push_back({&f});
    else
      group->push_back(&f);
  }
  return groups;
}

// "Also read at x.cu:12 (sK), x.cu:14 (sV)."
std::string others_text(const Group& group) {
  std::vector<std::string> lines;
  for (std::size_t i = 1; i < group.size(); ++i) {
    const CheckFinding& f = *group[i];
    const CheckAccess& a = f.has_other && f.access.write ? f.other : f.access;
    const std::string array = f.array.empty() ? "" : fmt::format(" ({})", f.array);
    const std::string text =
        fmt::format("{} at {}{}", a.write ? "write" : "read", line_text(a), array);
    if (std::find(lines.begin(), lines.end(), text) == lines.end()) lines.push_back(text);
  }
  return lines.empty() ? "" : fmt::format("The same with the {}.", fmt::join(lines, ", the "));
}

std::string finding_text(int number, const Group& group, const Style& style) {
  const CheckFinding& f = *group.front();
  std::string s =
      fmt::format("{}{}{}\n",
                  paint(style, colour_of(f.severity),
                        fmt::format("{}. {}, {}", number, host::name(f.severity), title(f.kind))),
                  f.kernel.empty() ? "" : " in " + short_function_name(f.kernel), memory_text(f));
  const bool sentence = !f.message.empty() && f.message.back() != '.';
  s += "    " + wrap(f.message + (sentence ? "." : ""), style.width - 4, 4) + '\n';
  const bool seen = f.access.bytes > 0 || !f.access.places.empty() || !f.access.symbol.empty();
  if (f.kind != CheckKind::kLaunch && seen) {
    s += access_text(f.access);
    if (f.has_other) s += "    and, before it,\n" + access_text(f.other);
  }
  if (const std::string others = others_text(group); !others.empty())
    s += "    " + wrap(others, style.width - 4, 4) + '\n';
  if (f.kind == CheckKind::kLaunch) s += calls_text(f.access.places);
  // The message has the lines themselves.
  for (const std::vector<host::SourcePlace>& places : f.others_wait)
    if (places.size() > 1)
      s += fmt::format("    Others wait at {}:{}\n{}", file_text(places[0].file), places[0].line,
                       calls_text(places));
  if (f.folded > 0)
    s += fmt::format("    {} more of the same {}.\n", count(static_cast<std::int64_t>(f.folded)),
                     f.has_other ? "two lines" : "line");
  if (!f.advice.empty()) s += "    " + wrap(f.advice + '.', style.width - 4, 4) + '\n';
  return s + '\n';
}

std::string summary_text(const CheckView& view, const Style& style) {
  const host::CheckSummary& s = view.result.report.summary;
  const auto n = [](std::uint64_t x) { return count(static_cast<std::int64_t>(x)); };
  std::string text;
  const auto line = [&](const std::string& words) {
    text += "  " + wrap(words, style.width - 2, 4) + '\n';
  };
  line(fmt::format(
      "Checked: {} and {} under schedule{} {}: {} loads and {} stores of shared and "
      "global memory, {} of "
      "local arrays; {} block barriers, {} warp collectives, {} atomics, {} fences, {} "
      "asynchronous "
      "copies.",
      s.launches == 1 ? "1 launch" : n(s.launches) + " launches",
      plural(static_cast<std::int64_t>(s.blocks), "block"),
      view.result.schedules.size() == 1 ? "" : "s", fmt::join(view.result.schedules, " and "),
      n(s.loads), n(s.stores), n(s.local), n(s.block_barriers), n(s.warp_syncs), n(s.atomics),
      n(s.fences), n(s.async_copies)));
  line(
      "Not checked: problems of other sizes and branches that this one does not take; registers "
      "and "
      "scalars; overruns from one static shared array into the next; memory order beyond barriers, "
      "atomics and fences.");
  if (s.unknown > 0)
    line(
        fmt::format("{} accesses were to constants of the compiler or to the host's stack, which "
                    "are not watched.",
                    n(s.unknown)));
  for (const host::UnseenCall& call : view.result.report.unseen)
    line(fmt::format(
        "Not seen: what {} loads and stores, called at {}.", call.what,
        call.from.places.empty()
            ? call.from.symbol
            : fmt::format("{}:{}", file_text(call.from.places[0].file), call.from.places[0].line)));
  if (s.dropped > 0)
    line(fmt::format("{} more findings were dropped: raise --max to see them.", n(s.dropped)));
  if (!s.symbolizer_note.empty()) line("Note: " + s.symbolizer_note + ".");
  for (const std::string& note : view.result.notes) line("Note: " + note);
  return text;
}

}  // namespace

int CheckView::count(Severity severity) const {
  const auto& all = result.report.findings;
  return static_cast<int>(std::count_if(
      all.begin(), all.end(), [&](const CheckFinding& f) { return f.severity == severity; }));
}

bool CheckView::clean() const {
  return count(Severity::kError) == 0 && count(Severity::kLatent) == 0;
}

std::string check_headline(const CheckView& view) {
  const int errors = view.count(Severity::kError), latent = view.count(Severity::kLatent),
            benign = view.count(Severity::kBenign);
  std::string tail;
  if (!view.suppressed.empty()) tail = fmt::format(", {} suppressed", view.suppressed.size());
  if (const std::size_t unseen = view.result.report.unseen.size(); unseen > 0)
    tail += fmt::format(", {} not seen", plural(static_cast<std::int64_t>(unseen), "call"));
  if (view.clean() && benign == 0) return fmt::format("CLEAN: nothing found{}", tail);
  const auto& findings = view.result.report.findings;
  if (const std::size_t groups = grouped(findings).size(); groups < findings.size())
    tail += fmt::format(", listed as {}", groups);
  return fmt::format("{}: {}, {} latent, {} benign{}", view.clean() ? "CLEAN" : "FOUND",
                     plural(errors, "error"), latent, benign, tail);
}

std::string check_text(const CheckView& view, const CheckTextOptions& options) {
  const Style& style = options.style;
  std::string s =
      paint(style, view.clean() ? Colour::kGreen : Colour::kRed, check_headline(view)) + '\n';
  if (options.verdict_only) return s;
  s += fmt::format("  {}  {}  {}\n\n", view.kernel, problem_text(view.problem),
                   geometry_text(view.result.geometry));
  int number = 0;
  for (const Group& group : grouped(view.result.report.findings))
    s += finding_text(++number, group, style);
  for (const SuppressedFinding& f : view.suppressed)
    s += fmt::format("  suppressed by line {} ({}): {}, {} and {} more\n", f.line, f.reason,
                     host::name(f.finding.kind), f.finding.array, f.finding.folded);
  for (const std::string& unused : view.unused_suppressions)
    s += "  suppression not used: " + unused + '\n';
  s += summary_text(view, style);
  return s + "  Reproduce: " + view.reproduce + '\n';
}

}  // namespace attn_diag::report
