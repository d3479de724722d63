#include "attn_diag/harness/gpu.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "harness/backends/cuda/probe.h"

namespace attn_diag {
namespace cuda {
namespace {

std::string version_text(int version) {
  return version == 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string why_not(const Probe& p) {
  switch (p.trouble) {
    case Trouble::kNone:
      return "";
    case Trouble::kNotBuilt:
      return "Backend cuda is not built into this program: nvcc and the CUDA toolkit were not "
             "found "
             "when it was configured, or ATTN_DIAG_CUDA was OFF. Install the toolkit and build "
             "again "
             "with -DATTN_DIAG_CUDA=ON.";
    case Trouble::kNoDriver:
      return "There is no NVIDIA driver here (libcuda.so.1 was not found). Install it where there "
             "is "
             "a GPU; in a container, start it with access to the GPU.";
    case Trouble::kOldDriver:
      return fmt::format(
          "The NVIDIA driver is too old: it knows CUDA {} at most, and this program needs {}. "
          "Update "
          "the driver, or build attn-diag with a CUDA toolkit of version {}.",
          version_text(p.driver_version), version_text(p.runtime_version),
          version_text(p.driver_version));
    case Trouble::kNoGpu:
      return "The NVIDIA driver is here, but it shows no GPU. See nvidia-smi, and "
             "CUDA_VISIBLE_DEVICES "
             "if it is set.";
    case Trouble::kOther:
      return fmt::format("The CUDA runtime cannot be used: {}. See nvidia-smi.", p.error);
  }
  return "";
}

}  // namespace

GpuState state_of(const Probe& probe, const std::string& driver_release) {
  GpuState state;
  state.runtime = version_text(probe.runtime_version);
  state.driver_cuda = version_text(probe.driver_version);
  state.driver_release = driver_release;
  state.gpus = probe.gpus;
  state.why_not = why_not(probe);
  return state;
}

std::string driver_release_in(const std::string& proc_text) {
  std::istringstream words(proc_text.substr(0, proc_text.find('\n')));
  for (std::string word; words >> word;) {
    const bool release = word.find('.') != std::string::npos &&
                         word.find_first_not_of("0123456789.") == std::string::npos;
    if (release) return word;
  }
  return "";
}

}  // namespace cuda

namespace {

// 90 of "sm_90", "compute_90a"; 0 if it is neither.
int number_in(std::string_view architecture, std::string_view prefix) {
  if (architecture.substr(0, prefix.size()) != prefix) return 0;
  int number = 0;
  const std::string_view digits = architecture.substr(prefix.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

std::string text(const Gpu& gpu) {
  return fmt::format("{} (sm_{}{})", gpu.name, gpu.major, gpu.minor);
}

std::string GpuState::driver() const {
  if (driver_cuda.empty()) return "";
  return driver_release.empty() ? fmt::format("CUDA {}", driver_cuda)
                                : fmt::format("{} (CUDA {})", driver_release, driver_cuda);
}

const GpuState& gpu_state() {
  static const GpuState state = [] {
    std::ifstream file("/proc/driver/nvidia/version");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return cuda::state_of(cuda::probe(), cuda::driver_release_in(text));
  }();
  return state;
}

std::string why_not_on(const std::string& architectures, const Gpu& gpu) {
  const int device = gpu.major * 10 + gpu.minor;
  std::istringstream words(architectures);
  for (std::string word; words >> word;) {
    const int real = number_in(word, "sm_"), virtual_ = number_in(word, "compute_");
    const bool specific = word.back() == 'a' || word.back() == 'f';
    if (specific
            ? real == device || virtual_ == device
            : (real / 10 == gpu.major && real <= device) || (virtual_ > 0 && virtual_ <= device))
      return "";
  }
  return fmt::format(
      "It holds code for {}, and none of that runs on {}. Build it again with "
      "-DATTN_DIAG_CUDA_ARCHITECTURES={}.",
      architectures.empty() ? "no architecture" : architectures, text(gpu), device);
}

}  // namespace attn_diag
