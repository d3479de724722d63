#include "attn_diag/harness/lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <unordered_set>

#include "attn_diag/harness/check_kernel.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/plan.h"
#include "harness/base/close_names.h"
#include "harness/inputs/coded_inputs.h"
#include "harness/lines/causes.h"
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

// Nothing ran: what is stored nowhere says nothing.
LineDivergence refused_launch(const host::SourcePlace& at, const std::string& why) {
  if (at.line == 0) return not_looked(why);
  LineDivergence out;
  out.answer = LineAnswer::kUnsure;
  out.what = why;
  out.reason =
      "the launch is refused: the fault may be what makes its sizes, or what should have raised a "
      "limit";
  out.suspects.push_back({{at.file, at.function, at.line, 0, "", ""}, "launches it"});
  lines::add_source_text(out);
  return out;
}

// These blocks, and all whose results those read, the nearest first.
std::vector<std::uint32_t> with_sources(const host::ValueGraph& survey,
                                        const std::vector<std::uint32_t>& first) {
  std::vector<std::uint32_t> blocks;
  std::unordered_set<std::uint32_t> known;
  const auto add = [&](std::uint32_t block) {
    if (block != ~0u && known.insert(block).second) blocks.push_back(block);
  };
  for (const std::uint32_t block : first) add(block);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i] < survey.reads_of.size())
      for (const std::uint32_t other : survey.reads_of[blocks[i]]) add(other);
  return blocks;
}

// The blocks whose results reach no output and no other block: they may hold what others lack.
std::vector<std::uint32_t> unread_blocks(const host::ValueGraph& survey) {
  std::vector<bool> read(survey.reads_of.size());
  const auto note = [&](std::uint32_t block) {
    if (block < read.size()) read[block] = true;
  };
  for (const std::vector<std::uint32_t>& blocks : survey.reads_of)
    std::for_each(blocks.begin(), blocks.end(), note);
  for (const auto& output : survey.outputs)
    for (const host::ValueOutput& element : output) note(element.block);
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t block = 0; block < read.size(); ++block)
    if (!read[block]) blocks.push_back(block);
  return blocks;
}

// The blocks that make these rows, with their sources. Of rows that no block stores: those that might have.
std::vector<std::uint32_t> blocks_of(const host::ValueGraph& survey, const Chosen& chosen) {
  std::vector<std::uint32_t> blocks;
  for (const std::size_t element : chosen.elements)
    blocks.push_back(survey.outputs[chosen.of_lse ? 1 : 0][element].block);
  blocks = with_sources(survey, blocks);
  return blocks.empty() ? unread_blocks(survey) : blocks;
}

// One wrong row and a right one, then that alone, say most of what more of them do.
void take_fewer(Chosen& chosen) {
  if (chosen.elements.size() > 2)
    chosen.elements = {chosen.elements.front(), chosen.elements.back()};
  else
    chosen.elements.pop_back();
}

struct WatchedRows {
  std::vector<std::uint32_t> blocks;
  WatchedRun run;
};

// Watches as many of the rows as blocks and numbers allow. Rows that no few blocks make get all that they need; where
// even that is too much, what is farthest from the output is left out, and the graph says so.
WatchedRows watch_rows(const Experiment& watching, const host::ValueGraph& survey, Chosen chosen,
                       double patience) {
  constexpr std::size_t kFew = 64;
  const Chosen all = chosen;
  while (blocks_of(survey, chosen).size() > kFew && chosen.elements.size() > 1) take_fewer(chosen);
  if (blocks_of(survey, chosen).size() > kFew) {
    chosen = all;
    if (chosen.elements.size() > 2) take_fewer(chosen);
  }
  WatchedRows out;
  out.blocks = blocks_of(survey, chosen);
  out.run = lines::watch_run(watching, out.blocks, patience);
  while (out.run.graph.full && chosen.elements.size() > 1) {
    take_fewer(chosen);
    const std::vector<std::uint32_t> fewer = blocks_of(survey, chosen);
    if (fewer.size() == out.blocks.size()) continue;
    out.blocks = fewer;
    out.run = {};
    out.run = lines::watch_run(watching, out.blocks, patience);
  }
  if (out.run.graph.full && out.blocks.size() > kFew) {
    out.blocks.resize(kFew);
    out.run = {};
    out.run = lines::watch_run(watching, out.blocks, patience);
  }
  return out;
}

// Whether a sum of a wrong element lacks keys.
bool lacks_keys(const lines::Terms& terms, const std::vector<OutputElement>& elements) {
  lines::Causes why(terms);
  return std::any_of(elements.begin(), elements.end(), [&](const OutputElement& element) {
    return element.wrong && why.cause_of(element).what == lines::What::kMissing;
  });
}

// The rows, with more blocks watched. None: there are no others, or too many.
std::optional<WatchedRows> with_more(const Experiment& watching, const WatchedRows& rows,
                                     const std::vector<std::uint32_t>& more) {
  WatchedRows both{rows.blocks, {}};
  const std::unordered_set<std::uint32_t> known(both.blocks.begin(), both.blocks.end());
  std::copy_if(more.begin(), more.end(), std::back_inserter(both.blocks),
               [&](std::uint32_t block) { return known.count(block) == 0; });
  if (both.blocks.size() == rows.blocks.size()) return std::nullopt;
  both.run = lines::watch_run(watching, both.blocks);
  if (both.run.graph.full) return std::nullopt;
  return both;
}

// Who makes lse of the chosen rows of o, with their sources: what o should be made of and is not, lse may be.
std::vector<std::uint32_t> blocks_of_lse(const host::ValueGraph& survey, const Chosen& chosen,
                                         const Attention& attention) {
  if (chosen.of_lse) return {};
  std::vector<std::uint32_t> blocks;
  for (const std::size_t element : chosen.elements) {
    std::uint32_t row = 0, column = 0;
    attention.locate_output(element, row, column);
    if (row < survey.outputs[1].size()) blocks.push_back(survey.outputs[1][row].block);
  }
  return with_sources(survey, blocks);
}

// Of a kernel that reads what a copy still writes: whether nothing is wrong where copies land as they are issued.
bool is_right_with_early_copies(Experiment experiment,
                                const std::vector<host::CheckFinding>& findings) {
  if (std::none_of(findings.begin(), findings.end(), [](const host::CheckFinding& one) {
        return one.kind == host::CheckKind::kAsyncCopy && one.severity == host::Severity::kError;
      }))
    return false;
  experiment.run.async_copies = "early";
  try {
    return compare_with_reference(run_kernel(experiment), experiment.tolerance,
                                  experiment.run.threads)
        .agrees();
  } catch (const Error&) {
    return false;  // not to be told
  }
}

struct Asked {
  std::string why_not;  // empty: the checker was asked
  // All that is wrong by itself is shared memory that is read and nobody has written.
  bool only_unwritten = false;
};

// What the checker finds, before what numbers tell.
Asked put_findings(const Experiment& experiment, const lines::Terms& terms,
                   const std::vector<OutputElement>& elements, bool moves,
                   const CheckResult* checked, LineDivergence& out) {
  try {
    std::optional<CheckResult> check;
    if (checked == nullptr) checked = &check.emplace(check_kernel(experiment, {}));
    const auto& findings = checked->report.findings;
    lines::FindingSuspects(terms, elements, out)
        .suspect(checked->report, moves, is_right_with_early_copies(experiment, findings));
    out.of_order =
        !out.suspects.empty() && std::any_of(findings.begin(), findings.end(), [](const auto& one) {
          return one.severity != host::Severity::kBenign && is_of_order(one.kind);
        });
    return {"", std::all_of(findings.begin(), findings.end(), [](const auto& one) {
              return one.severity == host::Severity::kBenign ||
                     (one.kind == host::CheckKind::kUninitialisedRead && one.space == "shared");
            })};
  } catch (const Error& e) {
    return {e.what(), false};
  }
}

// Of numbers that do not belong together, beside a tile of which a part was never written: an address that is wrong
// reads both. What numbers tell comes first then, and what the checker finds behind it.
void put_numbers_first(const lines::Terms& terms, const std::vector<OutputElement>& elements,
                       const std::vector<LineSuspect>& of_check, const std::string& finding,
                       LineDivergence& out) {
  LineDivergence alone;  // as if nothing had been found
  explain(terms, elements, alone);
  out.suspects = std::move(alone.suspects);
  for (const LineSuspect& one : of_check)
    if (std::none_of(out.suspects.begin(), out.suspects.end(), [&](const LineSuspect& other) {
          return other.place.file == one.place.file && other.place.line == one.place.line;
        }))
      out.suspects.push_back(one);
  out.what = alone.what + "; attn-diag check finds: " + finding;
  out.where = std::move(alone.where);
  out.answer = LineAnswer::kUnsure;
  out.reason = "what attn-diag check finds may follow from it, or it from that";
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

std::string why_not_traced(const Experiment& experiment) {
  const Kernel& kernel = experiment.kernel;
  if (std::string_view(kernel.build().backend) != "host")
    return "lines are traced on the host executor: name the library built for it";
  if (kernel.provenance().stale())
    return "its sources have changed since it was built: build it anew";
  if (kernel.info().part != Part::kAttention)
    return "of kernels that compute a part of attention lines are not traced yet";
  if (experiment.inputs.has_nonfinite)
    return "with NaN or infinity among the inputs nothing can be told";
  return "";
}

Experiment of_production(Experiment experiment) {
  experiment.run.taps = false;
  experiment.run.gate = Gate::kFull;
  if (std::optional<InputData> coded =
          coded_inputs(experiment.kernel, experiment.problem, experiment.inputs))
    experiment.inputs = std::move(*coded);
  return experiment;
}

Experiment watched(Experiment experiment, const lines::WatchBuild& build) {
  experiment.kernel = *build.kernel;
  return experiment;
}

Attention attention_of(const Experiment& e) {
  Attention attention(e.problem, e.inputs.q.data(), e.inputs.k.data(), e.inputs.v.data());
  for (int input = 0; input < 3; ++input) {
    std::vector<float> scales = scales_of_rows(e.kernel, e.problem, e.inputs, input);
    if (!scales.empty()) attention.set_coded(input, std::move(scales));
  }
  return attention;
}

}  // namespace

LineDivergence trace_lines(const Experiment& experiment, LinesBy by, const CheckResult* checked) {
  if (const std::string why = why_not_traced(experiment); !why.empty()) return not_looked(why);
  // Of the instances of a template a case launches few, and what is traced has been run before.
  const Kernel& kernel = experiment.kernel;
  const std::vector<std::string> launched = host::launched_kernels(kernel.library_path());
  if (!launched.empty()) try {
      return lines::trace_lines(lines::make_watch_build(kernel, launched), experiment, by, checked);
    } catch (const KernelLeftOut&) {
      // What ran before were other cases.
    }
  return lines::trace_lines(lines::make_watch_build(kernel), experiment, by, checked);
}

LineDivergence lines::trace_lines(const WatchBuild& build, const Experiment& given, LinesBy by,
                                  const CheckResult* checked) {
  if (const std::string why = why_not_traced(given); !why.empty()) return not_looked(why);
  if (!build.kernel) return not_looked(build.reason);

  Experiment experiment = of_production(given);
  // What was refused may never end: that was seen before, and need not be waited for again.
  const bool refused = by == LinesBy::kChecker;
  constexpr std::int64_t kStepsOfRefused = 1 << 22;
  constexpr double kPatience = 2;
  if (refused && experiment.run.step_limit == 0) experiment.run.step_limit = kStepsOfRefused;
  const Experiment watching = watched(experiment, build);
  const WatchedRun survey =
      lines::watch_run(watching, std::vector<std::uint32_t>{}, refused ? kPatience : 0);
  if (survey.unlaunched) return refused_launch(*survey.unlaunched, survey.reason);
  if (survey.graph.outputs.empty()) return not_looked(survey.reason);
  if (!survey.graph.instrumented && survey.reason.empty())
    return not_looked("no code of the watch build told anything");

  Attention attention = attention_of(experiment);
  const Capture of = case_of(experiment);
  ExpectedRows expected(of);
  const Chosen chosen = chosen_elements(survey, attention, expected);
  WatchedRows rows = watch_rows(watching, survey.graph, chosen, refused ? kPatience : 0);
  const std::vector<std::uint32_t>& blocks = rows.blocks;
  const WatchedRun& run = rows.run;
  const auto judged = [&] {
    return judged_elements(run, attention, expected, chosen.of_lse, blocks);
  };
  std::optional<lines::Terms> told(std::in_place, run.graph, attention);
  std::vector<OutputElement> elements = judged();
  const auto watch_more = [&](const std::vector<std::uint32_t>& more) {
    if (std::optional<WatchedRows> both = with_more(watching, rows, more)) {
      told.reset();
      rows = std::move(*both);
      told.emplace(run.graph, attention);
      elements = judged();
    }
  };
  // The blocks that hold them may be those whose results nobody reads.
  if (lacks_keys(*told, elements)) watch_more(unread_blocks(survey.graph));
  if (!lines::lost_inputs(*told).empty())
    watch_more(blocks_of_lse(survey.graph, chosen, attention));
  const lines::Terms& terms = *told;

  LineDivergence out;
  out.numbers = static_cast<std::int64_t>(run.graph.nodes.size()) - 1;
  // An access that is wrong by itself is a fault, whatever else is.
  Asked asked;
  const bool any_wrong = std::any_of(elements.begin(), elements.end(),
                                     [](const OutputElement& element) { return element.wrong; });
  const bool untold = experiment.run.fill[GivenMemory::kOutput] == MemoryFill::kNaN &&
                      take_out_untold(run, chosen.of_lse, elements);
  // What was judged is wrong, and what was watched is not.
  const bool came_out_right = by == LinesBy::kNumbers && !any_wrong;
  const bool moves = by == LinesBy::kChecker || came_out_right;
  if (moves || any_wrong) asked = put_findings(experiment, terms, elements, moves, checked, out);
  const bool ended = out.suspects.empty() && survey.illegal;
  if (ended) {
    const std::int64_t numbers = out.numbers;
    out = lines::crash_lines({*survey.illegal}, lines::CrashOf::kAddress, survey.reason);
    out.numbers = numbers;
  }
  const bool found = !out.suspects.empty();
  const std::string finding = out.what, why = out.reason;
  const std::vector<LineSuspect> of_check = out.suspects;
  explain(terms, elements, out);
  const bool understood = out.answer == LineAnswer::kNone;
  const std::string& unchecked = asked.why_not;
  if (found && !ended && asked.only_unwritten && out.fault == LineFault::kOperands) {
    put_numbers_first(terms, elements, of_check, finding, out);
  } else if (found) {
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
  if (came_out_right && !ended && understood && out.numbers > 0) {
    out.answer = LineAnswer::kUnsure;
    out.reason = "the run that was watched came out right";
    if (host::is_lockstep(experiment.run.schedule))
      out.reason += ", in another order of threads: what is wrong depends on that";
    out.reason += found               ? "; this is what attn-diag check finds"
                  : unchecked.empty() ? "; attn-diag check finds nothing"
                                      : "; attn-diag check cannot look: " + unchecked;
  }
  if (untold && out.answer == LineAnswer::kNone) {
    out.answer = LineAnswer::kUnsure;
    out.reason = "what is wrong was stored by code that the watch build does not see";
  }
  out.fault_is_firm = out.fault_is_firm && !found && by == LinesBy::kNumbers;
  // Before anything is claimed.
  if (out.answer == LineAnswer::kLine || out.fault_is_firm) {
    const WatchedRun plain = lines::watch_run(experiment, std::vector<std::uint32_t>{});
    if (plain.o != survey.o) {
      out.fault_is_firm = false;
      if (out.answer == LineAnswer::kLine) {
        out.answer = LineAnswer::kUnsure;
        out.reason = "the watch build's o differs from the kernel's own in some bits";
      }
    }
  }
  if (out.answer == LineAnswer::kNone && out.numbers == 0)
    return not_looked("no number that comes of q, k and v was seen");
  finish(run, terms, out);
  return out;
}

lines::VariableTable lines::variable_table(const Experiment& given, const VariableQuery& query) {
  VariableTable out;
  out.reason = why_not_traced(given);
  if (!out.reason.empty()) return out;
  const WatchBuild build = make_watch_build(given.kernel);
  out.reason = build.reason;
  if (!build.kernel) return out;
  const Experiment experiment = of_production(given), watching = watched(experiment, build);
  Attention attention = attention_of(experiment);
  WatchedRows rows;
  const WatchedRun survey = watch_run(watching, std::vector<std::uint32_t>{});
  out.reason = survey.reason;
  if (survey.graph.outputs.empty()) return out;
  if (query.block) {
    rows.blocks = {*query.block};
    rows.run = watch_run(watching, with_sources(survey.graph, rows.blocks));
    if (rows.run.graph.full) {
      rows.run = {};
      rows.run = watch_run(watching, rows.blocks);
    }
  } else {
    const Capture of = case_of(experiment);
    ExpectedRows expected(of);
    rows = watch_rows(watching, survey.graph, chosen_elements(survey, attention, expected), 0);
  }
  const auto& [blocks, run] = rows;
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
