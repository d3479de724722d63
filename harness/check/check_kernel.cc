#include "attn_diag/harness/check_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/plan.h"
#include "harness/backends/run_device.h"
#include "harness/inputs/coded_inputs.h"
#include "harness/run/input_writes.h"
#include "harness/run/repetition.h"
#include "harness/run/run_memory.h"
#include "harness/run/run_plan.h"

namespace attn_diag {
namespace {

host::LaunchOptions launch_options(const RunOptions& options, const host::CheckOptions& check) {
  host::LaunchOptions launch;
  try {
    launch.schedule = host::parse_schedule(options.schedule);
  } catch (const std::invalid_argument& e) {
    throw Error(e.what());
  }
  launch.mma_order = options.mma_order;
  launch.step_limit = static_cast<std::uint64_t>(std::max<std::int64_t>(options.step_limit, 0));
  launch.check = check;
  return launch;
}

std::string place_text(const Unwritten& unwritten) {
  const auto& [b, h, i, d] = unwritten.index;
  return unwritten.tensor == Tensor::kO ? fmt::format("({}, {}, {}, {})", b, h, i, d)
                                        : fmt::format("({}, {}, {})", b, h, i);
}

// Stores of what is there already change nothing; what the checker did not see being stored shows in the end.
void settle_input_writes(const std::vector<InputWrite>& writes,
                         std::vector<host::CheckFinding>& findings) {
  const auto is_of = [](const host::CheckFinding& f, const InputWrite& w) {
    return f.kind == host::CheckKind::kInputWrite && f.array == std::string(1, w.input);
  };
  for (host::CheckFinding& f : findings)
    if (f.kind == host::CheckKind::kInputWrite &&
        std::none_of(writes.begin(), writes.end(), [&](const auto& w) { return is_of(f, w); })) {
      f.severity = host::Severity::kBenign;
      f.message += ", of what is there already";
    }
  for (const InputWrite& w : writes) {
    const std::string text = input_write_text(w);
    bool seen = false;
    for (host::CheckFinding& f : findings)
      if (is_of(f, w)) {
        f.message = text;
        seen = true;
      }
    if (seen) continue;
    host::CheckFinding f;
    f.kind = host::CheckKind::kInputWrite;
    f.array = std::string(1, w.input);
    f.message = text + ", by a store that was not seen";
    f.advice =
        "Look for memcpy, memset, cudaMemcpy and asynchronous copies, and for kernels of "
        "libraries without call-outs";
    findings.insert(findings.begin(), f);
  }
  // Errors come first.
  std::stable_sort(findings.begin(), findings.end(),
                   [](const auto& a, const auto& b) { return a.severity < b.severity; });
}

// Puts elements of the outputs that nobody has stored first.
void find_unwritten_outputs(const Experiment& experiment, const RunMemory& memory,
                            std::vector<host::CheckFinding>& findings) {
  const KernelInfo& info = experiment.kernel.info();
  // What ended a block is why the rest of it stored nothing.
  const auto may_end_a_block = [](const host::CheckFinding& f) {
    using enum host::CheckKind;
    return f.kind == kOutOfBounds || f.kind == kUseAfterFree || f.kind == kMisaligned ||
           f.kind == kLaunch;
  };
  if (info.part != Part::kAttention ||
      std::any_of(findings.begin(), findings.end(), may_end_a_block))
    return;
  const bool has_lse = info.conventions.lse != LseConvention::kNone;
  for (const Unwritten& unwritten :
       find_unwritten(experiment.problem, memory, has_lse, findings.empty())) {
    host::CheckFinding f;
    f.kind = host::CheckKind::kUnwrittenOutput;
    f.array = name(unwritten.tensor);
    f.message = fmt::format(
        "{} of {} were stored by nobody, the first {}",
        unwritten.cells == 1 ? "1 element" : fmt::format("{} elements", unwritten.cells), f.array,
        place_text(unwritten));
    f.advice =
        "Look at the grid, at loops over rows and columns that end early, and at guards around the "
        "store";
    findings.insert(findings.begin(), f);
  }
}

// Where nothing ran, or nothing that ran loaded or stored, nothing was checked.
void require_something_checked(const Kernel& kernel, const host::LaunchReport& launched) {
  const host::CheckSummary& seen = launched.check.summary;
  if (launched.launches == 0)
    throw Error(fmt::format(
        "{} launched no kernel: nothing was checked. Look for what made its host code return "
        "early: a check of shapes or types, an error that it printed.",
        kernel.spec()));
  // Arguments and constants are not watched.
  if (seen.loads + seen.stores <= seen.unknown)
    throw Error(fmt::format(
        "{} launched {} of {}, and none of their threads loaded or stored anything in shared or "
        "global memory that could be seen: nothing was checked. Look at the sizes that the kernel "
        "is given, and at what its threads return for.",
        kernel.spec(),
        launched.launches == 1 ? "1 kernel" : fmt::format("{} kernels", launched.launches),
        launched.blocks == 1 ? "1 block" : fmt::format("{} blocks", launched.blocks)));
}

// One watched run.
void run_checked(const Experiment& experiment, const host::CheckOptions& check,
                 CheckResult& result) {
  const auto& [kernel, problem, inputs, options, tolerance, oracle] = experiment;
  Between between;
  if (kernel.info().part != Part::kAttention)
    between = make_between(problem, result.geometry,
                           declared_arithmetic(kernel, problem, result.geometry),
                           {inputs.q.data(), inputs.k.data(), inputs.v.data()}, options.threads);
  RunMemory memory(problem, result.geometry, inputs,
                   kernel.info().workspace_bytes(problem, result.geometry), MemoryFill(), between);
  RunRequest request;
  request.problem = problem;
  request.geometry = result.geometry;
  request.gate = Gate::kFull;
  std::copy(std::begin(kernel.info().codes), std::end(kernel.info().codes), request.codes);
  const host::LaunchScope scope(launch_options(options, check));
  memory.place_for_check(request);
  std::exception_ptr refused;
  try {
    call_kernel(kernel, request, "failed to launch");
  } catch (const Error&) {
    refused = std::current_exception();
  }
  const host::LaunchReport& launched = scope.report();
  // A launch that did not complete is a finding; what was never launched was not checked.
  for (const host::LaunchFinding& finding : launched.findings)
    if (finding.kind == host::LaunchFindingKind::kLaunchConfig ||
        finding.kind == host::LaunchFindingKind::kNotInstrumented)
      throw Error(kernel.spec() + " did not complete: " + finding.message);
  if (launched.findings.empty() && refused) std::rethrow_exception(refused);
  host::CheckReport seen = launched.check;
  settle_input_writes(find_input_writes(problem, inputs, between, memory), seen.findings);
  if (seen.findings.empty()) require_something_checked(kernel, launched);
  if (launched.findings.empty()) find_unwritten_outputs(experiment, memory, seen.findings);
  host::add_report(result.report, seen);
  for (const std::string& note : launched.notes)
    if (std::find(result.notes.begin(), result.notes.end(), note) == result.notes.end())
      result.notes.push_back(note);
  result.schedules.push_back(options.schedule);
}

bool is_perhaps_unused(const host::CheckFinding& finding) {
  return reads_absent_lane(finding) ||
         (finding.kind == host::CheckKind::kUninitialisedRead && finding.access.tile);
}

// A matrix load takes a whole tile, with the rows of the tail that nobody has written; a reduction by shuffles
// leaves some lanes with what no lane gave. They do no harm if o and lse have the same bits whatever is there.
void judge_unused_reads(CheckResult& result, Experiment experiment) {
  RunOptions& options = experiment.run;
  std::vector<host::CheckFinding>& findings = result.report.findings;
  if (std::none_of(findings.begin(), findings.end(), is_perhaps_unused)) return;
  options.gate = Gate::kFull;
  options.taps = false;
  // Nothing, and large finite numbers of every type; the first run has NaN.
  constexpr std::array<std::uint8_t, 2> kBytes = {0x00, 0x77};
  const auto reaches_output = [&](GivenMemory where) {
    try {
      options.fill = MemoryFill();
      const Capture first = run_kernel(experiment);
      return std::any_of(kBytes.begin(), kBytes.end(), [&](std::uint8_t byte) {
        options.fill = MemoryFill::only(where, byte);
        return moved_outputs(first, run_kernel(experiment)).moved();
      });
    } catch (const Error&) {
      return true;  // not to be told
    }
  };
  std::array<std::optional<bool>, kNumGivenMemories> known;
  for (host::CheckFinding& finding : findings) {
    if (!is_perhaps_unused(finding)) continue;
    // What a shuffle gives of an absent lane is filled as shared memory is.
    const bool lane = reads_absent_lane(finding), shared = lane || finding.space == "shared";
    if (!shared && finding.array != name(GivenMemory::kWorkspace)) continue;
    const GivenMemory where = shared ? GivenMemory::kShared : GivenMemory::kWorkspace;
    std::optional<bool>& reaches = known[static_cast<std::size_t>(where)];
    if (!reaches) reaches = reaches_output(where);
    if (*reaches) continue;
    finding.severity = host::Severity::kBenign;
    finding.message += fmt::format(
        ", which {} no output: the outputs have the same bits with NaN, zeros and large numbers "
        "in {}",
        lane ? "reaches" : "reach", lane ? "its place" : name(where));
    finding.advice =
        lane ? "Harmless for this problem; name all lanes where another one may use what is read"
             : "Harmless for this problem; clear them where another mask or length may use them";
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const host::CheckFinding& a, const host::CheckFinding& b) {
                     return static_cast<int>(a.severity) < static_cast<int>(b.severity);
                   });
}

}  // namespace

bool is_of_order(host::CheckKind kind) {
  using enum host::CheckKind;
  return kind == kRace || kind == kMissingFence || kind == kAsyncCopy || kind == kUninitialisedRead;
}

CheckResult check_kernel(const Experiment& experiment, const host::CheckOptions& check) {
  const Kernel& given = experiment.kernel;
  if (std::string_view(given.build().backend) != "host")
    throw Error(
        fmt::format("{} was built for backend {}: check runs on the host executor. On a GPU, "
                    "compute-sanitizer does this.",
                    given.spec(), given.build().backend));
  Experiment checked = experiment;
  Kernel& kernel = checked.kernel;
  if (!given.build().lockstep) kernel = Kernel::load(given.spec(), "host", true);
  if (!has_gate(kernel.info(), Gate::kFull))
    throw Error(
        fmt::format("{} was built without gate full, the production kernel.", kernel.spec()));
  CheckResult result;
  result.geometry = plan_geometry(kernel, checked.problem, checked.run);
  if (std::optional<InputData> coded = coded_inputs(kernel, checked.problem, checked.inputs))
    checked.inputs = std::move(*coded);
  result.provenance = kernel.provenance();
  run_checked(checked, check, result);
  // An atomic, or a flag behind a fence, hands over to whoever comes next. What that orders depends on who came
  // first.
  const host::CheckSummary& seen = result.report.summary;
  if (experiment.run.schedule == "forward" && seen.atomics + seen.fences > 0) {
    checked.run.schedule = "reverse";
    run_checked(checked, check, result);
  }
  checked.kernel = given;
  checked.run = experiment.run;
  judge_unused_reads(result, std::move(checked));
  return result;
}

}  // namespace attn_diag
