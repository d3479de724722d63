// What all workers of one launch share, read-only.
#pragma once

#include <cstdint>
#include <string>

#include "attn_diag/harness/host/executor.h"
#include "attn_diag_host/launch.h"
#include "harness/host/kernel_library.h"

namespace attn_diag::host {

struct LaunchPlan {
  cudaLaunchConfig_t config;
  KernelCall call;
  KernelLibrary library;  // the shared object the kernel lies in
  Schedule schedule;
  std::uint64_t step_limit = 0;
  double silent_seconds = 0;
  std::uint64_t blocks = 0;
};

// A well-mixed 64-bit value (splitmix64's finaliser).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace attn_diag::host
