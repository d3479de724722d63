#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#define NUM_HEADS 8
#define NUM_KV_HEADS 2
#define HEAD_DIM 64
// q: [batch][seq][NUM_HEADS][HEAD_DIM]   k, v: [batch][seq][NUM_KV_HEADS][HEAD_DIM]
__global__ void gqa_attention(const half* q, const half* k, const half* v, half* o, int seq) {
  int t = blockIdx.x, h = blockIdx.y, b = blockIdx.z, kv_h = h / (NUM_HEADS / NUM_KV_HEADS),
      x = threadIdx.x;
  __shared__ float red[HEAD_DIM];
  float qx = __half2float(q[(((size_t)b * seq + t) * NUM_HEADS + h) * HEAD_DIM + x]);
  float m = -INFINITY, l = 0.f, acc = 0.f;
  for (int j = 0; j < seq; ++j) {
    const size_t kv = (((size_t)b * seq + j) * NUM_KV_HEADS + kv_h) * HEAD_DIM + x;
    red[x] = qx * __half2float(k[kv]);
    __syncthreads();
    for (int s = HEAD_DIM / 2; s > 0; s >>= 1) {
      if (x < s) red[x] += red[x + s];
      __syncthreads();
    }
    float s = red[0] * 0.125f;
    __syncthreads();
    float mn = fmaxf(m, s), a = expf(m - mn), p = expf(s - mn);
    acc = acc * a + p * __half2float(v[kv]);
    l = l * a + p;
    m = mn;
  }
  o[(((size_t)b * seq + t) * NUM_HEADS + h) * HEAD_DIM + x] = __float2half(acc / l);
}
void gqa_forward(const half* q, const half* k, const half* v, half* o, int batch, int seq,
                 cudaStream_t stream) {
  gqa_attention<<<dim3(seq, NUM_HEADS, batch), HEAD_DIM, 0, stream>>>(q, k, v, o, seq);
}
