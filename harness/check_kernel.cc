#include "attn_diag/harness/check.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"
#include "harness/run_device.h"
#include "harness/run_memory.h"

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

}  // namespace

CheckResult check_kernel(const Kernel& given, const Problem& problem, const InputData& inputs,
                         const RunOptions& options, const host::CheckOptions& check) {
  if (std::string_view(given.build().backend) != "host")
    throw Error(
        fmt::format("{} was built for backend {}: check runs on the host executor. On a GPU, "
                    "compute-sanitizer does this.",
                    given.spec(), given.build().backend));
  const Kernel kernel = given.build().lockstep ? given : Kernel::load(given.spec(), "host", true);
  if ((kernel.info().gates >> static_cast<unsigned>(Gate::kFull) & 1u) == 0)
    throw Error(
        fmt::format("{} was built without gate full, the production kernel.", kernel.spec()));
  CheckResult result;
  result.geometry = plan_geometry(kernel, problem, options);
  result.provenance = kernel.provenance();

  RunMemory memory(problem, result.geometry, inputs,
                   kernel.info().workspace_bytes(problem, result.geometry), MemoryFill());
  RunRequest request;
  request.problem = problem;
  request.geometry = result.geometry;
  request.gate = Gate::kFull;
  const host::LaunchScope scope(launch_options(options, check));
  memory.place_for_check(request);
  std::string refused;
  try {
    call_kernel(kernel, request, "failed to launch");
  } catch (const Error& e) {
    refused = e.what();
  }
  const host::LaunchReport& launched = scope.report();
  // A launch that did not complete is a finding; what was never launched was not checked.
  for (const host::Finding& finding : launched.findings)
    if (finding.kind == host::FindingKind::kLaunchConfig ||
        finding.kind == host::FindingKind::kNotInstrumented)
      throw Error(kernel.spec() + " did not complete: " + finding.message);
  if (launched.findings.empty() && !refused.empty()) throw Error(refused);
  result.report = launched.check;
  result.notes = launched.notes;
  return result;
}

}  // namespace attn_diag
