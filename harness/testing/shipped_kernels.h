// The kernels of kernels/, for tests of all of them.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "attn_diag/harness/kernel.h"

namespace attn_diag::testing {

// Throws where none is built: a test of no kernel would pass.
inline std::vector<std::string> shipped_kernels() {
  std::vector<std::string> names = kernels_built_for("host");
  if (names.empty())
    throw std::runtime_error("no kernel was found: is target shipped_kernels built?");
  return names;
}

}  // namespace attn_diag::testing
