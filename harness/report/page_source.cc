// Sources on the page: where a number goes wrong, and the two lines of what the checker found.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/report/lines_report.h"
#include "harness/report/page.h"

namespace attn_diag::report {
namespace {

constexpr int kAround = 7, kAroundAccess = 2;
constexpr std::size_t kMostSuspects = 4, kMostFindings = 12;

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// "flash.cu:84", with the whole path where the pointer rests.
std::string place_html(const std::string& file, int line) {
  return fmt::format("<code class=\"place\" title=\"{}\">{}:{}</code>", escape(file),
                     escape(file_name(file)), line);
}

std::string excerpt_or(const LinePlace& place, int around) {
  const std::string excerpt = source_excerpt(place.file, place.line, around);
  if (!excerpt.empty()) return excerpt;
  return fmt::format("<pre class=\"source\"><mark><i>{}</i>{}</mark></pre>\n", place.line,
                     escape(place.text));
}

std::string suspect_html(const LineSuspect& suspect, bool first, bool sure) {
  std::string s = fmt::format(
      "<p>{} {}{}</p>\n", place_html(suspect.place.file, suspect.place.line), escape(suspect.why),
      suspect.place.variable.empty() ? ""
                                     : " (<code>" + escape(suspect.place.variable) + "</code>)");
  s += excerpt_or(suspect.place, first ? kAround : 1);
  return fmt::format("<div class=\"suspect{}\">\n{}</div>\n", first && sure ? " sure" : "", s);
}

std::string access_html(const host::CheckAccess& access, const char* when) {
  const std::string what =
      fmt::format("{}{}{}", access.atomic ? "atomic " : "", access.async ? "asynchronous " : "",
                  access.write ? "write" : "read");
  const std::string who =
      fmt::format("thread ({},{},{}) of block ({},{},{}), after {}", access.thread[0],
                  access.thread[1], access.thread[2], access.block[0], access.block[1],
                  access.block[2], plural(access.interval, "barrier"));
  if (access.places.empty())
    return access.symbol.empty() ? ""
                                 : fmt::format("<p>{}{} at <code>{}</code>: {}</p>\n", when, what,
                                               escape(access.symbol), who);
  const host::SourcePlace& place = access.places.front();
  return fmt::format("<p>{}{} at {}: {}</p>\n", when, access.bytes == 0 ? "computed" : what,
                     place_html(place.file, place.line), who) +
         source_excerpt(place.file, place.line, kAroundAccess);
}

std::string finding_html(const host::CheckFinding& f) {
  std::string kind = host::name(f.kind);
  std::replace(kind.begin(), kind.end(), '-', ' ');
  std::string s = fmt::format(
      "<h3><span class=\"tag {0}\">{0}</span> {1}{2}</h3>\n<p>{3}</p>\n", host::name(f.severity),
      kind,
      f.array.empty() ? ""
                      : ", <code>" + escape(f.element.empty() ? f.array : f.element) + "</code>",
      escape(f.message));
  s += access_html(f.access, "");
  if (f.has_other) s += access_html(f.other, "Before it: ");
  if (!f.advice.empty()) s += "<p class=\"advice\">" + escape(f.advice) + ".</p>\n";
  return "<div class=\"finding\">\n" + s + "</div>\n";
}

}  // namespace

std::string source_excerpt(const std::string& path, int line, int around,
                           const std::vector<int>& also) {
  std::ifstream file(path);
  if (!file || line < 1) return "";
  std::string out, text;
  bool found = false;
  for (int n = 1; n <= line + around && std::getline(file, text); ++n) {
    if (n < line - around) continue;
    const bool marked = n == line || std::find(also.begin(), also.end(), n) != also.end();
    found |= n == line;
    const std::string numbered = fmt::format("<i>{}</i>{}", n, escape(text));
    out += marked ? "<mark>" + numbered + "</mark>\n" : numbered + '\n';
  }
  if (!found) return "";
  return "<pre class=\"source\">" + out + "</pre>\n";
}

std::string line_section(const PageView& view) {
  if (view.lines == nullptr)
    return fmt::format("<p class=\"unknown\">{}</p>\n", escape(view.no_lines));
  const LineDivergence& lines = *view.lines;
  if (lines.answer == LineAnswer::kNotLooked)
    return fmt::format("<p class=\"unknown\">The line was not traced: {}</p>\n",
                       escape(lines.reason));
  if (lines.answer == LineAnswer::kNone) return "<p>" + numbers_text(lines) + "</p>\n";
  if (lines.suspects.empty())
    return fmt::format("<p class=\"unknown\">No line is told: {}</p>\n", escape(lines.reason));
  const bool sure = lines.answer == LineAnswer::kLine;
  std::string s = fmt::format("<p class=\"lead\">{}{}</p>\n",
                              sure ? "" : "Not sure, likely: ", escape(lines.what));
  if (!sure && !lines.reason.empty()) s += "<p>" + escape(lines.reason) + "</p>\n";
  s += suspect_html(lines.suspects.front(), true, sure);
  const std::size_t shown = std::min(kMostSuspects, lines.suspects.size());
  if (shown > 1) {
    s += "<details><summary>Then</summary>\n";
    for (std::size_t i = 1; i < shown; ++i) s += suspect_html(lines.suspects[i], false, sure);
    s += "</details>\n";
  }
  if (!lines.where.empty()) s += "<p class=\"small\">Seen at " + escape(lines.where) + ".</p>\n";
  for (const std::string& unread : lines.unread) s += "<p>" + escape(unread) + "</p>\n";
  if (!view.repair.empty())
    s += "<p class=\"small\">Try small edits there: <code>" + escape(view.repair) + "</code></p>\n";
  return s;
}

std::string check_section(const PageView& view) {
  if (view.check == nullptr)
    return fmt::format("<p class=\"unknown\">{}</p>\n", escape(view.no_check));
  const std::vector<host::CheckFinding>& findings = view.check->result.report.findings;
  std::string s = fmt::format("<p class=\"lead\">{}</p>\n", escape(check_headline(*view.check)));
  for (std::size_t i = 0; i < std::min(kMostFindings, findings.size()); ++i)
    s += finding_html(findings[i]);
  if (findings.size() > kMostFindings)
    s += fmt::format("<p>{} more are listed by <code>{}</code></p>\n",
                     findings.size() - kMostFindings, escape(view.check->reproduce));
  return s;
}

}  // namespace attn_diag::report
