#include "harness/backends/cuda/run_on_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "attn_diag/harness/error.h"
#include "attn_diag/harness/gpu.h"
#include "harness/backends/cuda/device.h"
#include "harness/base/memory.h"

namespace attn_diag::cuda {
namespace {

std::size_t round_up(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// One buffer of the harness in device memory, between zones that must stay untouched.
struct Mirror {
  std::string what;
  std::byte* host;
  std::size_t bytes, guard;
  bool written;
  std::uint8_t around;
  DeviceMemory memory;

  std::size_t end() const { return guard + bytes; }
};

class GpuDevice : public RunDevice {
 public:
  void* place(const std::string& what, void* host, std::size_t bytes, std::size_t guard,
              bool written, std::uint8_t around) override {
    if (bytes == 0) return nullptr;
    const std::size_t zone = round_up(std::max<std::size_t>(guard, 1));
    x_mirrors.push_back({what, static_cast<std::byte*>(host), bytes, zone, written, around,
                         DeviceMemory(bytes + 2 * zone)});
    Mirror& m = x_mirrors.back();
    m.memory.fill(around, 0, zone);
    m.memory.upload(host, zone, bytes);
    m.memory.fill(around, m.end(), m.memory.size() - m.end());
    return m.memory.data() + zone;
  }

  DeviceReport run(const Kernel& kernel, RunRequest request) override {
    const std::string failed = fmt::format("did not complete (gate {}, on {})", name(request.gate),
                                           text(gpu_state().gpus.front()));
    request.synchronize = true;
    std::string refused;
    try {
      call_kernel(kernel, request, failed);
    } catch (const Error& e) {
      refused = e.what();
    }
    finish(kernel.spec() + " " + failed, refused);
    for (Mirror& m : x_mirrors) check_guards(kernel, m);
    for (Mirror& m : x_mirrors)
      if (m.written) m.memory.download(m.host, m.guard, m.bytes);
    return {};
  }

 private:
  // Waits for everything the kernel launched. Where a launch ended in an error, the kernel's own words
  // for it are the better ones: they name the launch.
  static void finish(const std::string& failed, const std::string& refused) {
    try {
      synchronize(failed);
    } catch (const Error& e) {
      throw Error((refused.empty() ? std::string(e.what()) : refused) +
                  " Nothing more can run on the GPU in this process. compute-sanitizer shows the "
                  "instruction; --backend host runs the same case where a debugger can look.");
    }
    if (!refused.empty())
      throw Error(
          fmt::format("{} This GPU gives a block up to {} of shared memory.", refused,
                      readable_bytes(static_cast<double>(gpu_state().gpus.front().shared_memory))));
  }

  static void check_guards(const Kernel& kernel, const Mirror& m) {
    std::vector<std::uint8_t> zone(m.guard);
    for (const std::size_t begin : {std::size_t{0}, m.end()}) {
      m.memory.download(zone.data(), begin, zone.size());
      const auto changed =
          std::find_if(zone.begin(), zone.end(), [&](std::uint8_t b) { return b != m.around; });
      if (changed == zone.end()) continue;
      throw_wrote_outside(kernel, m.what,
                          static_cast<std::ptrdiff_t>(begin) + (changed - zone.begin()) -
                              static_cast<std::ptrdiff_t>(m.guard),
                          m.bytes);
    }
  }

  std::vector<Mirror> x_mirrors;
};

}  // namespace

std::unique_ptr<RunDevice> make_gpu_device(const Kernel& kernel, const RunOptions& options) {
  const GpuState& state = gpu_state();
  if (!state.usable()) throw Error("Backend cuda cannot run here. " + state.why_not);
  if (options.schedule != "forward")
    throw Error(fmt::format(
        "Schedule {} is one of the host executor: a GPU orders its threads itself. Use --backend "
        "host.",
        options.schedule));
  if (options.mma_order != 0 || options.async_copies != "late")
    throw Error(
        "The order of matrix products and when asynchronous copies land can be chosen on the host "
        "executor only. Use --backend host.");
  const std::string why = why_not_on(kernel.build().architectures, state.gpus.front());
  if (!why.empty())
    throw Error(
        fmt::format("{} ({}) cannot run here. {}", kernel.spec(), kernel.library_path(), why));
  return std::make_unique<GpuDevice>();
}

void check_device_memory(double needed) {
  const std::string why = why_too_large(needed, static_cast<double>(free_memory()),
                                        static_cast<double>(gpu_state().gpus.front().memory));
  if (!why.empty()) throw Error(why);
}

std::string why_too_large(double needed, double free, double memory) {
  if (needed <= free) return "";
  return fmt::format(
      "The run needs {} of GPU memory, but only {} of {} are free. Record fewer rows "
      "(--batch-index, "
      "--head, --query) or fewer stages (--stage), choose a smaller problem (--batch, --heads, "
      "--seqlen), or end what else uses the GPU (nvidia-smi).",
      readable_bytes(needed), readable_bytes(free), readable_bytes(memory));
}

const char* limits_in_one_line() {
  return "Backend cuda shows what this GPU did in two runs: a race that comes out alike in both, "
         "other "
         "devices and other timings are not seen, nor reads outside the buffers that do no harm.";
}

}  // namespace attn_diag::cuda
