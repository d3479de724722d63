#include "harness/lines/watch.h"

#include <algorithm>
#include <cstring>
#include <numbers>
#include <stdexcept>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"
#include "attn_diag/harness/plan.h"
#include "harness/backends/run_device.h"
#include "harness/run/run_memory.h"
#include "harness/toolchain/build/build.h"
#include "harness/toolchain/build/scratch.h"

namespace attn_diag::lines {

namespace {

// The line with the error; what the compiler wrote before may be a warning, or where it was included.
std::string first_error_of(const build::BuildRecord& record) {
  for (const build::Step& step : record.steps) {
    if (step.ok) continue;
    const std::size_t error = step.messages.find("error:");
    const std::size_t begin = error == std::string::npos ? 0 : step.messages.rfind('\n', error) + 1;
    return step.messages.substr(begin, step.messages.find('\n', begin) - begin);
  }
  return "the compiler gave no reason";
}

}  // namespace

WatchBuild make_watch_build(const Kernel& of, std::vector<std::string> only) {
  if (std::optional<build::BuildRequest> request = build::request_of(of.library_path())) {
    request->only_kernels = std::move(only);
    return make_watch_build(*request, of.info().name);
  }
  WatchBuild out;
  out.reason =
      "its library does not say what it was built from: build it anew with attn-diag build";
  return out;
}

WatchBuild make_watch_build(build::BuildRequest request, const std::string& kernel) {
  WatchBuild out;
  const auto folder = std::make_shared<const build::ScratchFolder>();
  request.output = *folder / "kernel.so";
  request.watch = true;
  request.lockstep = request.ask_nvcc = false;
  try {
    const build::BuildRecord record =
        build_library(request, build::load_settings(build::settings_file_of_program()));
    if (!record.ok) {
      out.reason = "its watch build does not compile: " + first_error_of(record);
      return out;
    }
    out.kernel = Kernel::load(request.output.string() + ":" + kernel, "host");
  } catch (const Error& e) {
    out.reason = e.what();
    return out;
  }
  out.folder = folder;
  return out;
}

WatchedRun watch_run(const Experiment& experiment,
                     const std::optional<std::vector<std::uint32_t>>& blocks, double patience) {
  const auto& [watched, problem, inputs, options, tolerance, oracle] = experiment;
  WatchedRun out;
  const Geometry geometry = plan_geometry(watched, problem, options);
  RunMemory memory(problem, geometry, inputs, watched.info().workspace_bytes(problem, geometry),
                   options.fill);
  RunRequest request;
  request.problem = problem;
  request.geometry = geometry;
  request.gate = Gate::kFull;
  std::copy(std::begin(watched.info().codes), std::end(watched.info().codes), request.codes);

  host::ValueOptions values;
  const auto size = static_cast<unsigned>(size_of(problem.dtype));
  for (const GuardedBuffer* input : {&memory.q, &memory.k, &memory.v})
    values.inputs.push_back({input->data(), input->size(), size});
  values.outputs.push_back({memory.o.data(), memory.o.size(), size});
  values.outputs.push_back({memory.lse.data(), memory.lse.size(), 4});
  values.all_blocks = !blocks;
  if (blocks) values.blocks = *blocks;

  host::LaunchOptions launch;
  launch.schedule =
      host::parse_schedule(host::is_lockstep(options.schedule) ? "forward" : options.schedule);
  launch.mma_order = options.mma_order;
  launch.workers = 1;
  launch.step_limit = static_cast<std::uint64_t>(std::max<std::int64_t>(options.step_limit, 0));
  launch.silent_seconds = patience;
  launch.values = host::make_value_recorder(values);
  const host::LaunchScope scope(launch);
  memory.place_for_check(request);
  std::string refused;
  try {
    call_kernel(watched, request, "failed to launch");
  } catch (const Error& e) {
    refused = e.what();
  }
  for (const host::LaunchFinding& finding : scope.report().findings) {
    if (finding.kind == host::LaunchFindingKind::kLeftOut) throw KernelLeftOut(finding.message);
    if (out.reason.empty()) out.reason = finding.message;
    if (finding.kind == host::LaunchFindingKind::kIllegalAddress && finding.line > 0 &&
        !out.illegal)
      out.illegal = host::SourcePlace{finding.file, finding.line, ""};
    if (finding.kind == host::LaunchFindingKind::kLaunchConfig && !out.unlaunched)
      out.unlaunched = host::SourcePlace{finding.file, finding.line, ""};
  }
  // A finding says more than the status that follows from it.
  if (out.reason.empty()) out.reason = refused;
  out.graph = host::take_graph(*launch.values);
  if (out.reason.empty() && !out.graph.instrumented)
    out.reason = "no code of the watch build told anything";
  out.o_type = problem.dtype;
  out.o.assign(memory.o.data(), memory.o.data() + memory.o.size());
  const LseConvention convention = watched.info().conventions.lse;
  if (convention == LseConvention::kNone) return out;
  out.lse.resize(memory.lse.size() / sizeof(float));
  if (!out.lse.empty()) std::memcpy(out.lse.data(), memory.lse.data(), memory.lse.size());
  if (convention == LseConvention::kBase2)
    for (float& lse : out.lse) lse *= std::numbers::ln2_v<float>;
  return out;
}

}  // namespace attn_diag::lines
