#include <cuda_runtime.h>
#include <cmath>
#include <cstdlib>
#define Br 16
#define Bc 16
__global__ void fa(const float* Q, const float* K, const float* V, float* O, int N, int d,
                   float scale) {
  int row = blockIdx.x * Br + threadIdx.x;
  if (row >= N) return;
  float m = -INFINITY, l = 0;
  for (int x = 0; x < d; ++x) O[row * d + x] = 0;
  for (int t = 0; t < (N + Bc - 1) / Bc; ++t) {
    for (int jj = 0; jj < Bc && t * Bc + jj < N; ++jj) {
      int j = t * Bc + jj;
      float s = 0;
      for (int x = 0; x < d; ++x) s += Q[row * d + x] * K[j * d + x];
      float sc = s * scale, mn = fmaxf(m, sc), a = expf(m - mn), p = expf(sc - mn);
      for (int x = 0; x < d; ++x) O[row * d + x] = O[row * d + x] * a + p * V[j * d + x];
      l = l * a + p;
      m = mn;
    }
  }
  for (int x = 0; x < d; ++x) O[row * d + x] /= l;
}
int main(int argc, char** argv) {
  int batch = 2, heads = 2, N = 48, d = 32;
  if (argc > 1) N = atoi(argv[1]);
  size_t head_elems = (size_t)N * d, total = (size_t)batch * heads * head_elems;
  float *Q, *K, *V, *O;
  cudaMalloc(&Q, total * 4);
  cudaMalloc(&K, total * 4);
  cudaMalloc(&V, total * 4);
  cudaMalloc(&O, total * 4);
  float scale = 1.0f / std::sqrt((float)d);
  for (int bh = 0; bh < batch * heads; ++bh) {
    size_t off = bh * head_elems;
    fa<<<(N + Br - 1) / Br, Br>>>(Q + off, K + off, V + off, O + off, N, d, scale);
  }
  cudaDeviceSynchronize();
  return 0;
}
