#include "row.cuh"

__global__ void attention_kernel(const half* q, const half* k, const half* v, half* o, float* lse,
                                 int seqlen, int head_dim, float scale, bool causal) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x, bh = blockIdx.y;
  if (row >= seqlen) return;
  const long base = (long)bh * seqlen * head_dim;
  lse[bh * seqlen + row] =
      attend_row(q + base + row * head_dim, k + base, v + base, o + base + row * head_dim,
                 causal ? row + 1 : seqlen, head_dim, head_dim, scale);
}

void flash_attention_fwd(const half* q, const half* k, const half* v, half* o, float* softmax_lse,
                         int batch_size, int num_heads, int seqlen, int head_dim,
                         float softmax_scale, bool is_causal, cudaStream_t stream) {
  dim3 grid((seqlen + 63) / 64, batch_size * num_heads);
  attention_kernel<<<grid, 64, 0, stream>>>(q, k, v, o, softmax_lse, seqlen, head_dim,
                                            softmax_scale, is_causal);
}
