#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
static inline size_t idx(int b, int s, int h, int d, int S, int H, int D) {
  return (((size_t)b * S + s) * H + h) * D + d;
}
static void cpu_attention(const float* q, const float* k, const float* v, float* o, int B, int S,
                          int H, int D) {
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < S; ++i) {
        std::vector<float> p(S);
        float m = -1e30f, l = 0;
        for (int j = 0; j < S; ++j) {
          float s = 0;
          for (int d = 0; d < D; ++d)
            s += q[idx(b, i, h, d, S, H, D)] * k[idx(b, j, h, d, S, H, D)];
          p[j] = s / std::sqrt((float)D);
          m = std::max(m, p[j]);
        }
        for (int j = 0; j < S; ++j) {
          p[j] = std::exp(p[j] - m);
          l += p[j];
        }
        for (int d = 0; d < D; ++d) {
          float a = 0;
          for (int j = 0; j < S; ++j) a += p[j] * v[idx(b, j, h, d, S, H, D)];
          o[idx(b, i, h, d, S, H, D)] = a / l;
        }
      }
}
__global__ void mha_kernel(const float* __restrict__ q, const float* __restrict__ k,
                           const float* __restrict__ v, float* __restrict__ o, int S, int H,
                           int D) {
  int h = blockIdx.y, b = blockIdx.z;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= S) return;
  const int rs = H * D;
  const float* qh = q + ((size_t)b * S * H + h) * D;
  const float* kh = k + ((size_t)b * S * H + h) * D;
  const float* vh = v + ((size_t)b * S * H + h) * D;
  float* oh = o + ((size_t)b * S * H + h) * D;
  float scale = rsqrtf((float)D), m = -INFINITY, l = 0;
  for (int j = 0; j < S; ++j) {
    float s = 0;
    for (int d = 0; d < D; ++d) s += qh[(size_t)i * rs + d] * kh[(size_t)j * rs + d];
    m = fmaxf(m, s * scale);
  }
  for (int d = 0; d < D; ++d) {
    float a = 0;
    l = 0;
    for (int j = 0; j < S; ++j) {
      float s = 0;
      for (int e = 0; e < D; ++e) s += qh[(size_t)i * rs + e] * kh[(size_t)j * rs + e];
      float p = expf(s * scale - m);
      l += p;
      a += p * vh[(size_t)j * rs + d];
    }
    oh[(size_t)i * rs + d] = a / l;
  }
}
int main() {
  const int B = 1, S = 64, H = 4, D = 32;
  size_t n = (size_t)B * S * H * D;
  std::vector<float> hq(n), hk(n), hv(n), ho(n), ref(n);
  for (size_t i = 0; i < n; ++i) {
    hq[i] = rand() / (float)RAND_MAX;
    hk[i] = rand() / (float)RAND_MAX;
    hv[i] = rand() / (float)RAND_MAX;
  }
  float *d_q, *d_k, *d_v, *d_o;
  cudaMalloc(&d_q, n * 4);
  cudaMalloc(&d_k, n * 4);
  cudaMalloc(&d_v, n * 4);
  cudaMalloc(&d_o, n * 4);
  cudaMemcpy(d_q, hq.data(), n * 4, cudaMemcpyHostToDevice);
  dim3 block(32);
  dim3 grid((S + 31) / 32, H, B);
  mha_kernel<<<grid, block>>>(d_q, d_k, d_v, d_o, S, H, D);
  cudaDeviceSynchronize();
  cpu_attention(hq.data(), hk.data(), hv.data(), ref.data(), B, S, H, D);
  return 0;
}
