// The sections of the page that are words and tables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/report/comparison_text.h"
#include "harness/report/page.h"
#include "harness/report/query_row.h"
#include "harness/report/sanity_report.h"
#include "harness/report/summary.h"
#include "harness/report/trace_text.h"

namespace attn_diag::report {
namespace {

constexpr Style kPlain = {false, true, 100};
constexpr std::int64_t kNeighbours = 3;

// "DIVERGES: reduce ..." as a badge and a sentence.
std::string headline_html(const PageView& view) {
  const std::size_t colon = view.headline.find(": ");
  const std::string badge = view.headline.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : view.headline.substr(colon + 2);
  if (!rest.empty()) rest[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(rest[0])));
  const char* kind = view.latent                        ? "latent"
                     : view.answer == Answer::kAgrees   ? "agrees"
                     : view.answer == Answer::kDiverges ? "diverges"
                                                        : "unsure";
  return fmt::format("<div class=\"verdict {}\">\n<p class=\"badge\">{}</p>\n<h1>{}</h1>\n</div>\n",
                     kind, escape(badge), escape(rest));
}

// The wrong cell among those beside it.
std::string neighbours_html(const PageView& view, const FirstDivergence& first) {
  const QueryRow row =
      row_of(*view.capture, view.tolerance, static_cast<std::int32_t>(first.batch),
             static_cast<std::int32_t>(first.head), static_cast<std::int32_t>(first.query));
  const RowTensor& tensor = row[first.tensor];
  if (tensor.actual.empty()) return "";
  const std::array<std::int64_t, 5> index = index_of(first);
  const int rank = info(first.tensor).rank;
  const std::int64_t wide = rank == 5 ? tensor.inner1 : tensor.inner0;
  const std::int64_t base = rank == 5 ? index[3] * wide : 0;
  const std::int64_t at = rank == 3 ? 0 : index[static_cast<std::size_t>(rank) - 1];
  std::string s = fmt::format(
      "<div class=\"scroll\"><table "
      "class=\"cells\">\n<tr><th>{}</th><th>value</th><th>expected</th><th>bound</th>"
      "<th>error / bound</th></tr>\n",
      rank == 3 ? "cell" : name(info(first.tensor).axes[static_cast<std::size_t>(rank) - 1]));
  for (std::int64_t i = std::max<std::int64_t>(0, at - kNeighbours);
       i <= std::min(wide - 1, at + kNeighbours); ++i) {
    const auto k = static_cast<std::size_t>(base + i);
    const Judgement judged = judge_cell(tensor.actual[k], tensor.expected[k], tensor.limit[k]);
    s += fmt::format(
        "<tr class=\"{}{}\"><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        judged.passes ? "right" : "wrong", i == at ? " first" : "", i, exact(tensor.actual[k]),
        exact(tensor.expected[k]), number(tensor.limit[k]),
        judged.judged ? ratio(judged.ratio) : "not judged");
  }
  return s + "</table></div>\n";
}

std::string pattern_html(const PageView& view) {
  if (view.pattern == nullptr || view.pattern->empty()) return "";
  std::string s = "<ul class=\"pattern\">\n";
  for (const PatternStatement& p : *view.pattern) {
    const char* kind = p.kind == StatementKind::kWrong   ? "wrong"
                       : p.kind == StatementKind::kExact ? "exact"
                                                         : "hint";
    s += fmt::format("<li><span class=\"tag {0}\">{0}</span> {1}</li>\n", kind, escape(p.text));
  }
  return s + "</ul>\n";
}

struct StageCard {
  std::string verdict, isolated, why;
  Summary figures;
};

StageCard card_of(const PageView& view, Stage stage) {
  StageCard card;
  if (view.trace != nullptr) {
    for (const StageReport& s : view.trace->stages) {
      if (s.stage != stage) continue;
      card.verdict = name(s.verdict);
      card.isolated = s.isolated == Verdict::kNotRun ? "" : name(s.isolated);
      card.why = s.exempt_reason;
      card.figures = summarise(s.prefix);
    }
    return card;
  }
  card.figures = summarise(*view.comparison, stage);
  const bool recorded = card.figures.compared + card.figures.unjudged > 0;
  card.verdict = !recorded                                   ? "not recorded"
                 : card.figures.compared == 0                ? "not judged"
                 : card.figures.mismatched > 0               ? "diverges"
                 : coverage_faults(*view.capture, stage) > 0 ? "diverges"
                                                             : "agrees";
  return card;
}

std::string card_html(const StageCard& card, Stage stage, bool first) {
  std::string kind = card.verdict;
  std::replace(kind.begin(), kind.end(), ' ', '-');
  std::string s = fmt::format("<li class=\"stage {}{}\">\n", kind, first ? " first" : "");
  if (first) s += "<span class=\"flag\">first wrong</span>";
  s += fmt::format("<h3>{}</h3><p class=\"state\">{}</p>\n", name(stage), card.verdict);
  if (card.figures.compared > 0) {
    s += fmt::format("<p><b>{}</b> error / bound</p>\n", ratio(card.figures.max_err_over_bound));
    s += fmt::format("<p>{} wrong of {}</p>\n", count(card.figures.mismatched),
                     count(card.figures.compared));
  }
  if (!card.isolated.empty() && card.isolated != "exempt")
    s += fmt::format("<p>fed right inputs: {}</p>\n", card.isolated);
  if (!card.why.empty()) s += "<p class=\"small\">" + escape(card.why) + "</p>\n";
  return s + "</li>\n";
}

std::string row_html(const char* what, const std::string& value) {
  return value.empty() ? "" : fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", what, escape(value));
}

}  // namespace

std::string verdict_section(const PageView& view) {
  std::string s;
  if (view.capture != nullptr)
    if (const std::string stale = stale_text(view.capture->provenance, kPlain); !stale.empty())
      s += "<p class=\"stale\">" + escape(stale) + "</p>\n";
  s += headline_html(view);
  if (view.capture != nullptr)
    s += fmt::format(
        "<p class=\"case\">{} on {}: {}, {}</p>\n", escape(view.subject),
        escape(view.capture->provenance.backend.empty() ? "another program"
                                                        : view.capture->provenance.backend),
        problem_text(view.capture->problem), geometry_text(view.capture->geometry));
  const bool known = view.first != nullptr && view.first->has_value();
  if (known) {
    s += "<p class=\"lead\">" + escape(first_cell_text(**view.first, view.tolerance, kPlain)) +
         "</p>\n";
    s += neighbours_html(view, **view.first);
  }
  if (view.trace != nullptr && view.trace->sanity.moved())
    s += "<pre>" + escape(sanity_text(view.trace->sanity, "", kPlain)) + "</pre>\n";
  s += pattern_html(view);
  s += fmt::format(
      "<div class=\"run\"><code>{}</code><button type=\"button\" data-copy>Copy</button></div>\n",
      escape(view.reproduce));
  return s;
}

std::string diagnosis_section(const PageView& view) {
  if (view.diagnosis == nullptr)
    return fmt::format("<p class=\"unknown\">{}</p>\n", escape(view.no_diagnosis));
  const DiagnosisView& d = *view.diagnosis;
  std::string s = fmt::format("<p class=\"lead\">{}</p>\n<p>{}</p>\n",
                              escape(diagnosis_headline(d)), escape(diagnosis_paragraph(d)));
  s += "<details><summary>What was tried, and what it left</summary>\n<pre>" +
       escape(diagnosis_text(d, {kPlain, false})) + "</pre></details>\n";
  return s;
}

std::string pipeline_section(const PageView& view) {
  if (view.capture == nullptr) return "";
  std::string s = "<ol class=\"pipeline\">\n";
  for (const StageInfo& stage : kStages) {
    const bool first =
        view.first != nullptr && view.first->has_value() && (*view.first)->stage == stage.id;
    s += card_html(card_of(view, stage.id), stage.id, first);
  }
  s += "</ol>\n";
  if (view.trace != nullptr && view.trace->closure && view.trace->first)
    s += view.trace->second_fault ? "<p>A second fault: with the first wrong stage put right, "
                                    "something later still diverges.</p>\n"
                                  : "<p>One fault explains all: with that stage put right, "
                                    "everything later agrees.</p>\n";
  return s;
}

std::string maps_section(const PageView& view) {
  if (view.maps == nullptr)
    return view.no_maps.empty()
               ? ""
               : fmt::format("<p class=\"unknown\">{}</p>\n", escape(view.no_maps));
  return "<noscript><p class=\"unknown\">The pictures need JavaScript, which is part of this "
         "file.</p></noscript>\n"
         "<div id=\"plots\"></div>\n";
}

std::string invariants_section(const PageView& view) {
  if (view.invariants.empty()) return "";
  using Verdict = InvariantResult::Verdict;
  std::string s = "<div class=\"scroll\"><table>\n";
  for (const InvariantResult& result : view.invariants) {
    if (result.verdict == Verdict::kNotTried) continue;
    const InvariantInfo& what = attn_diag::info(result.invariant);
    const bool broken = result.verdict == Verdict::kBroken;
    std::string found = "holds";
    if (broken)
      found = fmt::format("<b>broken</b> in {} of {} cells, first {}{}: {}", count(result.broken),
                          count(result.checked), name(result.tensor),
                          index_text(result.tensor, result.index), escape(meaning_of(result)));
    if (result.verdict == Verdict::kFollows)
      found = fmt::format("broken, as follows from {}", attn_diag::info(result.follows_from).name);
    s += fmt::format("<tr class=\"{}\"><th>{}</th><td>{}</td><td>{}</td></tr>\n",
                     broken ? "wrong" : "right", what.name, escape(what.statement), found);
  }
  return s + "</table></div>\n";
}

std::string provenance_section(const PageView& view) {
  std::string s = "<div class=\"scroll\"><table>\n";
  if (view.capture != nullptr) {
    const Provenance& p = view.capture->provenance;
    s += row_html("kernel", p.kernel);
    s += row_html("library", p.library);
    s += row_html("build id", p.build_id);
    s += row_html("compiler", p.compiler);
    s += row_html("flags", p.flags);
    s += row_html("backend", p.backend);
    s += row_html("device", p.device);
    s += row_html("driver", p.driver);
    s += row_html("schedule", p.schedule);
    s += row_html("inputs", fmt::format("{}, seed {}", p.inputs, p.seed));
    s += row_html("command", p.command_line);
    s += row_html("created", p.created);
    for (const SourceState& source : p.sources)
      s += row_html("source", fmt::format("{} ({})", source.path,
                                          !source.found ? "not found"
                                          : source.built_hash == source.disk_hash
                                              ? "as it was built"
                                              : "changed since it was built"));
  }
  s += row_html("report", "attn-diag " + view.version);
  s += "</table></div>\n";
  if (view.capture != nullptr)
    for (const std::string& note : view.capture->notes)
      s += "<p class=\"small\">Note: " + escape(note) + "</p>\n";
  return s;
}

std::string text_section(const PageView& view) {
  if (view.text.empty()) return "";
  return "<details><summary>The whole report</summary>\n<pre>" + escape(view.text) +
         "</pre></details>\n";
}

}  // namespace attn_diag::report
