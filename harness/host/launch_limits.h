// What a device could not launch.
#pragma once

#include <cstddef>
#include <string>

#include "attn_diag_host/launch.h"

namespace attn_diag::host {

// Shared memory that a block may have at most, static and dynamic, on this architecture (__CUDA_ARCH__).
std::size_t most_shared_of_block(int architecture);

// Why the device that the kernel was built for could not run this launch; empty if it could.
// `dynamic_limit`: bytes of dynamic shared memory that the kernel may use. Not to be called by two threads
// at once.
std::string impossible(const cudaLaunchConfig_t& config, const KernelCall& call,
                       std::size_t dynamic_limit);

}  // namespace attn_diag::host
