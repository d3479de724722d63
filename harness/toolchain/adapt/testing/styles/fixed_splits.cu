#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define NUM_SPLITS 3

template <typename T>
__global__ void split_attn(const T* q, const T* k, const T* v, T* part, float2* ml, int S, int D,
                           float scale) {
  int i = blockIdx.x, sp = blockIdx.y, bh = blockIdx.z;
  int len = (S + NUM_SPLITS - 1) / NUM_SPLITS;
  int lo = sp * len, hi = min(S, lo + len);
  extern __shared__ float acc[];
  for (int d = threadIdx.x; d < D; d += 32) acc[d] = 0;
  float m = -INFINITY, l = 0;
  for (int j = lo; j < hi; j++) {
    float s = 0;
    for (int d = threadIdx.x; d < D; d += 32)
      s += float(q[(bh * S + i) * D + d]) * float(k[(bh * S + j) * D + d]);
    for (int w = 16; w; w >>= 1) s += __shfl_xor_sync(~0u, s, w);
    s *= scale;
    float mn = fmaxf(m, s), a = expf(m - mn), p = expf(s - mn);
    for (int d = threadIdx.x; d < D; d += 32)
      acc[d] = acc[d] * a + p * float(v[(bh * S + j) * D + d]);
    l = l * a + p;
    m = mn;
  }
  int at = (bh * S + i) * NUM_SPLITS + sp;
  for (int d = threadIdx.x; d < D; d += 32) part[at * D + d] = T(acc[d] / l);
  if (threadIdx.x == 0) ml[at] = make_float2(m, l);
}

template <typename T>
__global__ void reduce_attn(const T* part, const float2* ml, T* o, int D) {
  int row = blockIdx.x;
  float m = -INFINITY;
  for (int s = 0; s < NUM_SPLITS; s++) m = fmaxf(m, ml[row * NUM_SPLITS + s].x);
  float l = 0;
  for (int s = 0; s < NUM_SPLITS; s++)
    l += expf(ml[row * NUM_SPLITS + s].x - m) * ml[row * NUM_SPLITS + s].y;
  for (int d = threadIdx.x; d < D; d += blockDim.x) {
    float a = 0;
    for (int s = 0; s < NUM_SPLITS; s++) {
      float2 x = ml[row * NUM_SPLITS + s];
      a += expf(x.x - m) * x.y / l * float(part[(row * NUM_SPLITS + s) * D + d]);
    }
    o[row * D + d] = T(a);
  }
}

/// q,k,v,o: BHSD, half
void splitk_attention(const half* q, const half* k, const half* v, half* o, int B, int H, int S,
                      int D, float scale) {
  half* part;
  float2* ml;
  cudaMalloc(&part, sizeof(half) * B * H * S * NUM_SPLITS * D);
  cudaMalloc(&ml, sizeof(float2) * B * H * S * NUM_SPLITS);
  split_attn<half>
      <<<dim3(S, NUM_SPLITS, B * H), 32, D * sizeof(float)>>>(q, k, v, part, ml, S, D, scale);
  reduce_attn<half><<<B * H * S, 64>>>(part, ml, o, D);
  cudaFree(part);
  cudaFree(ml);
}
