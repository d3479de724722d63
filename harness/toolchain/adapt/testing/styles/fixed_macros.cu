#include <cuda_runtime.h>
#include <math.h>
#include <cstdio>
#include <vector>
#define N 96
#define D 32
__global__ void flash(const float* Q, const float* K, const float* V, float* O) {
  int tid = threadIdx.x;
  __shared__ float Ks[32 * D];
  __shared__ float Vs[32 * D];
  int row = blockIdx.x * 32 + tid;
  float q[D], o[D];
  for (int i = 0; i < D; i++) {
    q[i] = Q[row * D + i];
    o[i] = 0.f;
  }
  float m = -INFINITY, l = 0.f;
  for (int t = 0; t < N / 32; t++) {
    for (int i = 0; i < D; i++) {
      Ks[tid * D + i] = K[(t * 32 + tid) * D + i];
      Vs[tid * D + i] = V[(t * 32 + tid) * D + i];
    }
    __syncthreads();
    for (int j = 0; j < 32; j++) {
      float s = 0.f;
      for (int i = 0; i < D; i++) s += q[i] * Ks[j * D + i];
      s /= sqrtf((float)D);
      float mn = fmaxf(m, s);
      float a = __expf(m - mn), p = __expf(s - mn);
      for (int i = 0; i < D; i++) o[i] = o[i] * a + p * Vs[j * D + i];
      l = l * a + p;
      m = mn;
    }
    __syncthreads();
  }
  for (int i = 0; i < D; i++) O[row * D + i] = o[i] / l;
}
int main() {
  size_t bytes = N * D * sizeof(float);
  std::vector<float> hq(N * D, 1.f);
  float *dQ, *dK, *dV, *dO;
  cudaMalloc(&dQ, bytes);
  cudaMalloc(&dK, bytes);
  cudaMalloc(&dV, bytes);
  cudaMalloc(&dO, bytes);
  cudaMemcpy(dQ, hq.data(), bytes, cudaMemcpyHostToDevice);
  flash<<<N / 32, 32>>>(dQ, dK, dV, dO);
  cudaDeviceSynchronize();
  printf("ok\n");
  return 0;
}
