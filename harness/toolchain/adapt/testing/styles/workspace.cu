#include "row.cuh"

__global__ void scores_kernel(const float* q, const float* k, float* s, int n, int d, float scale) {
  const int row = blockIdx.x, bh = blockIdx.y;
  for (int j = threadIdx.x; j < n; j += blockDim.x) {
    float dot = 0;
    for (int x = 0; x < d; ++x)
      dot += q[((long)bh * n + row) * d + x] * k[((long)bh * n + j) * d + x];
    s[((long)bh * n + row) * n + j] = dot * scale;
  }
}
__global__ void softmax_kernel(float* s, int n) {
  float* row = s + ((long)blockIdx.y * n + blockIdx.x) * n;
  if (threadIdx.x != 0) return;
  float m = -INFINITY, l = 0;
  for (int j = 0; j < n; ++j) m = fmaxf(m, row[j]);
  for (int j = 0; j < n; ++j) l += row[j] = expf(row[j] - m);
  for (int j = 0; j < n; ++j) row[j] /= l;
}
__global__ void pv_kernel(const float* s, const float* v, float* o, int n, int d) {
  const int row = blockIdx.x, bh = blockIdx.y;
  for (int x = threadIdx.x; x < d; x += blockDim.x) {
    float sum = 0;
    for (int j = 0; j < n; ++j)
      sum += s[((long)bh * n + row) * n + j] * v[((long)bh * n + j) * d + x];
    o[((long)bh * n + row) * d + x] = sum;
  }
}

void naive_attention(const float* q, const float* k, const float* v, float* scores, float* o,
                     int bh, int n, int d, float scale) {
  dim3 grid(n, bh);
  scores_kernel<<<grid, 32>>>(q, k, scores, n, d, scale);
  softmax_kernel<<<grid, 32>>>(scores, n);
  pv_kernel<<<grid, 32>>>(scores, v, o, n, d);
}
