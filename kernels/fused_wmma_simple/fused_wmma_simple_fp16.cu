#include "fused_wmma_simple/fused_wmma_simple_launch.cuh"

template attn_diag::Status attn_diag::run_fused_wmma_simple<__half>(const RunRequest& request);
