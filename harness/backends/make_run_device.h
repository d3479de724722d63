// The device that a kernel runs on.
#pragma once

#include <memory>

#include "attn_diag/harness/options.h"
#include "harness/backends/run_device.h"

namespace attn_diag {

// The device of the kernel's backend. Throws Error where that cannot be had here.
std::unique_ptr<RunDevice> make_run_device(const Kernel& kernel, const RunOptions& options);

}  // namespace attn_diag
