#include "harness/report/comparison_report.h"

#include <fmt/format.h>

#include "harness/report/comparison_text.h"
#include "harness/report/summary.h"
#include "harness/run/repetition.h"

namespace attn_diag::report {
namespace {

std::string against(const ComparisonView& view) {
  return view.expected.empty() ? "the reference" : view.expected;
}

std::string binaries_text(const ComparisonView& view, const Style& style) {
  if (!view.binaries) return "";
  const Binaries& b = *view.binaries;
  if (b.same())
    return "  " +
           wrap(fmt::format("Both come from the same binary, build id {}: no edit made "
                            "between the two runs is in either.",
                            b.actual),
                style.width - 2, 4) +
           '\n';
  std::string s =
      fmt::format("From different binaries, build ids {} and {}.", b.actual, b.expected);
  if (view.answer() == Answer::kAgrees && view.exact)
    s += " Whatever changed between them makes no difference to any value stored here.";
  return "  " + wrap(s, style.width - 2, 4) + '\n';
}

std::string case_text(const ComparisonView& view, const Style& style) {
  const Capture& c = *view.capture;
  if (view.assumed) {
    std::string s = fmt::format("  {}\n", problem_text(c.problem));
    for (const std::string& phrase : *view.assumed)
      s += "  " + wrap("Assumed: " + phrase + '.', style.width - 2, 4) + '\n';
    return s;
  }
  return fmt::format("  {} on {}: {}, {}{}\n", c.provenance.kernel, c.provenance.backend,
                     problem_text(c.problem), geometry_text(c.geometry),
                     c.isolated ? ", every stage fed the reference's inputs" : "");
}

}  // namespace

Answer ComparisonView::answer() const {
  return capture != nullptr ? answer_of(*capture, *comparison) : comparison->answer();
}

std::string rule_text(const Tolerance& tolerance) {
  return tolerance.use_bound
             ? "the rounding bound"
             : fmt::format("|a - r| <= {} + {}*|r|", tolerance.atol, tolerance.rtol);
}

std::string comparison_headline(const ComparisonView& view) {
  const Summary s = summarise(*view.comparison);
  const Answer answer = view.answer();
  if (answer == Answer::kNotJudged) return could_not_compare_text(*view.comparison);
  if (answer == Answer::kAgrees)
    return fmt::format("AGREES: {} {} {}{} in {}", view.actual, view.exact ? "and" : "with",
                       against(view), view.exact ? " are identical" : "",
                       judged_text(s.compared, s.unjudged));
  if (view.comparison->agrees() && view.capture != nullptr && view.capture->repetition.unsound())
    return fmt::format("DIVERGES: two runs of the case in {} differ by more than rounding: a race",
                       view.actual);
  if (s.mismatched == 0 && !view.comparison->broken_elsewhere.empty())
    return "DIVERGES: " + elsewhere_text(s);
  std::string where;
  if (s.first_wrong != nullptr && s.first_wrong->first)
    where = fmt::format(", first in {} at {}{}", name(stage_of(s.first_wrong->tensor)),
                        name(s.first_wrong->tensor),
                        index_text(s.first_wrong->tensor, s.first_wrong->first->index));
  return fmt::format("DIVERGES: {} differs from {} in {} elements{}", view.actual, against(view),
                     mismatched_text(s.mismatched, s.compared), where);
}

std::string comparison_text(const ComparisonView& view, const Style& style, bool verdict_only) {
  const Summary summary = summarise(*view.comparison);
  const Answer answer = view.answer();
  std::string s;
  if (view.capture != nullptr) s += stale_text(view.capture->provenance, style);
  s += paint(style, colour_of(answer), comparison_headline(view)) + '\n';
  if (verdict_only) return s;
  if (view.capture != nullptr) s += case_text(view, style);
  s += binaries_text(view, style);
  s += fmt::format("  Judged by {}.\n\n", view.rule);
  s += tensor_table(*view.comparison, style);
  if (view.capture != nullptr) {
    if (!view.assumed) s += exempt_text(*view.capture);
    s += coverage_text(*view.capture, style);
    if (view.capture->repetition.moved())
      s += "  " + wrap(repetition_text(view.capture->repetition), style.width - 2, 4) + '\n';
  }
  if (summary.first_wrong != nullptr) s += '\n' + difference_lines(*summary.first_wrong);
  for (const std::string& note : view.comparison->notes)
    s += "  " + wrap("Note: " + note, style.width - 2, 4) + '\n';
  if (!view.reproduce.empty()) s += "\n  Reproduce: " + view.reproduce + '\n';
  if (answer == Answer::kDiverges && !view.look.empty()) s += "  Look at it: " + view.look + '\n';
  return s;
}

Json comparison_json(const ComparisonView& view, const CommandContext& context) {
  const Capture* const c = view.capture;
  Json j = json_head(context, view.answer(), c != nullptr && c->provenance.stale());
  j["actual"] = view.actual;
  j["expected"] = view.expected.empty() ? Json(nullptr) : Json(view.expected);
  j["rule"] = view.rule;
  if (view.binaries) j["same_binary"] = view.binaries->same();
  j["judged"] = view.comparison->judged();
  j["cells"] = view.comparison->judged() + view.comparison->unjudged();
  j["stages"] = stages_json(*view.comparison);
  if (c == nullptr) return j;
  j["problem"] = to_json(c->problem);
  if (view.assumed) j["assumed"] = *view.assumed;
  j["region"] = to_json(c->region);
  j["coverage"] = coverage_json(*c);
  j["runs"] = c->repetition.runs;
  j["moved_cells"] = c->repetition.moved_cells();
  j["provenance"] = to_json(c->provenance);
  return j;
}

std::vector<JunitCase> comparison_junit(const ComparisonView& view) {
  std::vector<JunitCase> cases;
  for (const TensorComparison& t : view.comparison->tensors) {
    JunitCase one;
    one.class_name = "attn-diag.compare." + view.actual;
    one.name =
        fmt::format("{} {} against {}", name(stage_of(t.tensor)), name(t.tensor), against(view));
    if (t.compared == 0) {
      one.kind = view.comparison->answer() == Answer::kNotJudged ? JunitCase::Kind::kError
                                                                 : JunitCase::Kind::kSkipped;
      one.message = fmt::format("none of {} elements can be judged, having no bound", t.unjudged);
    } else if (!t.agrees()) {
      one.kind = JunitCase::Kind::kFailed;
      one.message = fmt::format("{} of {} elements wrong", t.mismatched, t.compared);
      one.detail = view.reproduce;
    }
    cases.push_back(one);
  }
  return cases;
}

}  // namespace attn_diag::report
