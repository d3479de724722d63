#include "fused_wmma/fused_wmma_launch.cuh"

template attn_diag::Status attn_diag::run_fused_wmma<__nv_bfloat16>(const RunRequest& request);
