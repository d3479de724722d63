#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/comparison_text.h"
#include "harness/report/diagnosis.h"
#include "harness/report/lines_report.h"
#include "harness/report/same_output.h"
#include "harness/report/sanity_report.h"
#include "harness/report/trace_text.h"

namespace attn_diag::report {
namespace {

constexpr std::size_t kMostTaps = 3;

std::string parameters_text(const Match::Part& part) {
  std::string s;
  for (const reference::ParameterValue& value : part.parameters) {
    if (!s.empty()) s += ", ";
    if (value.choice && !value.named.empty())
      s += fmt::format("{}: {}", value.name, value.named);
    else
      s += fmt::format("{} = {}{}", value.name, number(value.value),
                       value.named.empty() ? "" : fmt::format(" ({})", value.named));
  }
  return s.empty() ? "" : " with " + s;
}

std::string statement(const Match& match) {
  std::string s;
  for (const Match::Part& part : match.parts)
    s += fmt::format("{}{}{} [{}, {}]", s.empty() ? "" : "; and ", part.statement,
                     parameters_text(part), part.formula, part.id);
  return s;
}

std::string labels(const std::vector<Match>& matches) {
  std::vector<std::string> all;
  for (const Match& match : matches) all.push_back(match.label);
  return join(all, ", ");
}

std::string tensors_text(const std::vector<Tensor>& tensors) {
  std::vector<std::string> names;
  for (const Tensor t : tensors) names.emplace_back(attn_diag::name(t));
  return join(names, ", ");
}

std::string where(const DiagnosisView& view) {
  const Diagnosis& d = *view.diagnosis;
  std::string s = fmt::format("Stage {} is wrong in {} of {}.", attn_diag::name(d.stage),
                              count(d.wrong_rows), plural(d.rows, "row"));
  if (view.trace != nullptr && view.trace->first)
    s += fmt::format(" It begins at: {}.", first_text(*view.trace->first, view.capture->problem));
  return s;
}

std::string how_sure(const Diagnosis& d) {
  const Match& m = d.best.front();
  std::string s = fmt::format(
      "It accounts for {} of {} ({} of the {} wrong ones), the worst cell at {} the rounding bound",
      count(m.rows_explained), plural(m.rows, "row"), count(m.wrong_rows_explained),
      count(m.wrong_rows), ratio(m.residual_over_bound));
  if (!m.confirmed) s += "; only a sample of the rows was looked at";
  s += '.';
  if (d.runner_up) {
    const Match& r = *d.runner_up;
    s += fmt::format(
        " The next best of the others, {}, accounts for {} of {} wrong rows and is off by up to "
        "{}.",
        r.label, count(r.wrong_rows_explained), count(r.wrong_rows), ratio(r.residual_over_bound));
  }
  return s + fmt::format(" Confidence {:.2f}.", d.confidence);
}

std::string remedies(const Diagnosis& d) {
  std::vector<std::string> all;
  for (const Match& match : d.best)
    for (const Match::Part& part : match.parts) {
      std::string text = part.remedy;
      if (!part.citation.empty()) text += fmt::format(" (seen in {})", part.citation);
      if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
    }
  return all.empty() ? "" : " Look at: " + join(all, "; ") + '.';
}

std::string lines_of(const char* heading, const std::vector<std::string>& sentences,
                     const Style& style) {
  if (sentences.empty()) return "";
  std::string s = fmt::format("\n  {}:\n", heading);
  for (const std::string& sentence : sentences)
    s += "    " + wrap(sentence, style.width - 4, 4) + '\n';
  return s;
}

std::string taps_text(const DiagnosisView& view) {
  std::vector<std::string> places;
  for (const TapLine& tap : view.taps) {
    if (places.size() == kMostTaps) break;
    places.push_back(fmt::format("{}:{}", tap.path, tap.line));
  }
  return places.empty() ? "" : "  Recorded at: " + join(places, ", ") + '\n';
}

// Whether the line agrees with what was named.
std::string agreement(const Diagnosis& d) {
  std::vector<std::string> with, otherwise;
  for (const Match& match : d.best) {
    if (match.line == LineSays::kAgrees) with.push_back(match.label);
    if (match.line == LineSays::kOtherwise) otherwise.push_back(match.label);
  }
  if (d.verdict != DiagnosisVerdict::kNamed && d.verdict != DiagnosisVerdict::kClass &&
      d.verdict != DiagnosisVerdict::kDisputed)
    return "The line";
  if (with.empty() && otherwise.empty()) return "The line, which tells nothing of the name";
  if (with.size() == d.best.size()) return "The line agrees";
  if (otherwise.size() == d.best.size()) return "The line says otherwise";
  if (with.empty()) return "The line does not agree with " + join(otherwise, ", ");
  return fmt::format("The line agrees with {}{}", join(with, ", "),
                     otherwise.empty() ? "" : ", not with " + join(otherwise, ", "));
}

std::string line_text(const DiagnosisView& view, const Style& style) {
  if (view.trace == nullptr || !view.trace->lines || answer_of(*view.diagnosis) == Answer::kAgrees)
    return "";
  const LineDivergence& lines = *view.trace->lines;
  if (lines.suspects.empty()) return "";
  return "  " + wrap(agreement(*view.diagnosis) + ": " + lines_line(lines), style.width - 2, 2) +
         '\n';
}

std::string why_not_text(const WhyNot& w, const Style& style) {
  const Match& m = w.match;
  const Match::Part& part = m.parts.front();
  std::string s = fmt::format("{} ({}): ", part.id, part.statement);
  if (!w.possible) {
    s += "it cannot be there: with this shape, mask and cut into tiles and splits it changes "
         "nothing.";
  } else if (!w.worst) {
    s +=
        fmt::format("it is not ruled out: {} accounts for all {}.", m.label, plural(m.rows, "row"));
  } else {
    const WhyNot::Cell& c = *w.worst;
    s += fmt::format(
        "at its best, {}, it accounts for {} of {} wrong rows and {} of all {}. Worst: {}{} is {}, "
        "it "
        "predicts {} within {}: {} of what rounding can explain.",
        m.label, count(m.wrong_rows_explained), count(m.wrong_rows), count(m.rows_explained),
        count(m.rows), attn_diag::name(c.tensor), index_text(c.tensor, c.index), exact(c.actual),
        exact(c.predicted), number(c.bound), ratio(m.residual_over_bound));
  }
  if (w.exonerated)
    s += fmt::format(" Stage {}, which it changes, was compared and agrees.",
                     attn_diag::name(part.stage));
  return "    " + wrap(s, style.width - 4, 4) + '\n';
}

}  // namespace

std::string_view name(DiagnosisVerdict verdict) {
  switch (verdict) {
    case DiagnosisVerdict::kNothingWrong:
      return "nothing_wrong";
    case DiagnosisVerdict::kNamed:
      return "named";
    case DiagnosisVerdict::kClass:
      return "class";
    case DiagnosisVerdict::kPartial:
      return "partial";
    case DiagnosisVerdict::kUnknown:
      return "unknown";
    case DiagnosisVerdict::kNotAFormula:
      return "not_a_formula";
    case DiagnosisVerdict::kNotJudged:
      return "not_judged";
    case DiagnosisVerdict::kDisputed:
      return "disputed";
  }
  return "";
}

std::string diagnosis_headline(const Diagnosis& d) {
  switch (d.verdict) {
    case DiagnosisVerdict::kNothingWrong:
      return d.unjudged == 0
                 ? "NOTHING WRONG: every row is within what rounding can explain"
                 : fmt::format("NOTHING WRONG in {}", judged_text(d.judged, d.unjudged));
    case DiagnosisVerdict::kNotJudged:
      return "COULD NOT COMPARE: " + d.not_judged;
    case DiagnosisVerdict::kNamed:
      return fmt::format("NAMED: {}", d.best.front().label);
    case DiagnosisVerdict::kClass:
      return fmt::format("ONE OF {}: {}", d.best.size(), labels(d.best));
    case DiagnosisVerdict::kPartial:
      return fmt::format("IN PART: {}", labels(d.best));
    case DiagnosisVerdict::kUnknown:
      return "UNKNOWN: none of the known bugs";
    case DiagnosisVerdict::kNotAFormula:
      return "NOT A FORMULA: the result moves";
    case DiagnosisVerdict::kDisputed:
      return fmt::format("NOT CERTAIN: {} by the numbers, and the line says otherwise",
                         labels(d.best));
  }
  return "";
}

std::string diagnosis_paragraph(const DiagnosisView& view) {
  const Diagnosis& d = *view.diagnosis;
  switch (d.verdict) {
    case DiagnosisVerdict::kNothingWrong:
      return d.unjudged == 0
                 ? fmt::format("All {} are within what rounding can explain.",
                               plural(d.rows, "row"))
                 : fmt::format("Of {}, {} are within what rounding can explain.",
                               plural(d.rows, "row"), judged_text(d.judged, d.unjudged));
    case DiagnosisVerdict::kNotJudged:
      return "Nothing can be said of the output: choose inputs whose scores and sums are smaller, "
             "without "
             "NaN and infinity, or judge by --atol and --rtol.";
    case DiagnosisVerdict::kNotAFormula:
      if (view.trace != nullptr && view.trace->latent())
        return fmt::format("Nothing else is wrong: {} every stage agrees.",
                           view.trace->sanity.calm->text);
      return "The result is not the same every time, and no formula explains that: no bug is named "
             "before that is mended.";
    case DiagnosisVerdict::kNamed:
      return where(view) + " The bug: " + statement(d.best.front()) + ". " + how_sure(d) +
             remedies(d);
    case DiagnosisVerdict::kClass: {
      std::string s =
          where(view) +
          fmt::format(" {} bugs account for all of it, and these inputs cannot tell them apart: ",
                      d.best.size());
      for (std::size_t i = 0; i < d.best.size(); ++i)
        s += fmt::format("{}({}) {}", i == 0 ? "" : "; ", i + 1, statement(d.best[i]));
      return s + ". " + how_sure(d) + remedies(d);
    }
    case DiagnosisVerdict::kDisputed: {
      std::string s = where(view) + " All of it is accounted for by:";
      for (const Match& match : d.best) s += ' ' + statement(match) + ';';
      s.back() = '.';
      return s + ' ' + how_sure(d) +
             " But numbers first go wrong where that leaves them right: so it is another bug, of "
             "the same effect here.";
    }
    case DiagnosisVerdict::kPartial:
    case DiagnosisVerdict::kUnknown:
      break;
  }
  std::string s = where(view) + (d.verdict == DiagnosisVerdict::kPartial
                                     ? " No known bug, and no pair of them, accounts for all of it."
                                     : " It is none of the known bugs.");
  for (const Match& match : d.best)
    s += fmt::format(" {} accounts for {} of {} wrong rows ({}).", match.label,
                     count(match.wrong_rows_explained), count(match.wrong_rows), statement(match));
  return s;
}

std::string diagnosis_headline(const DiagnosisView& view) {
  const std::string s = diagnosis_headline(*view.diagnosis);
  if (view.trace == nullptr || !view.trace->sanity.unsound()) return s;
  const Sanity& sanity = view.trace->sanity;
  if (view.trace->latent()) return "LATENT: " + sanity_headline(sanity) + standing_text(sanity);
  if (view.diagnosis->verdict == DiagnosisVerdict::kNotAFormula) return s + standing_text(sanity);
  return fmt::format("{}, {}; beside that, {}", s, view.trace->calmly, sanity_headline(sanity));
}

std::string diagnosis_text(const DiagnosisView& view, const DiagnosisTextOptions& o) {
  const Diagnosis& d = *view.diagnosis;
  const Capture& c = *view.capture;
  std::string s = same_output_text(c.same_output, o.style) + stale_text(c.provenance, o.style);
  if (const std::string wrote = input_writes_headline(c); !wrote.empty())
    s += paint(o.style, Colour::kRed, wrote) + '\n';
  s += paint(o.style, colour_of(answer_of(d)), diagnosis_headline(view)) + '\n';
  if (o.verdict_only) return s;
  s += "  " + wrap(diagnosis_paragraph(view), o.style.width - 2, 2) + '\n';
  s += fmt::format("  {}: {}, {}{}\n", view.subject, problem_text(c.problem),
                   geometry_text(c.geometry),
                   d.tensors.empty() ? "" : "; matched: " + tensors_text(d.tensors));
  if (view.trace != nullptr && view.trace->sanity.moved())
    s += sanity_text(view.trace->sanity, view.check, o.style);
  s += coverage_text(c, o.style);
  s += taps_text(view);
  s += line_text(view, o.style);
  s += lines_of("What is left", d.residual, o.style);
  std::vector<std::string> experiments;
  for (const TellingRun& e : d.experiments) experiments.push_back(e.what + ": " + e.why + '.');
  if (d.verdict == DiagnosisVerdict::kClass) {
    s += lines_of("What would tell them apart", experiments, o.style);
    for (const std::string& command : view.experiment_commands)
      if (!command.empty()) s += "    " + command + '\n';
  }
  if (view.experiments != nullptr)
    s += lines_of("What was run to tell them apart", *view.experiments, o.style);
  if (view.tiles != nullptr) s += lines_of("Other tiles", view.tiles->statements, o.style);
  std::vector<std::string> notes = d.notes;
  if (d.verdict == DiagnosisVerdict::kNamed || d.verdict == DiagnosisVerdict::kClass)
    for (const Match& match : d.best)
      if (!match.other_parameters.empty())
        notes.push_back(
            fmt::format("The parameters of {} are open: as much is accounted for by {}.",
                        match.label, join(match.other_parameters, ", ")));
  s += lines_of("Notes", notes, o.style);
  if (view.why_not != nullptr && !view.why_not->empty()) {
    s += "\n  Why not:\n";
    for (const WhyNot& w : *view.why_not) s += why_not_text(w, o.style);
  }
  s += '\n' + sources_missing_text(c.provenance, o.style);
  if (!view.reproduce.empty()) s += "  Reproduce: " + view.reproduce + '\n';
  if (!view.confirm.empty()) s += "  Confirm: " + view.confirm + '\n';
  return s;
}

}  // namespace attn_diag::report
