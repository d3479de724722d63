// Always compiled with debug information, so that a debugger can print these in a release build.
#include "attn_diag_host/indices.h"

constinit thread_local attn_diag::host::ThreadIndex threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};
