#include "harness/report/xray_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/comparison_text.h"
#include "harness/report/picture.h"
#include "harness/report/summary.h"
#include "harness/run/repetition.h"

namespace attn_diag::report {
namespace {

std::string_view verdict_name(PropertyResult::Verdict verdict) {
  switch (verdict) {
    case PropertyResult::Verdict::kHolds:
      return "holds";
    case PropertyResult::Verdict::kBroken:
      return "broken";
    case PropertyResult::Verdict::kExplained:
      return "explained";
    case PropertyResult::Verdict::kNotTried:
      break;
  }
  return "not_tried";
}

std::array<std::int64_t, 5> property_index(const PropertyResult& r) {
  return {r.index[0], r.index[1], r.index[2], r.index[3], 0};
}

std::string cell_text(const PropertyResult& r) {
  return fmt::format("{}{} is {}, expected {}", name(r.tensor),
                     index_text(r.tensor, property_index(r)), exact(r.actual), exact(r.expected));
}

std::string property_text(const PropertyResult& r, const Style& style) {
  const PropertyInfo& property = info(r.property);
  const auto line = [&](std::string_view words, int indent) {
    return std::string(static_cast<std::size_t>(indent), ' ') +
           wrap(words, style.width - indent, indent) + '\n';
  };
  const std::string title = fmt::format("{:<16} ", property.name);
  if (r.verdict == PropertyResult::Verdict::kNotTried)
    return "    " + title + wrap(fmt::format("not tried: {}", r.why_not), style.width - 4, 21) +
           '\n';
  if (r.verdict == PropertyResult::Verdict::kExplained)
    return "    " + title +
           wrap(fmt::format(
                    "explained by {}: it does not hold in {} cells, all in rows in which that "
                    "one is broken, as far as it was tried there",
                    info(r.explained_by).name, mismatched_text(r.broken, r.compared)),
                style.width - 4, 21) +
           '\n';
  if (r.verdict == PropertyResult::Verdict::kHolds)
    return "    " + title + paint(style, Colour::kGreen, "holds") +
           (r.max_err_over_bound > 0 ? fmt::format(", within {}", ratio(r.max_err_over_bound))
                                     : "") +
           '\n';
  std::string s = "    " + title + paint(style, Colour::kRed, "BROKEN") +
                  fmt::format(" in {} cells\n", mismatched_text(r.broken, r.compared));
  s += line(fmt::format("Should be: {}.", property.statement), 6);
  s += line(fmt::format("First: {}{}.", cell_text(r),
                        std::isfinite(r.max_err_over_bound)
                            ? fmt::format("; at worst {} what rounding can explain",
                                          ratio(r.max_err_over_bound))
                            : "; it has to be the same to the bit"),
            6);
  return s + line(fmt::format("Means: {}.", property.meaning), 6);
}

}  // namespace

std::string properties_text(const std::vector<PropertyResult>& all, const Style& style) {
  const bool none = std::all_of(all.begin(), all.end(), [&](const PropertyResult& r) {
    return r.verdict == PropertyResult::Verdict::kNotTried && r.why_not == all.front().why_not;
  });
  if (none && !all.empty())
    return "    " +
           wrap(fmt::format("none was tried: {}.", all.front().why_not), style.width - 4, 4) + '\n';
  std::string s;
  for (const PropertyResult& r : all) s += property_text(r, style);
  return s;
}

namespace {

std::string seen_text(const XrayResult& r) {
  const std::int64_t cells = r.seen + r.without_weight + r.unknown;
  std::string s = fmt::format(
      "Seen in {} launches with one-hot v: {} of {} cells of S, half of them within {}; {} have no "
      "weight",
      r.launches, count(r.seen), count(cells), number(r.median_uncertainty),
      count(r.without_weight));
  if (r.unknown > 0)
    s += fmt::format("; {} ({}) are too small for o's type and are not judged", count(r.unknown),
                     percent(r.unknown, cells));
  return s + '.';
}

std::string sums_text(const XrayResult& r) {
  if (r.largest_sum < r.least_sum) return "No row sees a key.";
  return fmt::format("The weights of a row sum up to {} at least and {} at most; they should to 1.",
                     number(r.least_sum), number(r.largest_sum));
}

Json property_json(const PropertyResult& r) {
  Json j;
  j["name"] = info(r.property).name;
  j["statement"] = info(r.property).statement;
  j["verdict"] = verdict_name(r.verdict);
  j["why_not_tried"] = r.why_not.empty() ? Json(nullptr) : Json(r.why_not);
  j["compared"] = r.compared;
  j["explained_by"] = r.verdict == PropertyResult::Verdict::kExplained
                          ? Json(info(r.explained_by).name)
                          : Json(nullptr);
  j["broken"] = r.broken;
  j["max_err_over_bound"] = json_number(r.max_err_over_bound);
  j["first"] = nullptr;
  j["meaning"] = nullptr;
  if (r.verdict != PropertyResult::Verdict::kBroken) return j;
  j["meaning"] = info(r.property).meaning;
  Json first;
  first["tensor"] = name(r.tensor);
  first["batch"] = r.index[0];
  first["head"] = r.index[1];
  first["query"] = r.index[2];
  first["dim"] = r.tensor == Tensor::kO ? Json(r.index[3]) : Json(nullptr);
  first["actual"] = json_number(r.actual);
  first["expected"] = json_number(r.expected);
  j["first"] = first;
  return j;
}

bool broken(const PropertyResult& r) { return r.verdict == PropertyResult::Verdict::kBroken; }

}  // namespace

Json properties_json(const std::vector<PropertyResult>& all) {
  Json j = Json::array();
  for (const PropertyResult& r : all) j.push_back(property_json(r));
  return j;
}

bool XrayView::broken() const {
  return properties && std::any_of(properties->begin(), properties->end(), report::broken);
}

Answer XrayView::answer() const {
  return broken() ? Answer::kDiverges : answer_of(xray.capture, xray.comparison);
}

std::string xray_headline(const XrayView& view) {
  const XrayResult& r = view.xray;
  const Summary s = summarise(r.comparison);
  if (!r.capture.input_writes.empty()) return input_writes_headline(r.capture);
  if (view.answer() == Answer::kAgrees)
    return fmt::format("AGREES: what can be seen of {}, in {}", view.kernel,
                       judged_text(s.compared, s.unjudged));
  if (view.answer() == Answer::kNotJudged) return could_not_compare_text(r.comparison);
  if (!view.broken() && r.comparison.answer() != Answer::kDiverges)
    return r.capture.repetition.unsound() ? "DIVERGES: " + repetition_text(r.capture.repetition)
                                          : fmt::format("DIVERGES: {} never written",
                                                        plural(coverage_faults(r.capture), "cell"));
  if (s.first_wrong == nullptr || !s.first_wrong->first) {
    const auto n = std::count_if(
        view.properties->begin(), view.properties->end(),
        [](const PropertyResult& p) { return p.verdict == PropertyResult::Verdict::kBroken; });
    return fmt::format("DIVERGES: {}, though the weights of this case are right",
                       n == 1 ? "a property of attention is broken"
                              : fmt::format("{} properties of attention are broken", n));
  }
  const TensorComparison& t = *s.first_wrong;
  return fmt::format("DIVERGES: {}{} is {}, expected {} within {}", name(t.tensor),
                     index_text(t.tensor, t.first->index), exact(t.first->actual),
                     exact(t.first->expected), number(t.first->limit));
}

std::string xray_text(const XrayView& view, const Style& style, bool verdict_only) {
  const XrayResult& r = view.xray;
  std::string s = stale_text(r.capture.provenance, style);
  s += paint(style, colour_of(view.answer()), xray_headline(view)) + '\n';
  if (verdict_only) return s;
  const auto line = [&](const std::string& words) {
    s += "  " + wrap(words, style.width - 2, 4) + '\n';
  };
  line(fmt::format("{} on {}: {}, {}", view.kernel, view.backend, problem_text(r.capture.problem),
                   geometry_text(r.capture.geometry)));
  line(seen_text(r));
  line(sums_text(r));
  if (!r.capture.has(Tensor::kLse))
    line(
        "The kernel has no lse: S is known up to a constant a row, which was taken from the "
        "reference.");
  else if (r.rows_without_lse > 0)
    line(
        fmt::format("In {} the weights are those of S up to a factor, but lse does not go with "
                    "them: the fault is in l, "
                    "in lse or in the division, not before.",
                    plural(r.rows_without_lse, "row")));
  for (const std::string& note : r.capture.notes)
    if (note.starts_with("The result moves")) line(note);
  s += '\n' + tensor_table(r.comparison, style);
  const Summary summary = summarise(r.comparison);
  if (summary.first_wrong != nullptr) {
    s += '\n' + picture(*summary.first_wrong, r.capture.problem, r.capture.geometry,
                        r.capture.region, style);
    s += difference_lines(*summary.first_wrong);
    if (stage_of(summary.first_wrong->tensor) != Stage::kReduce)
      line(
          "An x-ray sees the weights with which v enters o: a rescale or a merge that is wrong "
          "shows as "
          "wrong weights, too, tile by tile or split by split.");
  }
  s += coverage_text(r.capture, style);
  if (view.properties) {
    s += "\n  Properties of attention:\n" + properties_text(*view.properties, style);
  }
  if (!view.reproduce.empty()) s += "\n  Reproduce: " + view.reproduce + '\n';
  if (!view.dump.empty()) s += fmt::format("  Written: {}\n", view.dump);
  return s;
}

Json xray_json(const XrayView& view, const CommandContext& context) {
  const XrayResult& r = view.xray;
  Json j = json_head(context, view.answer(), r.capture.provenance.stale());
  j["kernel"] = view.kernel;
  j["backend"] = view.backend;
  j["problem"] = to_json(r.capture.problem);
  j["geometry"] = to_json(r.capture.geometry);
  Json x;
  x["launches"] = r.launches;
  x["cells_seen"] = r.seen;
  x["cells_without_weight"] = r.without_weight;
  x["cells_unknown"] = r.unknown;
  x["median_uncertainty"] = json_number(r.median_uncertainty);
  x["rows_without_lse"] = r.rows_without_lse;
  const bool any = r.largest_sum >= r.least_sum || std::isnan(r.least_sum);
  x["least_sum_of_weights"] = any ? json_number(r.least_sum) : Json(nullptr);
  x["largest_sum_of_weights"] = any ? json_number(r.largest_sum) : Json(nullptr);
  j["xray"] = x;
  j["judged"] = r.comparison.judged();
  j["cells"] = r.comparison.judged() + r.comparison.unjudged();
  j["input_writes"] = input_writes_json(r.capture);
  j["stages"] = stages_json(r.comparison);
  j["coverage"] = coverage_json(r.capture);
  j["properties"] = nullptr;
  if (view.properties) j["properties"] = properties_json(*view.properties);
  j["notes"] = r.capture.notes;
  j["dump"] = view.dump.empty() ? Json(nullptr) : Json(view.dump);
  j["provenance"] = to_json(r.capture.provenance);
  return j;
}

}  // namespace attn_diag::report
