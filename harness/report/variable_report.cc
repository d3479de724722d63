#include "harness/report/variable_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

using lines::VariableTable;
using lines::VariableValue;

constexpr std::size_t kShownThreads = 32, kShownValues = 6, kShownWrong = 8;

std::size_t wrong_in(std::span<const VariableValue> values) {
  return static_cast<std::size_t>(std::count_if(
      values.begin(), values.end(), [](const VariableValue& value) { return value.wrong; }));
}

std::string place_text(const LinePlace& place) {
  return fmt::format("{}:{}", std::filesystem::path(place.file).filename().string(), place.line);
}

// Values of one thread at one line.
std::vector<std::span<const VariableValue>> rows_of(const VariableTable& table) {
  std::vector<std::span<const VariableValue>> rows;
  const std::span<const VariableValue> all(table.values);
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].thread == all[begin].thread &&
           all[end].place.line == all[begin].place.line &&
           all[end].place.file == all[begin].place.file)
      ++end;
    rows.push_back(all.subspan(begin, end - begin));
  }
  return rows;
}

std::string values_text(std::span<const VariableValue> values, const Style& style) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kShownValues, values.size()); ++i) {
    const std::string one = fmt::format("{:.4g}{}", values[i].value, values[i].wrong ? "!" : "");
    text += (i == 0 ? "" : " ") + paint(style, values[i].wrong ? Colour::kRed : Colour::kNone, one);
  }
  return text + (values.size() > kShownValues ? " ..." : "");
}

}  // namespace

std::string variable_headline(const VariableTable& table, const std::string& name) {
  const std::size_t wrong = wrong_in(table.values);
  return wrong == 0 ? fmt::format("AGREES: {} of {} in block {} are what they should be",
                                  plural(static_cast<std::int64_t>(table.values.size()), "number"),
                                  name, table.block)
                    : fmt::format("DIVERGES: {} of {} numbers of {} in block {} are wrong",
                                  count(static_cast<std::int64_t>(wrong)),
                                  count(static_cast<std::int64_t>(table.values.size())), name,
                                  table.block);
}

std::string variable_text(const VariableTable& table, const Style& style) {
  const std::vector<std::span<const VariableValue>> rows = rows_of(table);
  Table out({"line", ">thread", ">numbers", "the first holds", "the last holds", "values"});
  // Threads with something wrong are shown whatever their number.
  const bool few = rows.size() <= kShownThreads;
  std::size_t shown = 0;
  for (const auto& row : rows) {
    const bool choose = few || shown < kShownThreads / 2 || wrong_in(row) > 0;
    if (!choose || shown == kShownThreads) continue;
    ++shown;
    const bool same = row.front().holds == row.back().holds;
    out.add({place_text(row.front().place), std::to_string(row.front().thread),
             std::to_string(row.size()), row.front().holds, same ? "" : row.back().holds,
             values_text(row, style)});
  }
  std::string s = out.text(style);
  if (shown < rows.size())
    s += fmt::format("  and {} more; --json has all\n",
                     plural(static_cast<std::int64_t>(rows.size() - shown), "row"));
  std::size_t told = 0;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].wrong || told == kShownWrong) continue;
      s += (told++ == 0 ? "\n  Wrong:\n" : "") +
           fmt::format("    thread {}, number {}: {:.6g}{}: ", row[i].thread, i, row[i].value,
                       row[i].expected ? fmt::format(", expected {:.6g}", *row[i].expected) : "") +
           row[i].holds + '\n';
    }
  return s;
}

Json to_json(const VariableTable& table) {
  Json j;
  j["block"] = table.block;
  j["reason"] = table.reason;
  j["wrong"] = wrong_in(table.values);
  j["values"] = Json::array();
  for (const VariableValue& value : table.values) {
    Json one;
    one["file"] = value.place.file;
    one["line"] = value.place.line;
    one["column"] = value.place.column;
    one["variable"] = value.place.variable;
    one["thread"] = value.thread;
    one["holds"] = value.holds;
    one["value"] = json_number(value.value);
    one["expected"] = value.expected ? json_number(*value.expected) : Json(nullptr);
    one["wrong"] = value.wrong;
    j["values"].push_back(one);
  }
  return j;
}

}  // namespace attn_diag::report
