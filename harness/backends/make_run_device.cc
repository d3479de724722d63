#include "harness/backends/make_run_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/host/executor.h"
#include "harness/backends/cuda/run_on_gpu.h"

namespace attn_diag {
namespace {

// The host executor: a kernel uses the harness's memory as it is.
class HostDevice : public RunDevice {
 public:
  explicit HostDevice(const RunOptions& options) {
    try {
      x_launch.schedule = host::parse_schedule(options.schedule);
      x_launch.async_copies = host::parse_async_copies(options.async_copies);
    } catch (const std::invalid_argument& e) {
      throw Error(e.what());
    }
    x_launch.mma_order = options.mma_order;
    x_launch.workers = options.threads;
    x_launch.shared_fill = options.fill[GivenMemory::kShared];
    x_launch.allocated_fill = options.fill[GivenMemory::kAllocated];
    x_launch.step_limit = static_cast<std::uint64_t>(std::max<std::int64_t>(options.step_limit, 0));
  }

  void* place(const std::string&, void* host, std::size_t, std::size_t, bool,
              std::uint8_t) override {
    return host;
  }

  DeviceReport run(const Kernel& kernel, RunRequest request) override {
    const host::LaunchScope scope(x_launch);
    std::exception_ptr refused;
    try {
      call_kernel(kernel, request, "failed to launch");
    } catch (const Error&) {
      refused = std::current_exception();
    }
    // A finding says more than the status that follows from it.
    const host::LaunchReport& report = scope.report();
    if (!report.findings.empty()) {
      std::string text = kernel.spec() + " did not complete: " + report.findings.front().message;
      if (report.findings.size() > 1)
        text +=
            fmt::format(" ({} more findings of this kind or others.)", report.findings.size() - 1);
      if (report.findings.front().kind == host::LaunchFindingKind::kLeftOut)
        throw KernelLeftOut(text);
      throw KernelFault(text);
    }
    if (refused) std::rethrow_exception(refused);
    return {report.notes, report.launches};
  }

 private:
  host::LaunchOptions x_launch;
};

// A function of this program.
class Caller : public RunDevice {
 public:
  void* place(const std::string&, void* host, std::size_t, std::size_t, bool,
              std::uint8_t) override {
    return host;
  }

  DeviceReport run(const Kernel& kernel, RunRequest request) override {
    call_kernel(kernel, request, "failed");
    return {};
  }
};

}  // namespace

std::unique_ptr<RunDevice> make_run_device(const Kernel& kernel, const RunOptions& options) {
  const std::string_view backend = kernel.build().backend;
  if (backend == "host") return std::make_unique<HostDevice>(options);
  if (backend == "caller") return std::make_unique<Caller>();
  if (backend == "cuda") return cuda::make_gpu_device(kernel, options);
  throw Error(fmt::format("{} was built for backend {}, which this program does not know.",
                          kernel.spec(), backend));
}

}  // namespace attn_diag
