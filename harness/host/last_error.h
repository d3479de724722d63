// The calling thread's last CUDA error and what it was about.
#pragma once

#include <string>

#include "attn_diag_host/runtime_api.h"

namespace attn_diag::host {

// Returns the error.
cudaError_t set_last_error(cudaError_t error, std::string message);

}  // namespace attn_diag::host
