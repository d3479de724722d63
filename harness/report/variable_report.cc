#include "harness/report/variable_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "harness/base/index_ranges.h"
#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

using lines::VariableTable;
using lines::VariableValue;

constexpr std::size_t kShownRows = 32, kShownValues = 6, kShownWrong = 8;

std::size_t wrong_in(std::span<const VariableValue> values) {
  return static_cast<std::size_t>(std::count_if(
      values.begin(), values.end(), [](const VariableValue& value) { return value.wrong; }));
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
  // Threads that had the same values are one row.
  struct Shown {
    std::span<const VariableValue> row;
    std::vector<std::int64_t> threads;
  };
  std::vector<Shown> rows;
  for (const auto& row : rows_of(table)) {
    const bool same =
        !rows.empty() && std::equal(row.begin(), row.end(), rows.back().row.begin(),
                                    rows.back().row.end(), [](const auto& a, const auto& b) {
                                      return a.place.line == b.place.line && a.holds == b.holds &&
                                             a.value == b.value;
                                    });
    if (!same) rows.push_back({row, {}});
    rows.back().threads.push_back(row.front().thread);
  }
  Table out({"line", "threads", ">numbers", "the first holds", "the last holds", "values"});
  // Rows with something wrong are shown wherever they are.
  const bool few = rows.size() <= kShownRows;
  std::size_t shown = 0;
  for (const Shown& one : rows) {
    if (!few && (shown == kShownRows || (shown >= kShownRows / 2 && wrong_in(one.row) == 0)))
      continue;
    ++shown;
    const VariableValue &first = one.row.front(), &last = one.row.back();
    out.add({place_text(first.place), index_ranges(one.threads), std::to_string(one.row.size()),
             first.holds, first.holds == last.holds ? "" : last.holds,
             values_text(one.row, style)});
  }
  std::string s = out.text(style);
  if (shown < rows.size())
    s += fmt::format("  and {}; --json has all\n",
                     plural(static_cast<std::int64_t>(rows.size() - shown), "more row"));
  std::size_t told = 0;
  for (const Shown& one : rows)
    for (std::size_t i = 0; i < one.row.size() && told < kShownWrong; ++i) {
      const VariableValue& value = one.row[i];
      if (!value.wrong || value.follows) continue;
      s += told++ == 0 ? "\n  Where that begins:\n" : "";
      s += "    " +
           wrap(fmt::format("{}, thread {}, number {}: {:.6g}{}: {}", place_text(value.place),
                            value.thread, i + 1, value.value,
                            value.expected ? fmt::format(", expected {:.6g}", *value.expected) : "",
                            value.holds),
                style.width - 4, 6) +
           '\n';
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
