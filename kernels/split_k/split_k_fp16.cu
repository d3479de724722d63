#include "split_k/split_k_launch.cuh"

template attn_diag::Status attn_diag::run_split_k<__half>(const RunRequest& request);
