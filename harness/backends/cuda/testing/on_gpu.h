// What the tests of backend cuda share. They run anywhere: where there is no GPU they say so and skip.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "attn_diag/harness/gpu.h"
#include "attn_diag/harness/kernel.h"
#include "harness/testing/catch_for_tests.h"

namespace attn_diag::testing {

// False, said aloud, where backend cuda cannot run.
inline bool gpu_is_here() {
  if (gpu_state().usable()) return true;
  WARN("SKIP: backend cuda cannot run here. " << gpu_state().why_not);
  return false;
}

// Kernels that have builds for both backends, faults left out.
inline std::vector<std::string> kernels_for_both() {
  std::vector<std::string> host, both;
  const std::vector<LibraryEntry> libraries = list_libraries();
  for (const LibraryEntry& e : libraries)
    if (e.backend == "host" && !e.lockstep && e.fault.empty()) host.push_back(e.file_stem);
  for (const LibraryEntry& e : libraries)
    if (e.backend == "cuda" && e.fault.empty() && std::count(host.begin(), host.end(), e.file_stem))
      both.push_back(e.file_stem);
  return both;
}

// A kernel of the library misbehaving.cu, which lies beside the kernels: ../lib/attn_diag/test_kernels.
inline std::string misbehaving(const std::string& kernel) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  return (program / "lib/attn_diag/test_kernels/misbehaving.cuda.so").string() + ":" + kernel;
}

}  // namespace attn_diag::testing
