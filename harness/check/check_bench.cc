// What checking costs: a kernel's launches in its instrumented build, watched, against the same launches in
// the plain build, both on one worker of the host executor, in turn; and in the instrumented build with nobody
// watching, whose call-outs return at once. Best of several, processor time.
//
//   check_bench [--seqlen N] [KERNEL ...]    512 unless told, all four of this project
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/kernel.h"
#include "attn_diag/harness/plan.h"
#include "attn_diag/harness/run.h"
#include "harness/backends/run_device.h"
#include "harness/run/run_memory.h"

namespace attn_diag {
namespace {

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

// The seconds of one call; memory and inputs are made before.
double seconds_of_a_call(const Kernel& kernel, const Problem& problem, const InputData& inputs,
                         bool check) {
  const Geometry geometry = plan_geometry(kernel, problem, {});
  RunMemory memory(problem, geometry, inputs, kernel.info().workspace_bytes(problem, geometry),
                   MemoryFill());
  host::LaunchOptions options;
  options.workers = 1;
  if (check) options.check = host::CheckOptions();
  const host::LaunchScope scope(options);
  RunRequest request;
  request.problem = problem;
  request.geometry = geometry;
  request.gate = Gate::kFull;
  memory.place_for_check(request);
  const double start = processor_seconds();
  call_kernel(kernel, request, "failed to launch");
  return processor_seconds() - start;
}

void compare(const std::string& spec, std::int64_t seqlen) {
  const Kernel plain = Kernel::load(spec, "host", false);
  const Kernel instrumented = Kernel::load(spec, "host", true);
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seqlen_q = problem.seqlen_k = static_cast<std::int32_t>(seqlen);
  problem.head_dim = problem.head_dim_v = 64;
  problem.dtype = DType::kFp16;
  problem.softmax_scale = 0.125f;
  const InputData inputs = make_inputs(problem, "randn", 1, 1.0);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double unchecked = kNever, unwatched = kNever, checked = kNever;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 3; ++j)
      unchecked = std::min(unchecked, seconds_of_a_call(plain, problem, inputs, false));
    unwatched = std::min(unwatched, seconds_of_a_call(instrumented, problem, inputs, false));
    checked = std::min(checked, seconds_of_a_call(instrumented, problem, inputs, true));
  }
  std::printf(
      "%-18s S = %lld: plain %.2f ms, call-outs alone %.2f ms (ratio %.1f), checked %.2f ms (ratio "
      "%.1f)\n",
      spec.c_str(), static_cast<long long>(seqlen), 1e3 * unchecked, 1e3 * unwatched,
      unwatched / unchecked, 1e3 * checked, checked / unchecked);
  std::fflush(stdout);
}

}  // namespace
}  // namespace attn_diag

int main(int argc, char** argv) try {
  std::int64_t seqlen = 512;
  std::vector<std::string> specs;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--seqlen" && i + 1 < argc)
      seqlen = std::atoll(argv[++i]);
    else
      specs.push_back(argv[i]);
  }
  if (specs.empty()) specs = attn_diag::kernels_built_for("host");
  for (const std::string& spec : specs) attn_diag::compare(spec, seqlen);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "check_bench: %s\n", e.what());
  return 2;
}
