// Running a kernel on the GPU: everything it is given is mirrored in device memory.
#pragma once

#include <memory>
#include <string>

#include "attn_diag/harness/options.h"
#include "harness/backends/run_device.h"

namespace attn_diag::cuda {

// Throws Error where the kernel's library cannot run on a GPU of this machine, and for options that
// the host executor alone has.
std::unique_ptr<RunDevice> make_gpu_device(const Kernel& kernel, const RunOptions& options);

// Throws Error if the GPU has less than `needed` bytes of memory free.
void check_device_memory(double needed);
// What it says; empty if the `free` bytes of a GPU with `memory` bytes are enough.
std::string why_too_large(double needed, double free, double memory);

// What runs on a GPU cannot show; one line for every report.
const char* limits_in_one_line();

}  // namespace attn_diag::cuda
