#include "attn_diag/harness/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "attn_diag/harness/check_kernel.h"
#include "attn_diag/harness/error.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/reference/reference.h"
#include "harness/base/close_names.h"
#include "harness/capture/element.h"
#include "harness/inputs/coded_inputs.h"
#include "harness/lines/crash_lines.h"
#include "harness/lines/explain.h"
#include "harness/lines/finding_suspects.h"
#include "harness/lines/roles.h"
#include "harness/lines/source_text.h"
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
using lines::OutputElement;
using lines::WatchedRun;

LineDivergence not_looked(std::string reason) {
  LineDivergence out;
  out.reason = std::move(reason);
  return out;
}

double o_element(const WatchedRun& run, DType type, std::size_t i) {
  if (type == DType::kFp32) {
    float value;
    std::memcpy(&value, run.o.data() + 4 * i, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, run.o.data() + 2 * i, sizeof bits);
  return type == DType::kFp16 ? widen_fp16(bits) : widen_bf16(bits);
}

// Rows of o, (batch, head, query) as one number, with what they should be.
class ExpectedRows {
 public:
  ExpectedRows(const Kernel& kernel, const Problem& problem, const InputData& inputs,
               const RunOptions& options)
      : x_problem(problem),
        x_inputs(inputs),
        x_geometry(plan_geometry(kernel, problem, options)),
        x_arithmetic(declared_arithmetic(kernel, problem, x_geometry)) {}

  bool is_wrong(std::uint32_t row, std::uint32_t column, double actual) {
    const Row& expected = row_of(row);
    const double value = expected.value[column], bound = expected.bound[column];
    if (std::isinf(bound)) return false;
    return !(std::fabs(actual - value) <= bound);
  }
  bool is_wrong_lse(std::uint32_t row, double actual) {
    const Row& expected = row_of(row);
    if (std::isinf(expected.lse_bound) || actual == expected.lse) return false;
    return !(std::fabs(actual - expected.lse) <= expected.lse_bound);
  }

 private:
  struct Row {
    std::vector<double> value, bound;
    double lse = 0, lse_bound = 0;
  };
  const Row& row_of(std::uint32_t row) {
    const auto found = x_rows.find(row);
    if (found != x_rows.end()) return found->second;
    const auto queries = static_cast<std::uint32_t>(x_problem.seqlen_q);
    const auto heads = static_cast<std::uint32_t>(x_problem.heads);
    const std::uint32_t head = row / queries;
    reference::Options options;
    options.tensors = tensor_bit(Tensor::kO) | tensor_bit(Tensor::kLse);
    options.batch_begin = static_cast<std::int32_t>(head / heads);
    options.batch_end = options.batch_begin + 1;
    options.head_begin = static_cast<std::int32_t>(head % heads);
    options.head_end = options.head_begin + 1;
    const auto dim = static_cast<std::size_t>(x_problem.head_dim_v);
    const reference::Tensors all =
        reference::compute(x_problem, x_geometry, x_arithmetic,
                           {x_inputs.q.data(), x_inputs.k.data(), x_inputs.v.data()}, options);
    const auto o = static_cast<std::size_t>(Tensor::kO);
    const auto lse = static_cast<std::size_t>(Tensor::kLse);
    for (std::uint32_t q = 0; q < queries; ++q) {
      Row& one = x_rows[head * queries + q];
      one.lse = all.value[lse][q];
      one.lse_bound = all.bound[lse][q];
      const auto begin = static_cast<std::ptrdiff_t>(q * dim);
      one.value.assign(all.value[o].begin() + begin,
                       all.value[o].begin() + begin + static_cast<std::ptrdiff_t>(dim));
      one.bound.assign(all.bound[o].begin() + begin,
                       all.bound[o].begin() + begin + static_cast<std::ptrdiff_t>(dim));
    }
    return x_rows[row];
  }

  const Problem& x_problem;
  const InputData& x_inputs;
  Geometry x_geometry;
  Arithmetic x_arithmetic;
  std::map<std::uint32_t, Row> x_rows;
};

// A few wrong elements, of the first, a middle and the last of the wrong rows; and a right one. Of lse, if all of o
// is right.
struct Chosen {
  bool of_lse = false;
  std::vector<std::size_t> elements;
};
Chosen chosen_elements(const WatchedRun& run, const Attention& attention, ExpectedRows& expected) {
  const Problem& p = attention.problem();
  Chosen chosen;
  std::vector<std::size_t> wrong, right;
  const std::size_t count = run.graph.outputs[0].size();
  const auto dim = static_cast<std::size_t>(p.head_dim_v);
  for (std::size_t first = 0; first < count; first += dim) {
    std::uint32_t row = 0, column = 0;
    attention.locate_output(first, row, column);
    bool is_wrong = false;
    for (std::size_t d = 0; d < dim; ++d)
      is_wrong = is_wrong || expected.is_wrong(row, static_cast<std::uint32_t>(d),
                                               o_element(run, p.dtype, first + d));
    (is_wrong ? wrong : right).push_back(first);
  }
  if (wrong.empty()) {
    std::vector<std::size_t> right_lse;
    for (std::size_t row = 0; row < run.lse.size(); ++row)
      (expected.is_wrong_lse(static_cast<std::uint32_t>(row), run.lse[row]) ? wrong : right_lse)
          .push_back(row);
    chosen.of_lse = !wrong.empty();
    if (chosen.of_lse) right = right_lse;
  }
  const auto take = [&](const std::vector<std::size_t>& rows, std::size_t i) {
    if (i < rows.size() &&
        std::find(chosen.elements.begin(), chosen.elements.end(), rows[i]) == chosen.elements.end())
      chosen.elements.push_back(rows[i]);
  };
  take(wrong, 0);
  take(wrong, wrong.size() / 2);
  take(wrong, wrong.empty() ? 0 : wrong.size() - 1);
  take(right, right.size() / 2);
  return chosen;
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

void add_source_text(LineDivergence& out) {
  lines::SourceText text;
  const auto fill = [&](LinePlace& place) {
    const std::string& line = text.line(place.file, place.line);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) return;
    place.text = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
  };
  for (LineSuspect& suspect : out.suspects) fill(suspect.place);
  for (LineRole& role : out.roles) fill(role.place);
  for (LineReads& read : out.reads) fill(read.place);
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
  ExpectedRows expected(kernel, problem, uncoded, run_options);
  const Chosen chosen = chosen_elements(survey, attention, expected);
  std::vector<std::uint32_t> blocks = blocks_of(survey.graph, chosen);
  WatchedRun run = lines::watch_run(*build.kernel, problem, uncoded, run_options, blocks,
                                    refused ? kPatience : 0);

  LineDivergence out;
  out.numbers = static_cast<std::int64_t>(run.graph.nodes.size()) - 1;
  const lines::Terms terms(run.graph, attention);
  std::vector<OutputElement> elements;
  std::size_t unstored = 0;
  bool untold = false;
  const auto& outputs = run.graph.outputs[chosen.of_lse ? 1 : 0];
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::uint32_t block = outputs[i].block;
    const bool nobody = block == ~0u;
    if (nobody ? ++unstored > 4096 : std::find(blocks.begin(), blocks.end(), block) == blocks.end())
      continue;
    std::uint32_t row = static_cast<std::uint32_t>(i), column = 0;
    if (!chosen.of_lse) attention.locate_output(i, row, column);
    const double value = chosen.of_lse ? run.lse[i] : o_element(run, problem.dtype, i);
    const bool wrong = chosen.of_lse ? expected.is_wrong_lse(row, run.lse[i])
                                     : expected.is_wrong(row, column, value);
    // Memory that began as NaN holds a number: somebody stored it, by code that does not tell.
    if (nobody && !std::isnan(value) && options.fill[GivenMemory::kOutput] == MemoryFill::kNaN) {
      untold = untold || wrong;
      continue;
    }
    elements.push_back({i, wrong, chosen.of_lse});
  }
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
  describe(terms, out);
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
  if (run.graph.full) {
    out.answer = LineAnswer::kUnsure;
    out.reason = fmt::format(
        "there were more than {} numbers, what came later was not seen: take a smaller case",
        out.numbers);
  }
  out.fault_is_firm = out.fault_is_firm && !found && by == LinesBy::kNumbers && !run.graph.full &&
                      run.reason.empty();
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
  if (!run.reason.empty() && out.answer == LineAnswer::kLine) {
    out.answer = LineAnswer::kUnsure;
    out.reason = run.reason;
  }
  add_source_text(out);
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
    ExpectedRows expected(kernel, problem, inputs, run_options);
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
