#include "tools/attn_diag/repair_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "attn_diag/harness/error.h"
#include "harness/repair/edit.h"
#include "harness/report/text.h"
#include "harness/toolchain/build/settings.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

std::string line_of(const std::string& text, int line) {
  std::istringstream lines(text);
  std::string found;
  for (int i = 0; i < line && std::getline(lines, found); ++i) {
  }
  const std::size_t begin = found.find_first_not_of(" \t"), end = found.find_last_not_of(" \t\r");
  return begin == found.npos ? "" : found.substr(begin, end - begin + 1);
}

bool is_at(const LineSuspect& suspect, const std::string& file, int line) {
  std::error_code error;
  return suspect.place.line == line &&
         std::filesystem::weakly_canonical(suspect.place.file, error) ==
             std::filesystem::weakly_canonical(file, error);
}

// Puts the line of an edit at this place among the suspects, which moves on; one that stands before it stays.
template <class Edit>
void put_suspect(LineDivergence& lines, std::size_t& next, const Edit& edit,
                 const std::string& why) {
  const auto known =
      std::find_if(lines.suspects.begin(), lines.suspects.end(),
                   [&](const LineSuspect& s) { return is_at(s, edit.file, edit.line); });
  LineSuspect suspect{{edit.file, "", edit.line, 0, line_of(edit.before, edit.line), ""}, why};
  if (known != lines.suspects.end()) {
    if (static_cast<std::size_t>(known - lines.suspects.begin()) < next) return;
    suspect.place = known->place;
    lines.suspects.erase(known);
  }
  lines.suspects.insert(lines.suspects.begin() + static_cast<std::ptrdiff_t>(next), suspect);
  ++next;
}

void be_unsure(LineDivergence& lines, const char* why) {
  lines.answer = LineAnswer::kUnsure;
  if (lines.what.empty()) lines.what = "small edits were tried";
  lines.reason = why;
}

// Lines of edits that make the case right, though not all others, come behind the first: small scores hide much. A
// barrier makes many a case right, wherever it stands.
void add_helpful(const repair::RepairResult& result, LineDivergence& lines) {
  if (lines.answer == LineAnswer::kLine) return;
  const std::size_t first = std::min<std::size_t>(1, lines.suspects.size());
  constexpr std::size_t kMost = 2;
  std::size_t next = first;
  for (const repair::HelpfulEdit& edit : result.helpful) {
    if (edit.left > 0 || edit.operation == repair::kBarrierOperation) continue;
    put_suspect(
        lines, next, edit,
        edit.is_sound()
            ? fmt::format("under an edit of this line {} of {} cases agree: {}", edit.agreed,
                          edit.cases, edit.operation)
            : fmt::format("under an edit of this line {} agrees, but not all other cases: {}",
                          result.failing, edit.operation));
    if (next == first + kMost) break;
  }
  if (next > first)
    be_unsure(lines,
              "an edit of one of these lines makes a case agree, but not all; the fault may be "
              "elsewhere");
}

}  // namespace

RepairedCase repair_case(Flags flags, repair::RepairOptions options) {
  if (!flags.backend.empty() && flags.backend != "auto" && flags.backend != "host")
    throw Error(fmt::format(
        "repair runs edited copies on the host executor: --backend takes host, but was given '{}'.",
        flags.backend));
  flags.backend = "host";
  flags.stage = "full";  // the production kernel
  RepairedCase repaired{std::move(expand_cases(flags, false).front()), {}};
  RequestedCase& one = repaired.requested;
  const Kernel kernel = load_kernel(one);
  const Geometry geometry = plan(kernel, one);
  options.processes = one.run.threads;
  const Experiment experiment{kernel, one.problem, inputs_of(one, kernel, geometry), one.run,
                              parse_tolerance(flags)};
  repaired.result =
      repair::repair(experiment, options, build::load_settings(build::settings_file_of_program()));
  return repaired;
}

double edit_seconds(const Flags& flags) {
  return flags.try_edits.empty() ? 0 : parse_real("--try-edits", flags.try_edits, 1);
}

void try_edits(const Flags& flags, double seconds, Progress& progress, LineDivergence& lines) {
  TriedEdits& out = lines.edits.emplace();
  repair::RepairResult result;
  try {
    repair::RepairOptions options;
    for (const LineSuspect& suspect : lines.suspects)
      options.suspects.push_back({suspect.place.file, suspect.place.line});
    options.order = lines.of_order;
    options.seconds = seconds;
    options.build_each = false;
    options.on_step = [&](int tried, int edits, const std::string& what) {
      progress.step(tried, edits, what);
    };
    result = repair_case(flags, std::move(options)).result;
  } catch (const Error& error) {
    out.reason = error.what();
    return;
  }
  out.tried = result.tried;
  out.seconds = result.seconds;
  out.reason = result.reason;
  if (result.edits.empty()) return add_helpful(result, lines);
  out.operation = result.edits.front().operation;
  out.diff = result.edits.front().diff;
  out.cases = result.cases;
  std::size_t next = lines.answer == LineAnswer::kLine ? 1 : 0;
  // A barrier does at several places: the smallest edit says which, the others would only come before what else is told.
  bool has_barrier = false;
  for (const repair::RepairedEdit& edit : result.edits) {
    const bool of_barrier = edit.operation == repair::kBarrierOperation;
    if (of_barrier && has_barrier) continue;
    has_barrier = has_barrier || of_barrier;
    put_suspect(lines, next, edit,
                fmt::format("under an edit of this line all {} agree: {}",
                            report::plural(static_cast<std::int64_t>(result.cases.size()), "case"),
                            edit.operation));
  }
  if (lines.answer != LineAnswer::kLine)
    be_unsure(
        lines,
        "an edit of the first of these lines makes it agree; the fault may be elsewhere all the "
        "same");
}

}  // namespace attn_diag::cli
