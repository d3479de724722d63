#include "row.cuh"

constexpr int kBlockM = 32, kBlockN = 32, kThreads = 32;

__global__ void __launch_bounds__(kThreads)
    flash_kernel(const half* Q, const half* K, const half* V, half* O, float* L, int seq_len,
                 int head_dim, float scale) {
  const int m_block = blockIdx.x;
  const int bh = blockIdx.y;
  const int row = m_block * kBlockM + threadIdx.x;
  if (row >= seq_len) return;
  const long base = (long)bh * seq_len * head_dim;
  L[bh * seq_len + row] = attend_row(Q + base + row * head_dim, K + base, V + base,
                                     O + base + row * head_dim, seq_len, head_dim, head_dim, scale);
}
