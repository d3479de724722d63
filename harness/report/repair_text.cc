#include "harness/report/repair_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace attn_diag::report {
namespace {

using repair::RepairVerdict;

std::string place(const repair::RepairedEdit& edit) {
  return fmt::format("{}:{} ({})", edit.shown, edit.line, edit.operation);
}

// The edit under which the case itself agrees, where no edit makes all cases agree; null: there is none.
const repair::HelpfulEdit* for_this_case(const repair::RepairResult& r) {
  const bool found =
      r.verdict == RepairVerdict::kNothing && !r.helpful.empty() && r.helpful.front().is_sound();
  return found ? &r.helpful.front() : nullptr;
}

}  // namespace

std::string repair_headline(const RepairView& view) {
  const repair::RepairResult& r = view.result;
  if (r.verdict == RepairVerdict::kAgreesAlready)
    return fmt::format("AGREES ALREADY: there is nothing to repair, {} agree",
                       plural(static_cast<std::int64_t>(r.cases.size()), "case"));
  if (const repair::HelpfulEdit* edit = for_this_case(r))
    return fmt::format("FOR THIS CASE: under an edit of {}:{} it agrees, but {} of {} cases {}: {}",
                       edit->shown, edit->line, edit->cases - edit->agreed, edit->cases,
                       edit->agrees_so_far() ? "could not be run in time" : "do not", r.reason);
  if (r.verdict == RepairVerdict::kNothing) return "NOTHING FOUND: " + r.reason;
  return fmt::format("REPAIRED: under an edit of {} all {} agree", place(r.edits.front()),
                     plural(static_cast<std::int64_t>(r.cases.size()), "case"));
}

std::string repair_text(const RepairView& view, const Style& style, bool verdict_only) {
  const repair::RepairResult& r = view.result;
  const bool good = r.verdict != RepairVerdict::kNothing;
  std::string s = paint(style, good ? Colour::kGreen : Colour::kRed, repair_headline(view)) + '\n';
  const repair::HelpfulEdit* const for_case = for_this_case(r);
  if (!r.edits.empty() || for_case != nullptr)
    s +=
        '\n' + diff_text(for_case != nullptr ? for_case->diff : r.edits.front().diff, style) + '\n';
  if (verdict_only) return s;
  const auto line = [&](const std::string& text) {
    s += "  " + wrap(text, style.width - 2, 4) + '\n';
  };
  if (r.verdict != RepairVerdict::kAgreesAlready)
    line(fmt::format("Without an edit {}: {}.", r.failing, r.failing_how));
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, r.helpful.size()); ++i) {
    const repair::HelpfulEdit& edit = r.helpful[i];
    if (edit.is_sound())
      line(
          fmt::format("Under an edit of {}:{} ({}) it agrees in every order of threads that was "
                      "tried, with other bytes "
                      "in memory and other numbers; {} of {} cases agree in all, {}.",
                      edit.shown, edit.line, edit.operation, edit.agreed, edit.cases,
                      edit.agrees_so_far() ? "the others were not run" : "not " + edit.but));
    else
      line(fmt::format("Under an edit of {}:{} ({}) {} of {} wrong elements of it are left.",
                       edit.shown, edit.line, edit.operation, edit.left, edit.of));
  }
  if (r.verdict == RepairVerdict::kFound) line("Agree with it: " + join(r.cases, "; ") + ".");
  if (r.edits.size() > 1) {
    line(fmt::format("{} too; they may mean the same, or differ in cases that were not tried:",
                     r.edits.size() == 2 ? "Another edit makes the cases agree"
                                         : "Other edits make the cases agree"));
    for (std::size_t i = 1; i < r.edits.size(); ++i) s += "    " + place(r.edits[i]) + '\n';
  }
  if (r.also > 0) line(fmt::format("and {} more.", r.also));
  if (r.verdict != RepairVerdict::kAgreesAlready)
    line(fmt::format(
        "{} of {} edits were tried in {:.1f} s, in {} built libraries; {} do not compile.{}",
        r.tried, r.proposed, r.seconds, r.built, r.not_possible,
        r.out_of_time ? " Time was up: --time-limit allows more." : ""));
  for (const std::string& note : r.notes) line("Note: " + note);
  if (view.applied)
    line(fmt::format("The edit was put into {}. Build it again to run it.", r.edits.front().file));
  else if (r.verdict == RepairVerdict::kFound)
    line(
        "Nothing was written. --apply puts the edit into the file; so does patch -p1 with the "
        "lines above.");
  else if (for_case != nullptr)
    line("Nothing was written: --apply takes an edit under which all cases agree.");
  s += "  Reproduce: " + view.reproduce + '\n';
  return s;
}

Json repair_json(const RepairView& view, const CommandContext& context) {
  const repair::RepairResult& r = view.result;
  Json j = {{"schema", kJsonSchema},
            {"version", context.version},
            {"command", context.command},
            {"verdict", r.verdict == RepairVerdict::kAgreesAlready ? "agrees" : "diverges"},
            {"stale", false},  // then there is no repair
            {"reproduce", context.reproduce},
            {"problem", to_json(view.problem)}};
  j["found"] = r.verdict == RepairVerdict::kFound;
  j["edits"] = Json::array();
  for (const repair::RepairedEdit& edit : r.edits)
    j["edits"].push_back({{"file", edit.file},
                          {"line", edit.line},
                          {"operator", edit.operation},
                          {"built", edit.built},
                          {"diff", edit.diff}});
  j["helpful"] = Json::array();
  for (const repair::HelpfulEdit& edit : r.helpful)
    j["helpful"].push_back({{"file", edit.file},
                            {"line", edit.line},
                            {"operator", edit.operation},
                            {"left", edit.left},
                            {"of", edit.of},
                            {"agreed", edit.agreed},
                            {"cases", edit.cases},
                            {"but", edit.but},
                            {"diff", edit.diff}});
  j["also"] = r.also;
  j["applied"] = view.applied;
  j["failing"] = r.failing.empty() ? Json(nullptr) : Json(r.failing);
  j["suspects"] = Json::array();
  for (const repair::SourcePlace& place : r.suspects)
    j["suspects"].push_back({{"file", place.file}, {"line", place.line}});
  j["failing_how"] = r.failing_how.empty() ? Json(nullptr) : Json(r.failing_how);
  j["proposed"] = r.proposed;
  j["tried"] = r.tried;
  j["built"] = r.built;
  j["not_possible"] = r.not_possible;
  j["cases"] = r.cases;
  j["seconds"] = json_number(r.seconds);
  j["out_of_time"] = r.out_of_time;
  j["reason"] = r.reason.empty() ? Json(nullptr) : Json(r.reason);
  j["notes"] = r.notes;
  return j;
}

}  // namespace attn_diag::report
