// Single token decoding with multi-query attention.
//   q:       [batch, n_heads, head_dim]
//   k_cache: [batch, seq_len, head_dim]   (one KV head shared by all)
//   v_cache: [batch, seq_len, head_dim]
//   out:     [batch, n_heads, head_dim]
#include <cuda_fp16.h>

constexpr int kThreads = 128;

__global__ void mqa_decode_kernel(const __half* q, const __half* k_cache, const __half* v_cache,
                                  __half* out, int n_heads, int seq_len, int head_dim,
                                  float scale) {
  extern __shared__ float logits[];
  __shared__ float red[kThreads / 32];
  const int h = blockIdx.x, b = blockIdx.y;
  const __half* qh = q + (b * n_heads + h) * head_dim;
  const __half* kb = k_cache + (size_t)b * seq_len * head_dim;
  const __half* vb = v_cache + (size_t)b * seq_len * head_dim;
  float local_max = -INFINITY;
  for (int t = threadIdx.x; t < seq_len; t += kThreads) {
    float s = 0.f;
    for (int d = 0; d < head_dim; ++d)
      s += __half2float(qh[d]) * __half2float(kb[(size_t)t * head_dim + d]);
    logits[t] = s * scale;
    local_max = fmaxf(local_max, logits[t]);
  }
  for (int o = 16; o; o >>= 1) local_max = fmaxf(local_max, __shfl_xor_sync(~0u, local_max, o));
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = local_max;
  __syncthreads();
  float mx = red[0];
  for (int w = 1; w < kThreads / 32; ++w) mx = fmaxf(mx, red[w]);
  __syncthreads();
  float local_sum = 0.f;
  for (int t = threadIdx.x; t < seq_len; t += kThreads) {
    logits[t] = __expf(logits[t] - mx);
    local_sum += logits[t];
  }
  for (int o = 16; o; o >>= 1) local_sum += __shfl_xor_sync(~0u, local_sum, o);
  if (threadIdx.x % 32 == 0) red[threadIdx.x / 32] = local_sum;
  __syncthreads();
  float sum = 0.f;
  for (int w = 0; w < kThreads / 32; ++w) sum += red[w];
  for (int d = threadIdx.x; d < head_dim; d += kThreads) {
    float acc = 0.f;
    for (int t = 0; t < seq_len; ++t) acc += logits[t] * __half2float(vb[(size_t)t * head_dim + d]);
    out[(b * n_heads + h) * head_dim + d] = __float2half(acc / sum);
  }
}

void mqa_decode(const __half* q, const __half* k_cache, const __half* v_cache, __half* out,
                int batch, int n_heads, int seq_len, int head_dim, cudaStream_t stream) {
  mqa_decode_kernel<<<dim3(n_heads, batch), kThreads, seq_len * sizeof(float), stream>>>(
      q, k_cache, v_cache, out, n_heads, seq_len, head_dim, rsqrtf((float)head_dim));
}
