#include "harness/report/numerics_report.h"

namespace attn_diag::report {
namespace {

template <class T, class F>
Json array_of(const std::vector<T>& all, const F& f) {
  Json j = Json::array();
  for (const T& x : all) j.push_back(f(x));
  return j;
}

template <class Array>
Json index_json(const Array& index, int rank) {
  Json j = Json::array();
  for (int i = 0; i < rank; ++i) j.push_back(index[static_cast<std::size_t>(i)]);
  return j;
}

Json bins_json(const std::vector<PositionBin>& bins) {
  return array_of(bins, [](const PositionBin& b) {
    return Json{{"from", json_number(b.low)},
                {"to", json_number(b.high)},
                {"cells", b.cells},
                {"rms_err_over_bound", json_number(b.rms_err_over_bound)},
                {"max_err_over_bound", json_number(b.max_err_over_bound)}};
  });
}

Json tensor_json(const TensorNumerics& t) {
  Json j;
  j["name"] = name(t.tensor);
  j["stage"] = name(stage_of(t.tensor));
  j["storage"] = name(t.storage);
  j["cells"] = t.cells;
  j["judged"] = t.judged;
  j["mismatched"] = t.mismatched;
  j["err_over_bound"] = {{"median", json_number(t.median)}, {"p90", json_number(t.p90)},
                         {"p99", json_number(t.p99)},       {"p999", json_number(t.p999)},
                         {"max", json_number(t.max)},       {"histogram", t.ratios}};
  j["ulps"] = {{"cells", t.with_ulps},
               {"max", t.with_ulps > 0 ? json_number(t.max_ulp) : Json(nullptr)},
               {"histogram", t.ulps}};
  j["rms_err"] = json_number(t.rms_err);
  j["bias"] = json_number(t.bias);
  j["shrinkage"] = json_number(t.shrinkage);
  j["by_query"] = bins_json(t.by_query);
  j["by_visible_keys"] = bins_json(t.by_keys);
  j["by_score"] = bins_json(t.by_score);
  const Census& c = t.census;
  j["census"] = {{"nan", c.nan},
                 {"plus_inf", c.plus_inf},
                 {"minus_inf", c.minus_inf},
                 {"overflow", c.overflow},
                 {"subnormal", c.subnormal},
                 {"flushed", c.flushed},
                 {"underflowed", c.underflowed}};
  return j;
}

Json origin_json(const NonFiniteOrigin& o) {
  Json j;
  j["cells"] = o.cells;
  j["steps"] = array_of(o.steps, [](const OriginStep& s) {
    Json step;
    step["of"] = s.input ? std::string(1, *s.input) : std::string(name(s.tensor));
    step["index"] = index_json(s.index, s.input ? 4 : info(s.tensor).rank);
    step["value"] = json_number(s.value);
    step["why"] = s.why;
    return step;
  });
  return j;
}

Json dot_json(const CancelledDot& d) {
  return {{"index", index_json(d.index, 4)}, {"sum_abs", json_number(d.sum_abs)},
          {"sum", json_number(d.sum)},       {"digits_lost", json_number(d.digits)},
          {"err", json_number(d.err)},       {"bound", json_number(d.bound)}};
}

Json cancellation_json(const Cancellation& c) {
  Json j;
  j["tensor"] = name(c.tensor);
  j["sums"] = c.dots;
  j["median_digits_lost"] = c.median_digits;
  j["p99_digits_lost"] = c.p99_digits;
  j["max_digits_lost"] = c.max_digits;
  j["by_digits_lost"] = c.by_digits;
  j["worst"] = array_of(c.worst, dot_json);
  j["largest_relative_error"] = c.largest_relative ? dot_json(*c.largest_relative) : Json(nullptr);
  j["explained_by_cancellation"] = c.largest_relative ? Json(c.explained) : Json(nullptr);
  return j;
}

Json range_json(const RangeInType& r) {
  Json j;
  j["tensor"] = name(r.tensor);
  j["type"] = name(r.type);
  j["cells"] = r.cells;
  j["smallest"] = json_number(r.smallest);
  j["largest"] = json_number(r.largest);
  j["overflow"] = r.overflows;
  j["subnormal"] = r.subnormal;
  j["vanish"] = r.vanishes;
  j["largest_share_lost"] = r.tensor == Tensor::kP ? json_number(r.lost_of_row) : Json(nullptr);
  j["error_of_largest"] = r.tensor == Tensor::kS ? json_number(r.error_of_largest) : Json(nullptr);
  return j;
}

Json contributions_json(const Contributions& c) {
  Json j;
  j["why_not"] = c.why_not.empty() ? Json(nullptr) : Json(c.why_not);
  j["rows"] = c.rows;
  j["parts"] = array_of(c.parts, [](const Contribution& p) {
    return Json{{"rounding", p.what},
                {"rms", json_number(p.rms)},
                {"share", json_number(p.share)},
                {"rms_without", json_number(p.rms_without)}};
  });
  j["rms_of_parts"] = json_number(c.rms_of_parts);
  j["rms_together"] = json_number(c.rms_together);
  j["rms_observed"] = json_number(c.rms_observed);
  j["observed_over_together"] = json_number(c.ratio());
  j["left_over"] = json_number(c.left_over);
  j["explained"] = c.why_not.empty() ? Json(c.explained) : Json(nullptr);
  j["instead"] = array_of(c.instead, [](const Contribution& p) {
    return Json{{"rounding", p.what}, {"rms", json_number(p.rms)}};
  });
  return j;
}

Json numerics_json(const Numerics& n) {
  Json j;
  j["tensors"] = array_of(n.tensors, tensor_json);
  j["origins"] = array_of(n.origins, origin_json);
  j["cancellation"] = array_of(n.cancellation, cancellation_json);
  j["ranges"] = array_of(n.ranges, range_json);
  j["contributions"] = contributions_json(n.contributions);
  return j;
}

std::string_view word(InvariantResult::Verdict verdict) {
  switch (verdict) {
    case InvariantResult::Verdict::kHolds:
      return "holds";
    case InvariantResult::Verdict::kBroken:
      return "broken";
    case InvariantResult::Verdict::kFollows:
      return "follows";
    case InvariantResult::Verdict::kNotTried:
      break;
  }
  return "not_tried";
}

Json invariant_json(const InvariantResult& r) {
  using Verdict = InvariantResult::Verdict;
  const InvariantInfo& i = info(r.invariant);
  Json j;
  j["name"] = i.name;
  j["statement"] = i.statement;
  j["verdict"] = word(r.verdict);
  j["why_not_tried"] = r.verdict == Verdict::kNotTried ? Json(r.why_not) : Json(nullptr);
  j["follows_from"] =
      r.verdict == Verdict::kFollows ? Json(info(r.follows_from).name) : Json(nullptr);
  j["checked"] = r.checked;
  j["broken"] = r.broken;
  j["max_err_over_limit"] = json_number(r.max_err_over_limit);
  j["first"] = nullptr;
  j["meaning"] = nullptr;
  if (r.verdict != Verdict::kBroken) return j;
  j["meaning"] = meaning_of(r);
  j["first"] = {{"tensor", name(r.tensor)},
                {"index", index_json(r.index, info(r.tensor).rank)},
                {"actual", json_number(r.actual)},
                {"expected", json_number(r.expected)},
                {"limit", json_number(r.limit)}};
  return j;
}

Json drift_json(const NumericsView& view) {
  if (!view.drift) return nullptr;
  Json j;
  j["baseline"] = view.baseline;
  j["baseline_run"] = view.baseline_run;
  j["identical"] = view.drift->identical;
  j["drifted"] = array_of(view.drift->drifted, [](const Drift& d) {
    return Json{{"tensor", d.tensor}, {"what", d.what}};
  });
  return j;
}

}  // namespace

Json numerics_json(const NumericsView& view, const CommandContext& context) {
  const Capture& c = *view.capture;
  Json j = json_head(context, view.answer(), c.provenance.stale());
  j["headline"] = numerics_headline(view);
  j["subject"] = view.subject;
  j["kernel"] = c.provenance.kernel;
  j["backend"] = c.provenance.backend;
  j["problem"] = to_json(c.problem);
  j["geometry"] = to_json(c.geometry);
  j["region"] = to_json(c.region);
  const Comparison none;
  const Comparison& comparison = view.numerics ? view.numerics->comparison : none;
  j["judged"] = comparison.judged();
  j["cells"] = comparison.judged() + comparison.unjudged();
  j["stages"] = stages_json(comparison);
  j["numerics"] = view.numerics ? numerics_json(*view.numerics) : Json(nullptr);
  j["invariants"] = array_of(view.invariants, invariant_json);
  j["drift"] = drift_json(view);
  j["coverage"] = coverage_json(c);
  j["written"] = view.written.empty() ? Json(nullptr) : Json(view.written);
  j["notes"] = c.notes;
  j["provenance"] = to_json(c.provenance);
  return j;
}

}  // namespace attn_diag::report
