#include "harness/report/identifiability_report.h"

#include <fmt/format.h>

#include "harness/report/table.h"

namespace attn_diag::report {
namespace {

using One = IdentifiabilityView::One;
using Bug = Identifiability::Bug;

std::string details(const One& one, const Style& style) {
  std::string s;
  const auto line = [&](const std::string& words) {
    s += "    " + wrap(words, style.width - 4, 6) + '\n';
  };
  for (const Bug& bug : one.found.bugs)
    if (bug.is_hidden())
      line(fmt::format("hidden   {} ({}): {}", bug.id, bug.formula, bug.statement));
  for (const Bug& bug : one.found.bugs)
    if (bug.hidden > 0 && !bug.is_hidden())
      line(fmt::format("in part  {}: {} of {} ways, as {}", bug.id, bug.hidden, bug.ways,
                       bug.hidden_ways.front()));
  for (const Bug& bug : one.found.bugs)
    if (!bug.alike.empty()) line(fmt::format("alike    {}: {}", bug.id, join(bug.alike, ", ")));
  return s;
}

}  // namespace

std::string identifiability_text(const IdentifiabilityView& view, const Style& style,
                                 bool table_only) {
  Table table({"inputs", "problem", ">bugs", ">hidden", ">hidden in part", ">like another"});
  for (const One& one : view.all)
    table.add({one.inputs, problem_text(one.problem),
               count(static_cast<std::int64_t>(one.found.bugs.size())), count(one.found.hidden()),
               count(one.found.hidden_in_part()), count(one.found.alike())});
  std::string s = table.text(style);
  if (table_only) return s;
  for (const One& one : view.all)
    s += fmt::format("\n  {}, {}, {}:\n{}", one.inputs, problem_text(one.problem),
                     geometry_text(one.geometry), details(one, style));
  s += "\n  " +
       wrap(fmt::format("Of the known bugs that {} can have (docs/catalogue.md): hidden are those "
                        "that change no cell of "
                        "o or lse by more than rounding can, in part those of which some "
                        "parameters do not; alike are "
                        "those whose o and lse another gives, too.",
                        view.kernel),
            style.width - 2, 4) +
       '\n';
  return s + "  Reproduce: " + view.reproduce + '\n';
}

Json identifiability_json(const IdentifiabilityView& view, const CommandContext& context) {
  Json j = json_head(context);
  j["reproduce"] = context.reproduce;
  j["kernel"] = view.kernel;
  j["cases"] = Json::array();
  for (const One& one : view.all) {
    Json c;
    c["inputs"] = one.inputs;
    c["problem"] = to_json(one.problem);
    c["geometry"] = to_json(one.geometry);
    c["rows"] = one.found.rows;
    c["hidden"] = one.found.hidden();
    c["hidden_in_part"] = one.found.hidden_in_part();
    c["alike"] = one.found.alike();
    c["bugs"] = Json::array();
    for (const Bug& bug : one.found.bugs) {
      Json b;
      b["id"] = bug.id;
      b["statement"] = bug.statement;
      b["formula"] = bug.formula;
      b["ways"] = bug.ways;
      b["hidden"] = bug.hidden;
      b["hidden_ways"] = bug.hidden_ways;
      b["shows_by"] = json_number(bug.shows_by);
      b["alike"] = bug.alike;
      c["bugs"].push_back(b);
    }
    j["cases"].push_back(c);
  }
  return j;
}

}  // namespace attn_diag::report
