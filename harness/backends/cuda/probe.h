// What the CUDA runtime says of this machine, and what follows from it.
#pragma once

#include <string>
#include <vector>

#include "attn_diag/harness/gpu.h"

namespace attn_diag::cuda {

enum class Trouble { kNone, kNotBuilt, kNoDriver, kOldDriver, kNoGpu, kOther };

struct Probe {
  Trouble trouble = Trouble::kNone;
  int runtime_version = 0, driver_version = 0;  // as CUDA counts: 13000 is 13.0; 0: none
  std::string error;                            // of kOther: the runtime's own words
  std::vector<Gpu> gpus;
};

// device.cc, device_absent.cc
Probe probe();

GpuState state_of(const Probe& probe, const std::string& driver_release);

// The release in the text of /proc/driver/nvidia/version; empty if there is none.
std::string driver_release_in(const std::string& proc_text);

}  // namespace attn_diag::cuda
