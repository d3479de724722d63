#include "fa1/fa1_launch.cuh"

template attn_diag::Status attn_diag::run_fa1<__nv_bfloat16>(const RunRequest& request);
