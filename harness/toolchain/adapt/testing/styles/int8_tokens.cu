// Decoding over an INT8 cache, as serving code has it: K and V are quantised per token and head.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

__global__ void decode_int8(const half* q, const int8_t* k_cache, const int8_t* v_cache,
                            const float* k_scales, const float* v_scales, half* out, int num_heads,
                            int seq_len, int head_dim, float sm_scale) {
  const int row = blockIdx.x, bh = blockIdx.y;
  const half* qr = q + ((size_t)bh * seq_len + row) * head_dim;
  const float* ks = k_scales + (size_t)bh * seq_len;
  extern __shared__ float acc[];
  float m = -INFINITY, l = 0.f;
  for (int d = threadIdx.x; d < head_dim; d += blockDim.x) acc[d] = 0.f;
  for (int j = 0; j < seq_len; ++j) {
    float s = 0.f;
    for (int d = 0; d < head_dim; ++d)
      s += __half2float(qr[d]) * k_cache[((size_t)bh * seq_len + j) * head_dim + d];
    s *= ks[j] * sm_scale;
    const float next = fmaxf(m, s), alpha = __expf(m - next), p = __expf(s - next);
    l = l * alpha + p;
    for (int d = threadIdx.x; d < head_dim; d += blockDim.x)
      acc[d] = acc[d] * alpha + p * v_scales[(size_t)bh * seq_len + j] *
                                    v_cache[((size_t)bh * seq_len + j) * head_dim + d];
    m = next;
  }
  for (int d = threadIdx.x; d < head_dim; d += blockDim.x)
    out[((size_t)bh * seq_len + row) * head_dim + d] = __float2half(acc[d] / l);
}

void decode_attention_int8(const half* q, const int8_t* k_cache, const int8_t* v_cache,
                           const float* k_scales, const float* v_scales, half* out, int batch,
                           int num_heads, int seq_len, int head_dim, float sm_scale,
                           cudaStream_t stream) {
  decode_int8<<<dim3(seq_len, batch * num_heads), 32, head_dim * sizeof(float), stream>>>(
      q, k_cache, v_cache, k_scales, v_scales, out, num_heads, seq_len, head_dim, sm_scale);
}
