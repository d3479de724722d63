#include <cuda_runtime.h>

// Q (M, d)  K (N, d)  V (N, d)  output (M, d), all on device
// one warp <-> one query, 8 queries per block, keys streamed through registers

constexpr int WARPS = 8;
constexpr int MAXD = 128;

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
  return x;
}

__global__ void attn(const float* __restrict__ Q, const float* __restrict__ K,
                     const float* __restrict__ V, float* __restrict__ out, int M, int N, int d) {
  const int w = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int i = blockIdx.x * WARPS + w;
  if (i >= M) return;

  float q[MAXD / 32], acc[MAXD / 32];
  const float scale = rsqrtf((float)d);
#pragma unroll
  for (int t = 0; t < MAXD / 32; ++t) {
    int c = lane + 32 * t;
    q[t] = c < d ? Q[(size_t)i * d + c] : 0.f;
    acc[t] = 0.f;
  }

  float mx = -INFINITY, den = 0.f;
  for (int j = 0; j < N; ++j) {
    float dot = 0.f;
#pragma unroll
    for (int t = 0; t < MAXD / 32; ++t) {
      int c = lane + 32 * t;
      if (c < d) dot += q[t] * K[(size_t)j * d + c];
    }
    dot = warp_sum(dot) * scale;

    float nm = fmaxf(mx, dot);
    float corr = expf(mx - nm);
    float p = expf(dot - nm);
    den = den * corr + p;
#pragma unroll
    for (int t = 0; t < MAXD / 32; ++t) {
      int c = lane + 32 * t;
      if (c < d) acc[t] = acc[t] * corr + p * V[(size_t)j * d + c];
    }
    mx = nm;
  }
  float inv = 1.f / den;
#pragma unroll
  for (int t = 0; t < MAXD / 32; ++t) {
    int c = lane + 32 * t;
    if (c < d) out[(size_t)i * d + c] = acc[t] * inv;
  }
}

extern "C" void solve(const float* Q, const float* K, const float* V, float* output, int M, int N,
                      int d) {
  attn<<<(M + WARPS - 1) / WARPS, WARPS * 32>>>(Q, K, V, output, M, N, d);
  cudaDeviceSynchronize();
}
