// The search path of kernels, for tests.
#pragma once

#include <cstdlib>
#include <string>

namespace attn_diag::testing {

// Sets ATTN_DIAG_KERNEL_PATH while it lives.
class KernelPath {
 public:
  explicit KernelPath(const std::string& path) { setenv("ATTN_DIAG_KERNEL_PATH", path.c_str(), 1); }
  ~KernelPath() { unsetenv("ATTN_DIAG_KERNEL_PATH"); }
  KernelPath(const KernelPath&) = delete;
  KernelPath& operator=(const KernelPath&) = delete;
};

}  // namespace attn_diag::testing
