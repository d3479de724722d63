#include "attn_diag/harness/lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "attn_diag/harness/check_kernel.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "harness/base/close_names.h"
#include "harness/inputs/coded_inputs.h"
#include "harness/lines/crash_lines.h"
#include "harness/lines/explain.h"
#include "harness/lines/finding_suspects.h"
#include "harness/lines/judged.h"
#include "harness/lines/terms.h"
#include "harness/lines/variables.h"
#include "harness/lines/watch.h"
#include "harness/run/run_plan.h"

namespace attn_diag {

const char* name(LineAnswer answer) {
  switch (answer) {
    case LineAnswer::kNotLooked:
      return "not_looked";
    case LineAnswer::kNone:
      return "none";
    case LineAnswer::kLine:
      return "line";
    case LineAnswer::kUnsure:
      return "unsure";
  }
  return "";
}

namespace {

using lines::Attention;
using lines::Chosen;
using lines::chosen_elements;
using lines::ExpectedRows;
using lines::finish;
using lines::judged_elements;
using lines::OutputElement;
using lines::WatchedRun;

LineDivergence not_looked(std::string reason) {
  LineDivergence out;
  out.reason = std::move(reason);
  return out;
}

// The blocks that make these rows, and all whose results those read.
std::vector<std::uint32_t> blocks_of(const host::ValueGraph& survey, const Chosen& chosen) {
  constexpr std::size_t kMost = 64;
  std::vector<std::uint32_t> blocks;
  const auto add = [&](std::uint32_t block) {
    if (block != ~0u && blocks.size() < kMost &&
        std::find(blocks.begin(), blocks.end(), block) == blocks.end())
      blocks.push_back(block);
  };
  for (const std::size_t element : chosen.elements)
    add(survey.outputs[chosen.of_lse ? 1 : 0][element].block);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i] < survey.reads_of.size())
      for (const std::uint32_t other : survey.reads_of[blocks[i]]) add(other);
  return blocks;
}

// What the checker finds, before what numbers tell. Empty: it was asked; else why it could not be.
std::string put_findings(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                         const RunOptions& options, const lines::Terms& terms,
                         const std::vector<OutputElement>& elements, LineDivergence& out) {
  try {
    const CheckResult check = check_kernel(kernel, problem, inputs, options, {});
    lines::FindingSuspects(terms, elements, out).suspect(check.report);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

// Memory that began as NaN and holds a number was stored, by code that does not tell. Whether any of it is wrong.
bool take_out_untold(const WatchedRun& run, bool of_lse, std::vector<OutputElement>& elements) {
  const auto& outputs = run.graph.outputs[of_lse ? 1 : 0];
  bool wrong = false;
  std::erase_if(elements, [&](const OutputElement& element) {
    if (outputs[element.index].block != ~0u ||
        std::isnan(of_lse ? run.lse[element.index] : lines::o_element(run, element.index)))
      return false;
    wrong = wrong || element.wrong;
    return true;
  });
  return wrong;
}

std::string why_not_traced(const Kernel& kernel, const Problem& problem, const InputData& inputs) {
  if (std::string_view(kernel.build().backend) != "host")
    return "lines are traced on the host executor: name the library built for it";
  if (kernel.provenance().stale())
    return "its sources have changed since it was built: build it anew";
  if (kernel.info().part != Part::kAttention)
    return "of kernels that compute a part of attention lines are not traced yet";
  if (coded_inputs(kernel, problem, inputs))
    return "of kernels that take codes lines are not traced yet";
  if (inputs.has_nonfinite) return "with NaN or infinity among the inputs nothing can be told";
  return "";
}

}  // namespace

LineDivergence trace_lines(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                           const RunOptions& options, LinesBy by) {
  if (const std::string why = why_not_traced(kernel, problem, inputs); !why.empty())
    return not_looked(why);
  return lines::trace_lines(lines::make_watch_build(kernel), kernel, problem, inputs, options, by);
}

LineDivergence lines::trace_lines(const WatchBuild& build, const Kernel& kernel,
                                  const Problem& problem, const InputData& uncoded,
                                  const RunOptions& options, LinesBy by) {
  if (const std::string why = why_not_traced(kernel, problem, uncoded); !why.empty())
    return not_looked(why);
  if (!build.kernel) return not_looked(build.reason);

  RunOptions run_options = options;
  run_options.taps = false;
  run_options.gate = Gate::kFull;
  // What was refused may never end: that was seen before, and need not be waited for again.
  const bool refused = by == LinesBy::kChecker;
  constexpr std::int64_t kStepsOfRefused = 1 << 22;
  constexpr double kPatience = 2;
  if (refused && run_options.step_limit == 0) run_options.step_limit = kStepsOfRefused;
  const WatchedRun survey = lines::watch_run(*build.kernel, problem, uncoded, run_options,
                                             std::vector<std::uint32_t>{}, refused ? kPatience : 0);
  if (survey.graph.outputs.empty()) return not_looked(survey.reason);
  if (!survey.graph.instrumented && survey.reason.empty())
    return not_looked("no code of the watch build told anything");

  Attention attention(problem, uncoded.q.data(), uncoded.k.data(), uncoded.v.data());
  const Geometry geometry = plan_geometry(kernel, problem, run_options);
  ExpectedRows expected(problem, uncoded, geometry, declared_arithmetic(kernel, problem, geometry));
  const Chosen chosen = chosen_elements(survey, attention, expected);
  std::vector<std::uint32_t> blocks = blocks_of(survey.graph, chosen);
  WatchedRun run = lines::watch_run(*build.kernel, problem, uncoded, run_options, blocks,
                                    refused ? kPatience : 0);

  LineDivergence out;
  out.numbers = static_cast<std::int64_t>(run.graph.nodes.size()) - 1;
  const lines::Terms terms(run.graph, attention);
  std::vector<OutputElement> elements =
      judged_elements(run, attention, expected, chosen.of_lse, blocks);
  const bool untold = options.fill[GivenMemory::kOutput] == MemoryFill::kNaN &&
                      take_out_untold(run, chosen.of_lse, elements);
  // An access that is wrong by itself is a fault, whatever else is.
  std::string unchecked;
  const bool any_wrong = std::any_of(elements.begin(), elements.end(),
                                     [](const OutputElement& element) { return element.wrong; });
  if (by == LinesBy::kChecker || any_wrong)
    unchecked = put_findings(kernel, problem, uncoded, run_options, terms, elements, out);
  const bool ended = out.suspects.empty() && survey.illegal;
  if (ended) {
    const std::int64_t numbers = out.numbers;
    out = lines::crash_lines({*survey.illegal}, lines::CrashOf::kAddress, survey.reason);
    out.numbers = numbers;
  }
  const bool found = !out.suspects.empty();
  const std::string finding = out.what, why = out.reason;
  explain(terms, elements, out);
  if (found) {
    out.what = finding;
    out.where.clear();
    out.answer = LineAnswer::kUnsure;
    out.reason = ended ? why
                       : "this is what attn-diag check finds; the fault may be what makes an index "
                         "there";
  } else if (by == LinesBy::kChecker && out.answer == LineAnswer::kLine) {
    out.answer = LineAnswer::kUnsure;
    out.reason = "the result moves, or the run is refused, and attn-diag check " +
                 (unchecked.empty() ? std::string("finds nothing") : "cannot look: " + unchecked);
  }
  if (untold && out.answer == LineAnswer::kNone) {
    out.answer = LineAnswer::kUnsure;
    out.reason = "what is wrong was stored by code that the watch build does not see";
  }
  out.fault_is_firm = out.fault_is_firm && !found && by == LinesBy::kNumbers;
  // Before anything is claimed.
  if (out.answer == LineAnswer::kLine || out.fault_is_firm) {
    const WatchedRun plain =
        lines::watch_run(kernel, problem, uncoded, run_options, std::vector<std::uint32_t>{});
    if (plain.o != survey.o) {
      out.fault_is_firm = false;
      if (out.answer == LineAnswer::kLine) {
        out.answer = LineAnswer::kUnsure;
        out.reason = "the watch build's o differs from the kernel's own in some bits";
      }
    }
  }
  finish(run, terms, out);
  return out;
}

lines::VariableTable lines::variable_table(const Kernel& kernel, const Problem& problem,
                                           const InputData& inputs, const RunOptions& options,
                                           const VariableQuery& query) {
  VariableTable out;
  out.reason = why_not_traced(kernel, problem, inputs);
  if (!out.reason.empty()) return out;
  const WatchBuild build = make_watch_build(kernel);
  out.reason = build.reason;
  if (!build.kernel) return out;
  RunOptions run_options = options;
  run_options.taps = false;
  run_options.gate = Gate::kFull;
  Attention attention(problem, inputs.q.data(), inputs.k.data(), inputs.v.data());
  std::vector<std::uint32_t> blocks;
  if (query.block) {
    blocks = {*query.block};
  } else {
    const WatchedRun survey =
        watch_run(*build.kernel, problem, inputs, run_options, std::vector<std::uint32_t>{});
    out.reason = survey.reason;
    if (survey.graph.outputs.empty()) return out;
    const Geometry geometry = plan_geometry(kernel, problem, run_options);
    ExpectedRows expected(problem, inputs, geometry,
                          declared_arithmetic(kernel, problem, geometry));
    blocks = blocks_of(survey.graph, chosen_elements(survey, attention, expected));
  }
  const WatchedRun run = watch_run(*build.kernel, problem, inputs, run_options, blocks);
  const Terms terms(run.graph, attention);
  for (const std::uint32_t block : blocks) {
    out.block = block;
    out.values = values_of(terms, query, block);
    if (!out.values.empty()) return out;
  }
  const std::vector<std::string> names = variable_names(run.graph);
  std::vector<std::string> near = close_names(query.name, names);
  if (near.empty()) near = names;
  out.reason =
      fmt::format("no variable {}{} has numbers there that come of q, k and v{}", query.name,
                  query.line == 0 ? "" : fmt::format(" of line {}", query.line),
                  near.empty() ? "" : fmt::format("; there are {}", fmt::join(near, ", ")));
  return out;
}

}  // namespace attn_diag
