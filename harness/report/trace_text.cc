#include "harness/report/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/cells.h"
#include "harness/report/comparison_text.h"
#include "harness/report/lines_report.h"
#include "harness/report/picture.h"
#include "harness/report/query_row.h"
#include "harness/report/same_output.h"
#include "harness/report/sanity_report.h"
#include "harness/report/summary.h"
#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

const StageReport* stage_report(const TraceResult& r, Stage stage) {
  for (const StageReport& s : r.stages)
    if (s.stage == stage) return &s;
  return nullptr;
}

const TensorComparison* comparison_of(const TraceResult& r, Tensor tensor) {
  const StageReport* stage = stage_report(r, stage_of(tensor));
  if (stage == nullptr) return nullptr;
  for (const TensorComparison& t : stage->prefix.tensors)
    if (t.tensor == tensor) return &t;
  return nullptr;
}

std::string verdict_cell(Verdict v, const Style& style) {
  if (v == Verdict::kAgrees) return verdict_text(Answer::kAgrees, style);
  if (v == Verdict::kDiverges) return verdict_text(Answer::kDiverges, style);
  if (v == Verdict::kNotJudged) return verdict_text(Answer::kNotJudged, style);
  return paint(style, Colour::kDim, name(v));
}

std::string stage_table(const TraceResult& r, const Style& style) {
  Table table({"stage", "verdict", ">err/bound", ">max abs err", ">max ULP", ">mismatched",
               "fed right inputs"});
  for (const StageReport& s : r.stages) {
    const Summary sum = summarise(s.prefix);
    const bool ran = sum.compared > 0;
    table.add({std::string(name(s.stage)), verdict_cell(s.verdict, style),
               ran ? ratio(sum.max_err_over_bound) : "",
               ran ? greatest_text(sum.max_abs_err, sum.mismatched) : "",
               !ran                                     ? ""
               : has_ulps(sum.max_ulp, sum.max_abs_err) ? greatest_text(sum.max_ulp, sum.mismatched)
                                                        : "-",
               ran ? mismatched_text(sum.mismatched, sum.compared) : "",
               verdict_cell(s.isolated, style)});
  }
  return table.text(style);
}

std::string pattern_text(const TraceResult& r, const Style& style) {
  if (r.pattern.empty()) return "";
  std::string s = fmt::format("\n  Pattern of {}:\n", name(r.first->tensor));
  const auto lines = [&](StatementKind kind, Colour colour, const char* label) {
    for (const PatternStatement& p : r.pattern)
      if (p.kind == kind)
        s += "    " + paint(style, colour, label) + wrap(p.text, style.width - 11, 11) + '\n';
  };
  lines(StatementKind::kWrong, Colour::kRed, "wrong  ");
  lines(StatementKind::kExact, Colour::kGreen, "exact  ");
  lines(StatementKind::kHint, Colour::kYellow, "hint   ");
  return s;
}

// What the value was, how wrong that is, and where the fault must be.
std::string first_lines(const TraceResult& r, const TraceTextOptions& o) {
  const FirstDivergence& f = *r.first;
  std::string s = "  " + first_cell_text(f, o.tolerance, o.style) + '\n';
  const StageReport* stage = stage_report(r, f.stage);
  if (stage != nullptr && stage->isolated == Verdict::kDiverges)
    s += fmt::format("  The fault is in {} itself: fed right inputs, it still diverges.\n",
                     name(f.stage));
  if (stage != nullptr && stage->isolated == Verdict::kAgrees)
    s += fmt::format(
        "  Fed right inputs, {} agrees: it is wrong only for the inputs it gets "
        "here.\n",
        name(f.stage));
  return s;
}

// The tensor whose picture tells most: the first wrong one of the stage that has KV tiles or
// splits.
const TensorComparison* pictured(const TraceResult& r) {
  const StageReport* stage = stage_report(r, r.first->stage);
  if (stage == nullptr) return nullptr;
  const TensorComparison* any = nullptr;
  for (const TensorComparison& t : stage->prefix.tensors) {
    if (t.mismatched == 0 || t.picture.empty()) continue;
    if (t.picture_shape[3] > 1) return &t;
    if (any == nullptr) any = &t;
  }
  return any;
}

std::string closure_text(const TraceResult& r, const Style& style) {
  if (!r.closure || !r.first) return "";
  if (r.second_fault) {
    const Summary later = summarise(*r.closure);
    const std::string where =
        later.first_wrong != nullptr
            ? fmt::format(" in {} ({})", name(stage_of(later.first_wrong->tensor)),
                          name(later.first_wrong->tensor))
            : "";
    return "  " +
           paint(style, Colour::kRed,
                 fmt::format("A second fault: with the right {} put in, something later still "
                             "diverges{}.",
                             name(r.first->stage), where)) +
           '\n';
  }
  return fmt::format(
      "  One fault explains all: with the right {} put in, everything later "
      "agrees.\n",
      name(r.first->stage));
}

std::string observer_text(const TraceResult& r, const Style& style) {
  if (!r.observer_checked) return "";
  if (r.observer_identical)
    return "  The production kernel gives the same outputs, bit for bit: the taps disturb "
           "nothing.\n";
  if (r.sanity.unsound() && r.calmly.empty())
    return "  Whether the taps disturb cannot be told of a result that moves without them too.\n";
  return "  " +
         paint(style, Colour::kRed,
               fmt::format("The taps disturb: the production kernel differs in {} of its outputs.",
                           plural(r.observer_differing, "element"))) +
         "\n  " +
         (r.production.tensors.empty() ? "It was not compared with the reference.\n"
          : r.production.agrees()      ? "The production kernel itself agrees with the reference.\n"
          : r.production.answer() == Answer::kNotJudged
              ? "The production kernel's o cannot be judged.\n"
              : "The production kernel diverges from the reference too.\n");
}

std::string schedules_text(const TraceResult& r, const Style& style) {
  const bool on_gpu = r.capture.provenance.backend == "cuda";
  const std::string detail =
      r.schedules_detail.empty() ? "" : "\n    " + wrap(r.schedules_detail, style.width - 4, 4);
  switch (r.schedules) {
    case ScheduleFinding::kNotChecked:
      return "";
    case ScheduleFinding::kSame:
      return (on_gpu ? "  Every run of the production kernel gave the same bits."
                     : "  The order in which threads run makes no difference.") +
             detail + '\n';
    case ScheduleFinding::kOrderDependent:
      return "  " +
             paint(style, r.sanity.within_bounds ? Colour::kNone : Colour::kRed,
                   r.sanity.within_bounds
                       ? "The order in which threads or blocks arrive changes the result, within "
                         "its bounds."
                   : on_gpu ? "A race: runs of one and the same case differ."
                            : "A race: the result depends on the order in which threads run.") +
             detail + '\n';
    case ScheduleFinding::kRightIfConverged:
      return "  " +
             paint(style, Colour::kRed,
                   "Right only while each warp happens to stay converged, or warps to come one "
                   "after the other: look for a missing __syncwarp or __syncthreads.") +
             detail + '\n';
  }
  return "";
}

// The stages as one comparison.
Comparison everything(const TraceResult& r) {
  Comparison all;
  for (const StageReport& s : r.stages) {
    all.tensors.insert(all.tensors.end(), s.prefix.tensors.begin(), s.prefix.tensors.end());
    all.unjudged_because = s.prefix.unjudged_because;
  }
  return all;
}

// What is shown of a result that moves by more than rounding.
std::string shown_text(const TraceResult& r) {
  if (!r.calmly.empty())
    return fmt::format(
        "What follows was run {}, where the result holds still: another fault, or what the same "
        "one "
        "does there.",
        r.calmly);
  const std::string rest =
      "What follows is one of the results: where it is wrong may say who reads, how wrong it is "
      "says nothing.";
  if (!r.latent()) return rest;
  return fmt::format("Nothing else is wrong: {} every stage agrees. {}", r.sanity.calm->text, rest);
}

// Errors of what agrees.
std::string memory_text(const TraceResult& r, const TraceTextOptions& o) {
  if (r.memory_errors.value_or(0) == 0) return "";
  return "  " +
         paint(o.style, Colour::kYellow,
               fmt::format("But attn-diag check finds {}, whatever the numbers:",
                           plural(*r.memory_errors, "error"))) +
         ' ' + o.check + '\n';
}

std::string notes_text(const TraceResult& r, const Style& style) {
  std::string s;
  for (const auto* notes : {&r.notes, &r.capture.notes})
    for (const std::string& note : *notes)
      s += "  " + wrap("Note: " + note, style.width - 2, 4) + '\n';
  return s;
}

std::string evidence(const TraceResult& r, const TraceTextOptions& o) {
  const FirstDivergence& f = *r.first;
  std::string s;
  if (const TensorComparison* t = comparison_of(r, f.tensor))
    if (t->mismatched > 0) s += '\n' + difference_lines(*t);
  const QueryRow row =
      row_of(r.capture, o.tolerance, static_cast<std::int32_t>(f.batch),
             static_cast<std::int32_t>(f.head), static_cast<std::int32_t>(f.query));
  s += "\n  " +
       wrap(fmt::format("First mismatch of {} and its neighbours ({}):", name(f.tensor),
                        place_text(f.tensor, index_of(f), r.capture.problem, r.capture.geometry)),
            o.style.width - 2, 4) +
       '\n';
  s += window_text(row, f.tensor, index_of(f), o.style);
  if (const TensorComparison* t = pictured(r))
    s += '\n' + picture(*t, r.capture.problem, r.capture.geometry, r.capture.region, o.style);
  return s;
}

}  // namespace

std::string first_text(const FirstDivergence& f, const Problem& problem) {
  std::string s = fmt::format("{} diverges first", name(f.stage));
  if (problem.batch > 1) s += fmt::format(", batch {}", f.batch);
  s += fmt::format(", head {}, query {}, query tile {}", f.head, f.query, f.query_tile);
  if (f.kv_tile) s += fmt::format(", kv tile {}", *f.kv_tile);
  if (f.split) s += fmt::format(", split {}", *f.split);
  if (f.key) s += fmt::format(", key {}", *f.key);
  if (f.dim) s += fmt::format(", dim {}", *f.dim);
  if (f.writes) s += *f.writes == 0 ? ": never written" : ": written more than once";
  return s;
}

std::array<std::int64_t, 5> index_of(const FirstDivergence& f) {
  std::array<std::int64_t, 5> index = {f.batch, f.head, f.query, 0, 0};
  for (int i = 3; i < info(f.tensor).rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    switch (info(f.tensor).axes[at]) {
      case Axis::kKey:
        index[at] = f.key.value_or(0);
        break;
      case Axis::kKvTile:
        index[at] = f.kv_tile.value_or(0);
        break;
      case Axis::kSplit:
        index[at] = f.split.value_or(0);
        break;
      default:
        index[at] = f.dim.value_or(0);
    }
  }
  return index;
}

std::string first_cell_text(const FirstDivergence& f, const Tolerance& tolerance,
                            const Style& style) {
  const std::string cell = fmt::format("{}{}", name(f.tensor), index_text(f.tensor, index_of(f)));
  if (f.writes)
    return fmt::format("{} was written {}, expected once", cell,
                       *f.writes == 0 ? "never" : fmt::format("{} times", *f.writes));
  const double score = judge_cell(f.actual, f.expected, f.bound).ratio;
  const std::string within =
      std::isfinite(f.expected) && std::isfinite(f.bound) ? " within " + number(f.bound) : "";
  const std::string verdict = !std::isfinite(score) ? "no rounding explains that"
                              : tolerance.use_bound ? ratio(score) + " what rounding can explain"
                                                    : ratio(score) + " the tolerance";
  return fmt::format("{} is {}, expected {}{}: {}", cell, exact(f.actual), exact(f.expected),
                     within, paint(style, Colour::kRed, verdict));
}

std::string trace_headline(const TraceResult& r) {
  if (!r.capture.input_writes.empty()) return input_writes_headline(r.capture);
  if (r.latent()) return "LATENT: " + sanity_headline(r.sanity) + standing_text(r.sanity);
  if (r.sanity.unsound())
    return "DIVERGES: " + sanity_headline(r.sanity) +
           standing_text(r.sanity, r.calmly.empty() || !r.first
                                       ? ""
                                       : first_text(*r.first, r.capture.problem));
  if (r.first) return "DIVERGES: " + first_text(*r.first, r.capture.problem);
  double worst = 0;
  for (const StageReport& s : r.stages)
    worst = std::max(worst, summarise(s.prefix).max_err_over_bound);
  if (r.agrees()) {
    const std::int64_t unjudged = r.cells() - r.judged();
    return fmt::format(
        "AGREES: {}{} are within what rounding can explain (worst {}){}",
        judged_text(r.judged(), unjudged), unjudged == 0 ? " of every stage" : "", ratio(worst),
        r.sanity.within_bounds ? "; bits depend on the order of arrival, within rounding" : "");
  }
  if (r.answer() == Answer::kNotJudged) {
    const Comparison all = everything(r);
    return all.answer() == Answer::kAgrees
               ? "COULD NOT COMPARE: a stage has nothing that was compared"
               : could_not_compare_text(all);
  }
  if (const std::int64_t n = coverage_faults(r.capture); n > 0)
    return fmt::format("DIVERGES: {} never written or written more than once", plural(n, "cell"));
  if (r.schedules == ScheduleFinding::kOrderDependent ||
      r.schedules == ScheduleFinding::kRightIfConverged)
    return "DIVERGES: right on this schedule, wrong on another";
  if (r.observer_checked && !r.observer_identical)
    return "DIVERGES: every stage agrees with taps on, but the production kernel differs";
  return "DIVERGES: a stage fed right inputs diverges";
}

std::string trace_text(const TraceResult& r, const TraceTextOptions& o) {
  const Capture& c = r.capture;
  std::string s = same_output_text(c.same_output, o.style) + stale_text(c.provenance, o.style);
  const std::string headline = trace_headline(r);
  s += paint(o.style, r.latent() ? Colour::kYellow : colour_of(r.answer()), headline) + '\n';
  if (o.verdict_only) return s;

  if (r.sanity.moved()) s += sanity_text(r.sanity, o.check, o.style);
  if (!c.input_writes.empty() && !o.check.empty()) s += "  Find the line: " + o.check + '\n';
  if (r.sanity.unsound()) s += "  " + wrap(shown_text(r), o.style.width - 2, 2) + '\n';
  if ((r.sanity.unsound() || !c.input_writes.empty()) && r.first)
    s += "  " + wrap("In that: " + first_text(*r.first, c.problem), o.style.width - 2, 4) + '\n';
  if (r.first) s += first_lines(r, o);
  s += memory_text(r, o);
  if (r.lines) {
    s += lines_text(*r.lines, o.style, o.tables);
    if (!r.lines->suspects.empty() && !o.repair.empty())
      s += "    Try small edits there: " + o.repair + '\n';
    s += '\n';
  }
  s += fmt::format("  {} on {}: {}, {}\n\n", c.provenance.kernel, c.provenance.backend,
                   problem_text(c.problem), geometry_text(c.geometry));
  s += stage_table(r, o.style);
  s += exempt_text(c);
  s += coverage_text(c, o.style);
  // A pattern is a formula, which a result that moves does not have.
  if (r.first && (!r.sanity.unsound() || !r.calmly.empty())) s += pattern_text(r, o.style);
  if (r.first) s += evidence(r, o);

  s += '\n';
  s += closure_text(r, o.style);
  s += observer_text(r, o.style);
  s += schedules_text(r, o.style);
  if (!r.sanity.moved()) s += sanity_text(r.sanity, "", o.style);
  if (const StageReport* reduce = stage_report(r, Stage::kReduce)) s += zeros_text(reduce->prefix);
  s += sources_missing_text(c.provenance, o.style);
  s += notes_text(r, o.style);
  return s + "  Reproduce: " + o.reproduce + '\n';
}

}  // namespace attn_diag::report
