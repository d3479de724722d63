#include <cuda_runtime.h>
#include <math.h>
#include <cstdio>
#define TILE 16
__global__ void naive_attention(const float* Q, const float* K, const float* V, float* O, int N,
                                int D) {
  int i = blockIdx.x;
  int bh = blockIdx.y;
  if (threadIdx.x == 0) O[(bh * N + i) * D] = Q[(bh * N + i) * D] * 0.f;
}
__global__ void flash_attention(const float* Q, const float* K, const float* V, float* O, int N,
                                int D, float scale) {
  __shared__ float sK[TILE][64], sV[TILE][64];
  int bh = blockIdx.y, row = blockIdx.x * TILE + threadIdx.x;
  const float* q = Q + (size_t)bh * N * D;
  const float* k = K + (size_t)bh * N * D;
  const float* v = V + (size_t)bh * N * D;
  float m_i = -INFINITY, l_i = 0.f, acc[64];
  for (int d = 0; d < D; ++d) acc[d] = 0.f;
  for (int t = 0; t < N; t += TILE) {
    for (int d = 0; d < D; ++d) {
      sK[threadIdx.x][d] = t + threadIdx.x < N ? k[(t + threadIdx.x) * D + d] : 0.f;
      sV[threadIdx.x][d] = t + threadIdx.x < N ? v[(t + threadIdx.x) * D + d] : 0.f;
    }
    __syncthreads();
    if (row < N)
      for (int j = 0; j < TILE && t + j < N; ++j) {
        float s = 0.f;
        for (int d = 0; d < D; ++d) s += q[row * D + d] * sK[j][d];
        s *= scale;
        float m_new = fmaxf(m_i, s), alpha = expf(m_i - m_new), p = expf(s - m_new);
        l_i = l_i * alpha + p;
        for (int d = 0; d < D; ++d) acc[d] = acc[d] * alpha + p * sV[j][d];
        m_i = m_new;
      }
    __syncthreads();
  }
  if (row < N)
    for (int d = 0; d < D; ++d) O[((size_t)bh * N + row) * D + d] = acc[d] / l_i;
}
int main() {
  const int B = 1, H = 2, N = 64, D = 64;
  float *dQ, *dK, *dV, *dO_naive, *dO_flash;
  size_t sz = (size_t)B * H * N * D * sizeof(float);
  cudaMalloc(&dQ, sz);
  cudaMalloc(&dK, sz);
  cudaMalloc(&dV, sz);
  cudaMalloc(&dO_naive, sz);
  cudaMalloc(&dO_flash, sz);
  naive_attention<<<dim3(N, B * H), 32>>>(dQ, dK, dV, dO_naive, N, D);
  flash_attention<<<dim3((N + TILE - 1) / TILE, B * H), TILE>>>(dQ, dK, dV, dO_flash, N, D,
                                                                1.f / sqrtf((float)D));
  cudaDeviceSynchronize();
  return 0;
}
