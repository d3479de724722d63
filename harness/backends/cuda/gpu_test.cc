// What is said of GPUs, with and without one: no GPU is needed here.
#include "attn_diag/harness/gpu.h"

#include <string>

#include "attn_diag/harness/error.h"
#include "harness/backends/cuda/device.h"
#include "harness/backends/cuda/probe.h"
#include "harness/backends/cuda/run_on_gpu.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag {
namespace {

cuda::Probe with(cuda::Trouble trouble) {
  cuda::Probe probe;
  probe.trouble = trouble;
  probe.runtime_version = 13000;
  return probe;
}

Gpu gpu(int major, int minor) {
  Gpu g;
  g.name = "Test GPU";
  g.major = major;
  g.minor = minor;
  return g;
}

}  // namespace

TEST_CASE("whatever keeps backend cuda from running is said with what to do") {
  CHECK_THAT(state_of(with(cuda::Trouble::kNotBuilt), "").why_not, contains("-DATTN_DIAG_CUDA=ON"));
  CHECK_THAT(state_of(with(cuda::Trouble::kNoDriver), "").why_not, contains("no NVIDIA driver"));
  CHECK_THAT(state_of(with(cuda::Trouble::kNoGpu), "").why_not, contains("CUDA_VISIBLE_DEVICES"));
  cuda::Probe old = with(cuda::Trouble::kOldDriver);
  old.driver_version = 12040;
  const GpuState state = state_of(old, "550.54.15");
  CHECK_THAT(state.why_not, contains("knows CUDA 12.4 at most, and this program needs 13.0"));
  CHECK(state.driver() == "550.54.15 (CUDA 12.4)");
  cuda::Probe other = with(cuda::Trouble::kOther);
  other.error = "system not yet initialized (cudaErrorSystemNotReady)";
  CHECK_THAT(state_of(other, "").why_not, contains("system not yet initialized"));
  CHECK_FALSE(state_of(other, "").usable());
}

TEST_CASE("a GPU and a driver that fit are usable") {
  cuda::Probe probe = with(cuda::Trouble::kNone);
  probe.driver_version = 13010;
  probe.gpus = {gpu(9, 0)};
  const GpuState state = state_of(probe, "");
  CHECK(state.usable());
  CHECK(state.runtime == "13.0");
  CHECK(state.driver() == "CUDA 13.1");
  CHECK(text(state.gpus.front()) == "Test GPU (sm_90)");
}

TEST_CASE("the driver's release is the first version number in its own words") {
  CHECK(
      cuda::driver_release_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar "
                              "5\nGCC version:  gcc version 12.2.0\n") == "550.54.15");
  CHECK(
      cuda::driver_release_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  "
                              "Release Build\n") == "580.95.05");
  CHECK(cuda::driver_release_in("").empty());
}

TEST_CASE("code runs on devices of its major version, PTX on newer ones too") {
  CHECK(why_not_on("sm_80 sm_90 compute_90", gpu(9, 0)).empty());
  CHECK(why_not_on("sm_80", gpu(8, 9)).empty());
  CHECK(why_not_on("sm_80 compute_90", gpu(12, 0)).empty());
  CHECK(why_not_on("sm_90a", gpu(9, 0)).empty());
  CHECK_FALSE(why_not_on("sm_86", gpu(8, 0)).empty());
  CHECK_FALSE(why_not_on("sm_80", gpu(9, 0)).empty());
  CHECK_FALSE(why_not_on("sm_90 compute_90", gpu(8, 0)).empty());
  CHECK_FALSE(why_not_on("compute_90a", gpu(10, 0)).empty());
  CHECK_FALSE(why_not_on("", gpu(9, 0)).empty());
  CHECK_THAT(why_not_on("sm_90", gpu(7, 5)),
             contains("holds code for sm_90, and none of that runs on Test GPU (sm_75)"));
  CHECK_THAT(why_not_on("sm_90", gpu(7, 5)), contains("-DATTN_DIAG_CUDA_ARCHITECTURES=75"));
}

TEST_CASE("a run that is too large for the GPU's memory is refused with both sizes") {
  constexpr double kGiB = 1 << 30;
  CHECK(cuda::why_too_large(2 * kGiB, 2 * kGiB, 80 * kGiB).empty());
  const std::string why = cuda::why_too_large(79 * kGiB, 78.5 * kGiB, 80 * kGiB);
  CHECK_THAT(why, contains("needs 79.0 GiB of GPU memory, but only 78.5 GiB of 80.0 GiB are free"));
  CHECK_THAT(why, contains("--query"));
}

TEST_CASE("the state of this machine's GPUs is one or the other, and calls agree with it") {
  const GpuState& state = gpu_state();
  if (state.usable()) {
    CHECK_FALSE(state.gpus.empty());
    CHECK(cuda::free_memory() > 0);
  } else {
    CHECK_THROWS_AS(cuda::DeviceMemory(256), Error);
    CHECK_THROWS_AS(cuda::free_memory(), Error);
  }
  CHECK(cuda::lost_by().empty());
}

}  // namespace attn_diag
