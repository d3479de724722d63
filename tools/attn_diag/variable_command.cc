// attn-diag trace --variable: the values of one variable.
#include "tools/attn_diag/variable_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/report/comparison_text.h"
#include "harness/report/variable_report.h"
#include "tools/attn_diag/values.h"

namespace attn_diag::cli {
namespace {

// "s" or "s:43"
lines::VariableQuery query_of(const Flags& flags) {
  lines::VariableQuery query;
  const std::size_t colon = flags.variable.rfind(':');
  query.name = flags.variable.substr(0, colon);
  if (colon != std::string::npos)
    query.line = static_cast<int>(
        parse_int("--variable, behind the colon,", flags.variable.substr(colon + 1), 1, 1 << 24));
  if (query.name.empty())
    throw Error("--variable takes a name of the source, or a name and a line: s, s:43.");
  constexpr std::int64_t kMostBlocks = (1 << 22) - 1;
  if (!flags.block.empty())
    query.block = static_cast<std::uint32_t>(parse_int("--block", flags.block, 0, kMostBlocks));
  return query;
}

void refuse_others(const Flags& f) {
  for (const auto& [flag, given] :
       {std::pair{"--output", !f.output.empty()}, std::pair{"--junit", !f.junit.empty()},
        std::pair{"--lines", f.lines}, std::pair{"--no-lines", f.no_lines},
        std::pair{"--stage", !f.stage.empty()}})
    if (given)
      throw Error(
          fmt::format("{} is about the whole trace, and --variable asks for one variable: "
                      "leave one of them out.",
                      flag));
}

}  // namespace

CommandResult variable_command(const Session& session, RequestedCase& one, const Kernel& kernel) {
  const Flags& flags = session.flags;
  refuse_others(flags);
  const lines::VariableQuery query = query_of(flags);
  const Geometry geometry = plan(kernel, one);
  const lines::VariableTable table = lines::variable_table(
      {kernel, one.problem, inputs_of(one, kernel, geometry), one.run}, query);
  if (table.values.empty())
    throw Error(fmt::format("{} cannot be shown: {}.", query.name, table.reason));
  const bool wrong = std::any_of(table.values.begin(), table.values.end(),
                                 [](const lines::VariableValue& value) { return value.wrong; });
  const Answer answer = wrong ? Answer::kDiverges : Answer::kAgrees;
  CommandResult outcome;
  outcome.code = verdict_code(answer);
  const std::string again = session.this_command();
  if (flags.json) {
    report::Json j =
        report::json_head({"trace", again, ATTN_DIAG_VERSION}, answer, kernel.provenance().stale());
    j["variable"] = query.name;
    j["problem"] = report::to_json(one.problem);
    j["variable_values"] = report::to_json(table);
    outcome.out = report::dump_json(j);
    return outcome;
  }
  outcome.out = report::paint(session.style, report::colour_of(answer),
                              report::variable_headline(table, query.name)) +
                '\n';
  if (flags.quiet) return outcome;
  outcome.out += report::variable_text(table, session.style);
  outcome.out += "\n  Reproduce: " + again + '\n';
  return outcome;
}

}  // namespace attn_diag::cli
