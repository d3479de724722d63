// The calling thread's last CUDA error and what it was about.
#pragma once

#include <string>

#include "attn_diag_host/runtime_errors.h"

namespace attn_diag::host {

// Both return the error. `message` is complete.
cudaError_t set_last_error(cudaError_t error, std::string message);
// "invalid argument: cudaFree: why".
cudaError_t refuse(cudaError_t error, const char* call, const std::string& why);

}  // namespace attn_diag::host
