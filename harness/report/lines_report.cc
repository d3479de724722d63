#include "harness/report/lines_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "attn_diag/harness/error.h"
#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

constexpr std::size_t kShown = 4;  // suspects in the text

std::string suspect_text(const LineSuspect& suspect, const Style& style, bool first) {
  const std::string place = place_text(suspect.place);
  std::string s = "    " + paint(style, first ? Colour::kRed : Colour::kNone, place) + "  " +
                  suspect.place.text + '\n';
  s +=
      "        " +
      wrap(suspect.why +
               (suspect.place.variable.empty() ? "" : fmt::format(" ({})", suspect.place.variable)),
           style.width - 8, 8) +
      '\n';
  return s;
}

// Which elements of the inputs lines load.
std::string reads_text(const LineDivergence& lines, const Style& style) {
  if (lines.reads.empty()) return "";
  Table table({"line", "variable", "loads", "rows", "columns"});
  for (const LineReads& read : lines.reads)
    table.add({place_text(read.place), read.place.variable, read.input, read.rows, read.columns});
  return "\n  What is loaded of the inputs there:\n" + table.text(style);
}

// What variables hold at each line.
std::string roles_text(const LineDivergence& lines, const Style& style) {
  if (lines.roles.empty()) return "";
  Table table({"line", "variable", "holds", ">numbers", ">share"});
  for (const LineRole& role : lines.roles)
    table.add({place_text(role.place), role.place.variable, role.holds, count(role.numbers),
               fmt::format("{:.0f} %", role.share * 100)});
  return "\n  What variables hold, of the blocks that were watched:\n" + table.text(style);
}

Json place_json(const LinePlace& place) {
  Json j;
  j["file"] = place.file;
  j["line"] = place.line;
  j["column"] = place.column;
  j["function"] = place.function;
  j["variable"] = place.variable;
  j["text"] = place.text;
  return j;
}

LinePlace place_of(const Json& j) {
  LinePlace place;
  place.file = j.at("file").get<std::string>();
  place.line = j.at("line").get<int>();
  place.column = j.at("column").get<int>();
  place.function = j.at("function").get<std::string>();
  place.variable = j.at("variable").get<std::string>();
  place.text = j.at("text").get<std::string>();
  return place;
}

// The value of an enumeration whose values have names.
template <class T>
T value_of(const Json& j, T last) {
  const auto text = j.get<std::string>();
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (text == attn_diag::name(static_cast<T>(i))) return static_cast<T>(i);
  throw Error(fmt::format("'{}' is not known there: take a newer attn-diag.", text));
}

}  // namespace

LineDivergence lines_of_json(const std::string& json) {
  LineDivergence lines;
  try {
    const Json j = Json::parse(json);
    lines.answer = value_of(j.at("answer"), LineAnswer::kUnsure);
    lines.fault = value_of(j.at("fault"), LineFault::kRounding);
    lines.fault_is_firm = j.at("fault_is_firm").get<bool>();
    lines.reason = j.at("reason").get<std::string>();
    lines.what = j.at("what").get<std::string>();
    lines.where = j.at("where").get<std::string>();
    for (const Json& one : j.at("suspects"))
      lines.suspects.push_back({place_of(one), one.at("why").get<std::string>()});
    for (const Json& one : j.at("roles"))
      lines.roles.push_back({place_of(one), one.at("holds").get<std::string>(),
                             one.at("numbers").get<std::int64_t>(), one.at("share").get<double>()});
    for (const Json& one : j.at("reads"))
      lines.reads.push_back({place_of(one), one.at("input").get<std::string>(),
                             one.at("rows").get<std::string>(),
                             one.at("columns").get<std::string>()});
    lines.unread = j.at("unread").get<std::vector<std::string>>();
    lines.numbers = j.at("numbers").get<std::int64_t>();
    lines.right = j.at("right").get<std::int64_t>();
    lines.understood = j.at("understood").get<std::int64_t>();
    if (const Json edits = j.value("edits", Json()); !edits.is_null()) {
      TriedEdits& out = lines.edits.emplace();
      out.operation = edits.at("operator").get<std::string>();
      out.diff = edits.at("diff").get<std::string>();
      out.cases = edits.at("cases").get<std::vector<std::string>>();
      out.reason = edits.at("reason").get<std::string>();
      out.tried = edits.at("tried").get<int>();
      out.seconds = edits.at("seconds").get<double>();
    }
  } catch (const Json::exception& e) {
    throw Error(fmt::format("What it holds of the line cannot be read: {}.", e.what()));
  }
  return lines;
}

std::string edits_text(const TriedEdits& edits, const Style& style) {
  const std::string tried =
      fmt::format("{} tried in {:.1f} s", plural(edits.tried, "edit"), edits.seconds);
  if (!edits.found())
    return "    " +
           wrap(fmt::format("Small edits: {} ({}).", edits.reason, tried), style.width - 4, 4) +
           '\n';
  return "\n" + diff_text(edits.diff, style) + "\n    " +
         wrap(fmt::format("Under this edit {} agree ({}). Nothing was written; patch -p1 takes it. "
                          "Read it: what "
                          "agrees in all of these may still be wrong in another.",
                          plural(static_cast<std::int64_t>(edits.cases.size()), "case"), tried),
              style.width - 4, 4) +
         '\n';
}

std::string numbers_text(const LineDivergence& lines) {
  if (2 * lines.understood < lines.right)
    return fmt::format(
        "Of {} right elements of o {} are understood: the kernel computes in a way that is not "
        "known here.",
        count(lines.right), lines.understood == 0 ? "none" : "only " + count(lines.understood));
  return fmt::format("Of {} numbers every one is what attention asks for.", count(lines.numbers));
}

std::string lines_text(const LineDivergence& lines, const Style& style, bool tables) {
  if (lines.answer == LineAnswer::kNotLooked)
    return lines.reason.empty()
               ? ""
               : "\n  " + wrap("The line was not traced: " + lines.reason, style.width - 2, 4) +
                     '\n';
  std::string s;
  const bool sure = lines.answer == LineAnswer::kLine;
  if (lines.answer == LineAnswer::kNone) {
    s += "\n  " + wrap(numbers_text(lines), style.width - 2, 2) + '\n';
  } else if (lines.suspects.empty()) {
    s += "\n  " + wrap("No line is told: " + lines.reason, style.width - 2, 4) + '\n';
  } else {
    s += "\n  " +
         paint(style, Colour::kBold, sure ? "Where it goes wrong: " : "Not sure, likely: ") +
         wrap(lines.what, style.width - 24, 4) + '\n';
    if (!sure && !lines.reason.empty()) s += "    " + wrap(lines.reason, style.width - 4, 4) + '\n';
    for (std::size_t i = 0; i < std::min(kShown, lines.suspects.size()); ++i) {
      if (i == 1) s += "    then:\n";
      s += suspect_text(lines.suspects[i], style, sure && i == 0);
    }
    if (!lines.where.empty()) s += "    seen at " + lines.where + '\n';
  }
  if (lines.edits) s += edits_text(*lines.edits, style);
  for (const std::string& unread : lines.unread) s += "    " + unread + '\n';
  if (tables) s += roles_text(lines, style) + reads_text(lines, style);
  return s;
}

std::string lines_line(const LineDivergence& lines) {
  if (lines.answer == LineAnswer::kNone) return "";
  if (lines.suspects.empty()) return lines.reason;
  const LineSuspect& first = lines.suspects.front();
  std::string s = fmt::format("{}: {}: {}", place_text(first.place), lines.what, first.place.text);
  if (lines.answer == LineAnswer::kUnsure)
    s.append(" (not sure: ").append(lines.reason).append(")");
  return s;
}

Json to_json(const LineDivergence& lines) {
  Json j;
  j["answer"] = name(lines.answer);
  j["reason"] = lines.reason;
  j["fault"] = name(lines.fault);
  j["fault_is_firm"] = lines.fault_is_firm;
  j["what"] = lines.what;
  j["where"] = lines.where;
  j["suspects"] = Json::array();
  for (const LineSuspect& suspect : lines.suspects) {
    Json one = place_json(suspect.place);
    one["why"] = suspect.why;
    j["suspects"].push_back(one);
  }
  j["roles"] = Json::array();
  for (const LineRole& role : lines.roles) {
    Json one = place_json(role.place);
    one["holds"] = role.holds;
    one["numbers"] = role.numbers;
    one["share"] = role.share;
    j["roles"].push_back(one);
  }
  j["reads"] = Json::array();
  for (const LineReads& read : lines.reads) {
    Json one = place_json(read.place);
    one["input"] = read.input;
    one["rows"] = read.rows;
    one["columns"] = read.columns;
    j["reads"].push_back(one);
  }
  j["unread"] = lines.unread;
  j["numbers"] = lines.numbers;
  j["right"] = lines.right;
  j["understood"] = lines.understood;
  j["edits"] = nullptr;
  if (const auto& edits = lines.edits)
    j["edits"] = {{"operator", edits->operation}, {"diff", edits->diff},
                  {"cases", edits->cases},        {"reason", edits->reason},
                  {"tried", edits->tried},        {"seconds", edits->seconds}};
  return j;
}

}  // namespace attn_diag::report
