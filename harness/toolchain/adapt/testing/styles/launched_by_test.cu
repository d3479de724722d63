#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <cstdio>
#include <vector>
// causal attention, one warp per query row
template <int HEAD_DIM>
__global__ void warp_attention(const half* q, const half* k, const half* v, half* out, int seqlen,
                               float sm_scale) {
  const int warp = threadIdx.y, lane = threadIdx.x;
  const int row = blockIdx.x * blockDim.y + warp;
  const int bh = blockIdx.y;
  if (row >= seqlen) return;
  constexpr int PER = HEAD_DIM / 32;
  float acc[PER], qr[PER];
  const size_t base = (size_t)bh * seqlen * HEAD_DIM;
  for (int i = 0; i < PER; ++i) {
    acc[i] = 0.f;
    qr[i] = __half2float(q[base + row * HEAD_DIM + lane + 32 * i]);
  }
  float m = -INFINITY, l = 0.f;
  for (int j = 0; j <= row; ++j) {
    float s = 0.f;
    for (int i = 0; i < PER; ++i) s += qr[i] * __half2float(k[base + j * HEAD_DIM + lane + 32 * i]);
    for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
    s *= sm_scale;
    float mn = fmaxf(m, s), a = __expf(m - mn), p = __expf(s - mn);
    for (int i = 0; i < PER; ++i)
      acc[i] = acc[i] * a + p * __half2float(v[base + j * HEAD_DIM + lane + 32 * i]);
    l = l * a + p;
    m = mn;
  }
  for (int i = 0; i < PER; ++i)
    out[base + row * HEAD_DIM + lane + 32 * i] = __float2half(acc[i] / l);
}
static bool test_warp_attention(int batch, int heads, int seqlen) {
  constexpr int D = 64;
  const size_t count = (size_t)batch * heads * seqlen * D;
  half *q, *k, *v, *out;
  cudaMalloc(&q, count * sizeof(half));
  cudaMalloc(&k, count * sizeof(half));
  cudaMalloc(&v, count * sizeof(half));
  cudaMalloc(&out, count * sizeof(half));
  const int warps = 4;
  dim3 block(32, warps);
  dim3 grid((seqlen + warps - 1) / warps, batch * heads);
  warp_attention<D><<<grid, block>>>(q, k, v, out, seqlen, 1.0f / sqrtf(float(D)));
  return cudaDeviceSynchronize() == cudaSuccess;
}
int main() { return test_warp_attention(1, 2, 77) ? 0 : 1; }
