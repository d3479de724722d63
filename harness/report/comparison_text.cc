#include "harness/report/comparison_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/report/summary.h"
#include "harness/report/table.h"
#include "harness/run/input_writes.h"

namespace attn_diag::report {

std::string verdict_text(Answer answer, const Style& style) {
  return paint(style, colour_of(answer),
               answer == Answer::kAgrees     ? "agrees"
               : answer == Answer::kDiverges ? "DIVERGES"
                                             : "not judged");
}

Colour colour_of(Answer answer) {
  return answer == Answer::kAgrees     ? Colour::kGreen
         : answer == Answer::kDiverges ? Colour::kRed
                                       : Colour::kYellow;
}

std::string judged_text(std::int64_t judged, std::int64_t unjudged) {
  if (unjudged == 0) return fmt::format("all {} elements", count(judged));
  return fmt::format("the {} of {} elements that can be judged", count(judged),
                     count(judged + unjudged));
}

std::string elsewhere_text(const Summary& s) {
  return fmt::format("{} agree, and others cannot be right: an invariant is broken there",
                     judged_text(s.compared, s.unjudged));
}

std::string could_not_compare_text(const Comparison& comparison) {
  return "COULD NOT COMPARE: " + why_not_judged(comparison);
}

std::string input_writes_headline(const Capture& capture) {
  return capture.input_writes.empty() ? "" : "DIVERGES: " + input_writes_text(capture.input_writes);
}

std::string mismatched_text(std::int64_t mismatched, std::int64_t compared) {
  return fmt::format("{} / {} ({})", count(mismatched), count(compared),
                     percent(mismatched, compared));
}

std::string greatest_text(double greatest, std::int64_t mismatched) {
  return mismatched > 0 && greatest == 0 ? "-" : number(greatest);
}

std::string tensor_table(const Comparison& comparison, const Style& style) {
  Table table({"stage", "tensor", "verdict", ">err/bound", ">max abs err", ">max ULP",
               ">mismatched", ">NaN"});
  std::string_view last;
  for (const TensorComparison& t : comparison.tensors) {
    const std::string_view stage = name(stage_of(t.tensor));
    table.add({stage == last ? "" : std::string(stage), std::string(name(t.tensor)),
               verdict_text(t.answer(), style), ratio(t.max_err_over_bound),
               greatest_text(t.max_abs_err, t.mismatched),
               has_ulps(t.max_ulp, t.max_abs_err) ? greatest_text(t.max_ulp, t.mismatched) : "-",
               mismatched_text(t.mismatched, t.compared),
               t.nan_actual > 0 ? count(t.nan_actual) : ""});
    last = stage;
  }
  return table.text(style);
}

std::string difference_lines(const TensorComparison& t) {
  std::string s = fmt::format("  Mismatched elements: {} / {} ({}) of {}\n", t.mismatched,
                              t.compared, percent(t.mismatched, t.compared), name(t.tensor));
  // Only numbers: NaN and infinities have no difference.
  if (t.mismatched == 0 || t.max_abs_err > 0) {
    s += fmt::format("  Greatest absolute difference: {} at index {}\n", number(t.max_abs_err),
                     index_text(t.tensor, t.max_abs_index));
    s += fmt::format("  Greatest relative difference: {} at index {}\n", number(t.max_rel_err),
                     index_text(t.tensor, t.max_rel_index));
  }
  if (t.nan_actual > 0)
    s += fmt::format("  NaN where a number was expected: {}\n", count(t.nan_actual));
  return s;
}

std::string stale_text(const Provenance& p, const Style& style) {
  if (!p.stale()) return "";
  std::string s =
      paint(style, Colour::kRed, "STALE: this binary was not built from the sources now on disk.");
  s += "\n  Whatever follows is about the old code. Rebuild, then run this again. Changed since:\n";
  for (const SourceState& source : p.sources)
    if (source.found && source.disk_hash != source.built_hash) s += "    " + source.path + '\n';
  return s;
}

std::string sources_missing_text(const Provenance& p, const Style& style) {
  if (!p.sources_missing()) return "";
  for (const SourceState& source : p.sources)
    if (!source.found)
      return paint(style, Colour::kYellow,
                   fmt::format("  Cannot tell whether the binary is stale: {} is not there.",
                               source.path)) +
             '\n';
  return "";
}

std::string coverage_text(const Capture& capture, const Style& style) {
  std::string s;
  const auto line = [&](std::int64_t n, const std::optional<CoverageFault>& first,
                        const TensorInfo& t, std::string_view what) {
    if (n == 0) return;
    std::string text = fmt::format("{} of {} {}", plural(n, "cell"), t.name, what);
    if (first)
      text += fmt::format(", first {} ({})", index_text(t.id, first->index),
                          place_text(t.id, first->index, capture.problem, capture.geometry));
    s += "  " + paint(style, Colour::kRed, text) + '\n';
  };
  for (const TensorInfo& t : kTensors) {
    const Coverage& c = capture.coverage[static_cast<std::size_t>(t.id)];
    line(c.never, c.first_never, t, "never written");
    line(c.repeatedly, c.first_repeated, t, "written more than once");
  }
  return s;
}

std::string exempt_text(const Capture& c) {
  // A line a reason.
  std::vector<std::pair<std::string, std::vector<std::string_view>>> reasons;
  for (const TensorInfo& t : kTensors) {
    const std::string& why = c.exempt[static_cast<std::size_t>(t.id)];
    if (why.empty()) continue;
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& reason) { return reason.first == why; });
    if (known == reasons.end())
      reasons.push_back({why, {t.name}});
    else
      known->second.push_back(t.name);
  }
  std::string s;
  for (const auto& [why, names] : reasons)
    s += fmt::format("  {} {} not judged: {}\n", fmt::join(names, ", "),
                     names.size() == 1 ? "is" : "are", why);
  return s;
}

std::string zeros_text(const Comparison& comparison) {
  for (const TensorComparison& t : comparison.tensors) {
    if (t.tensor != Tensor::kO || t.compared == 0) continue;
    constexpr double kHardlyMore = 4;
    const double zeros = t.zeros_err_over_bound;
    return fmt::format("  An all-zeros o would have scored {}{}.\n", ratio(zeros),
                       zeros <= 1 ? ": these inputs cannot show a wrong o"
                       : zeros <= kHardlyMore
                           ? ": the bound is so wide that much of what is wrong would agree"
                           : "");
  }
  return "";
}

}  // namespace attn_diag::report
