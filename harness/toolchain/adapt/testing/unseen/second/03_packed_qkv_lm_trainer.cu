// Causal self-attention of a small GPT trainer in plain CUDA.
//
//   qkv   [B, T, 3 * C]   rows of the fused projection: q | k | v, each C = n_head * hs
//   probs [B, n_head, T, T] kept for the backward pass
//   y     [B, T, C]
#include <cuda_runtime.h>
#include <cassert>
#include <cstddef>

static inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

// block: one query of one head. The row of scores stays in shared memory.
__global__ void causal_probs(float* probs, const float* qkv, int T, int C, int hs) {
  extern __shared__ float att[];  // T floats, then one per warp
  float* red = att + T;
  const int t = blockIdx.x, head = blockIdx.y, b = blockIdx.z;
  const int lane = threadIdx.x & 31, wid = threadIdx.x >> 5, nw = blockDim.x >> 5;
  const float* base = qkv + (size_t)b * T * 3 * C + head * hs;
  const float* q = base + (size_t)t * 3 * C;

  // scores: a warp at a time per key
  float wmax = -INFINITY;
  for (int s = wid; s <= t; s += nw) {
    const float* key = base + (size_t)s * 3 * C + C;
    float x = 0.f;
    for (int i = lane; i < hs; i += 32) x = fmaf(q[i], key[i], x);
    for (int o = 16; o > 0; o >>= 1) x += __shfl_down_sync(0xffffffffu, x, o);
    x = __shfl_sync(0xffffffffu, x, 0) / sqrtf((float)hs);
    if (lane == 0) att[s] = x;
    wmax = fmaxf(wmax, x);
  }
  if (lane == 0) red[wid] = wmax;
  __syncthreads();
  float top = red[0];
  for (int w = 1; w < nw; ++w) top = fmaxf(top, red[w]);
  __syncthreads();

  float part = 0.f;
  for (int s = threadIdx.x; s <= t; s += blockDim.x) {
    att[s] = expf(att[s] - top);
    part += att[s];
  }
  for (int o = 16; o > 0; o >>= 1) part += __shfl_xor_sync(0xffffffffu, part, o);
  if (lane == 0) red[wid] = part;
  __syncthreads();
  float total = 0.f;
  for (int w = 0; w < nw; ++w) total += red[w];

  float* row = probs + (((size_t)b * gridDim.y + head) * T + t) * T;
  for (int s = threadIdx.x; s < T; s += blockDim.x) row[s] = s <= t ? att[s] / total : 0.f;
}

__global__ void mix_values(float* y, const float* probs, const float* qkv, int B, int T, int C,
                           int n_head) {
  const int id = blockIdx.x * blockDim.x + threadIdx.x;  // (b, t, c)
  if (id >= B * T * C) return;
  const int c = id % C, t = id / C % T, b = id / C / T;
  const int head = c / (C / n_head);
  const float* row = probs + (((size_t)b * n_head + head) * T + t) * T;
  const float* v = qkv + (size_t)b * T * 3 * C + 2 * C + c;
  float acc = 0.f;
  for (int s = 0; s <= t; ++s) acc = fmaf(row[s], v[(size_t)s * 3 * C], acc);
  y[id] = acc;
}

void attention_layer_forward(float* y, float* probs, const float* qkv, int B, int T, int C,
                             int n_head) {
  assert(C % n_head == 0);
  const int threads = 128;
  causal_probs<<<dim3(T, n_head, B), threads, (T + threads / 32) * sizeof(float)>>>(probs, qkv, T,
                                                                                    C, C / n_head);
  mix_values<<<ceil_div(B * T * C, 256), 256>>>(y, probs, qkv, B, T, C, n_head);
}
