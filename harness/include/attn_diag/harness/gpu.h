// GPUs: whether backend cuda can run here, and if not, why and what to do about it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace attn_diag {

struct Gpu {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  std::size_t memory = 0;    // bytes
  int multiprocessors = 0;
  std::size_t shared_memory = 0;  // bytes that one block may ask for
};
// "NVIDIA H200 (sm_90)"
std::string text(const Gpu& gpu);

struct GpuState {
  std::string
      runtime;  // version of the CUDA runtime built into this program, "13.0"; empty: none is
  std::string driver_cuda;     // newest CUDA version that the driver knows; empty: no driver
  std::string driver_release;  // "580.82.07"; empty if it cannot be found out
  std::vector<Gpu> gpus;       // as CUDA orders them; the first is the one that is used
  std::string why_not;  // empty: kernels can be run on the first GPU. Else complete sentences

  bool usable() const { return why_not.empty(); }
  // "580.82.07 (CUDA 13.0)"; empty without a driver.
  std::string driver() const;
};

// Asked of the driver once per process. Never throws.
const GpuState& gpu_state();

// Why a library that holds code for `architectures` (BuildInfo::architectures) does not run on a GPU
// and what to do, in complete sentences; empty if it runs. sm_XY runs on devices of the same major
// and at least that minor compute capability, compute_XY (PTX) on any that is at least X.Y.
std::string why_not_on(const std::string& architectures, const Gpu& gpu);

}  // namespace attn_diag
