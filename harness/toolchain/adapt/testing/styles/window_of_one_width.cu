#include <cuda_bf16.h>
typedef __nv_bfloat16 bf16_t;

// Sliding window attention as in Mistral: query i attends to keys i-window+1 .. i.
// layout: (batch, n_heads, seq_len, head_dim)
__global__ void swa_kernel(bf16_t* out, const bf16_t* q, const bf16_t* k, const bf16_t* v,
                           int n_heads, int n_kv_heads, int seq_len, int head_dim, int window,
                           float scale) {
  const int i = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  const int kvh = h / (n_heads / n_kv_heads);
  const bf16_t* qi = q + (((size_t)b * n_heads + h) * seq_len + i) * head_dim;
  const bf16_t* kh = k + ((size_t)b * n_kv_heads + kvh) * seq_len * head_dim;
  const bf16_t* vh = v + ((size_t)b * n_kv_heads + kvh) * seq_len * head_dim;
  extern __shared__ float acc[];
  for (int d = threadIdx.x; d < head_dim; d += 32) acc[d] = 0.f;
  float m = -INFINITY, l = 0.f;
  for (int j = max(0, i - window + 1); j <= i; ++j) {
    float s = 0.f;
    for (int d = threadIdx.x; d < head_dim; d += 32)
      s += __bfloat162float(qi[d]) * __bfloat162float(kh[(size_t)j * head_dim + d]);
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
    s *= scale;
    const float mn = fmaxf(m, s), a = __expf(m - mn), p = __expf(s - mn);
    l = l * a + p;
    for (int d = threadIdx.x; d < head_dim; d += 32)
      acc[d] = acc[d] * a + p * __bfloat162float(vh[(size_t)j * head_dim + d]);
    m = mn;
  }
  for (int d = threadIdx.x; d < head_dim; d += 32)
    out[(((size_t)b * n_heads + h) * seq_len + i) * head_dim + d] = __float2bfloat16(acc[d] / l);
}

void sliding_window_attention(bf16_t* out, const bf16_t* q, const bf16_t* k, const bf16_t* v,
                              int batch, int n_heads, int n_kv_heads, int seq_len, int head_dim,
                              int window, float scale, cudaStream_t stream) {
  swa_kernel<<<dim3(seq_len, n_heads, batch), 32, head_dim * sizeof(float), stream>>>(
      out, q, k, v, n_heads, n_kv_heads, seq_len, head_dim, window, scale);
}
