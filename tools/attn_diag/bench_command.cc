// attn-diag bench: how long kernels take on a GPU, if their output is right.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "attn_diag/harness/gpu.h"
#include "attn_diag/harness/kernel.h"
#include "harness/report/bench_report.h"
#include "harness/timing/bench.h"
#include "harness/timing/bench_device.h"
#include "tools/attn_diag/cases.h"
#include "tools/attn_diag/output.h"
#include "tools/attn_diag/progress.h"
#include "tools/attn_diag/session.h"

namespace attn_diag::cli {
namespace {

// Every kernel that was built for GPUs, without the planted faults.
std::string all_kernels() {
  const std::vector<std::string> names = kernels_built_for("cuda");
  if (names.empty())
    throw Error(fmt::format("No kernels built for backend cuda were found (searched: {}).",
                            report::join(kernel_directories(), ", ")));
  return report::join(names, ",");
}

// The flags with what bench has other defaults for.
Flags with_defaults(Flags flags) {
  const auto set = [](std::string& flag, const char* value) {
    if (flag.empty()) flag = value;
  };
  set(flags.backend, "cuda");
  if (flags.backend != "cuda")
    throw Error(fmt::format("bench measures GPUs: --backend takes cuda, but was given '{}'.",
                            flags.backend));
  if (flags.kernel.empty()) flags.kernel = "all";
  if (flags.kernel == "all" && gpu_state().usable()) flags.kernel = all_kernels();
  if (flags.inputs.find_first_of("./") != std::string::npos)
    throw Error(
        fmt::format("bench makes its own inputs: --inputs takes a kind, such as randn, but was "
                    "given '{}'.",
                    flags.inputs));
  set(flags.heads, "8");
  if (flags.seqlen_q.empty() && flags.seqlen_k.empty()) set(flags.seqlen, "128,512,2048,8192");
  set(flags.mask, "none,causal");
  return flags;
}

// As expand_cases gives them, but the kernels of one problem after each other.
std::vector<RequestedCase> by_problem(std::vector<RequestedCase> cases) {
  std::map<std::string, std::size_t> of_kernel;  // how many cases so far
  std::vector<std::pair<std::size_t, RequestedCase>> keyed;
  for (RequestedCase& c : cases) {
    const std::size_t at = of_kernel[c.kernel]++;
    keyed.emplace_back(at, std::move(c));
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  cases.clear();
  for (auto& [at, c] : keyed) cases.push_back(std::move(c));
  return cases;
}

BenchOptions options_of(const RequestedCase& c, const Tolerance& tolerance) {
  BenchOptions options;
  options.tolerance = tolerance;
  options.input_scale = c.input_scale;
  options.run = c.run;
  options.inputs = c.inputs;
  options.seed = c.seed;
  return options;
}

// Unsupported rows do not decide, unless nothing was timed.
ExitCode code_of(const std::vector<BenchRow>& rows) {
  ExitCode worst = ExitCode::kAgrees;
  bool timed = false;
  for (const BenchRow& row : rows) {
    timed |= row.verdict == BenchVerdict::kTimed;
    if (row.verdict == BenchVerdict::kDiverges) worst = std::max(worst, ExitCode::kDiverges);
    if (row.verdict == BenchVerdict::kFailed) worst = std::max(worst, ExitCode::kCouldNotCompare);
  }
  return timed || worst != ExitCode::kAgrees ? worst : ExitCode::kCouldNotCompare;
}

}  // namespace

CommandResult bench_command(const Session& session) {
  const Flags flags = with_defaults(session.flags);
  const std::vector<RequestedCase> cases = by_problem(expand_cases(flags, true));
  const Tolerance tolerance = parse_tolerance(flags);
  report::BenchReport bench;
  if (!flags.against.empty()) bench.pytorch = report::read_pytorch_times(flags.against);
  if (!gpu_state().usable()) throw Error("There is no GPU to measure. " + gpu_state().why_not);

  std::map<std::string, Kernel> kernels;
  for (const RequestedCase& c : cases)
    if (kernels.count(c.kernel) == 0) kernels.emplace(c.kernel, load_kernel(c));
  {
    Progress progress(!flags.quiet);
    const int steps = static_cast<int>(cases.size()) + 1;
    progress.step(1, steps, "measuring the copy bandwidth");
    bench.peaks = cuda::measure_peaks();
    for (const RequestedCase& c : cases) {
      progress.step(static_cast<int>(bench.rows.size()) + 2, steps,
                    case_text(kernels.at(c.kernel), c));
      bench.rows.push_back(
          bench_kernel(kernels.at(c.kernel), c.problem, options_of(c, tolerance), bench.peaks));
    }
  }
  CommandResult outcome;
  outcome.code = code_of(bench.rows);
  outcome.out = flags.json ? report::dump_json(report::bench_json(
                                 bench, static_cast<int>(outcome.code),
                                 {"bench", session.this_command(), ATTN_DIAG_VERSION}))
                           : report::bench_text(bench, session.style, flags.quiet);
  return outcome;
}

}  // namespace attn_diag::cli
