#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

void flash_fwd(const half* q, const half* k, const half* v, half* o, float* lse, int batch,
               int heads, int seqlen, int head_dim, float scale, bool causal, cudaStream_t stream);
