#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Variable length batches packed along tokens: q, k, v, o are [total_tokens, num_heads, head_dim];
// sequence b is tokens cu_seqlens[b] .. cu_seqlens[b + 1].
__global__ void varlen_attention_kernel(const half* q, const half* k, const half* v, half* o,
                                        const int* cu_seqlens, int num_heads, int head_dim,
                                        float softmax_scale, bool causal) {
  const int b = blockIdx.z, h = blockIdx.y;
  const int first = cu_seqlens[b], len = cu_seqlens[b + 1] - first;
  const int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= len) return;
  const int row = num_heads * head_dim;
  const half* qi = q + (size_t)(first + i) * row + h * head_dim;
  const int keys = causal ? i + 1 : len;
  float m = -INFINITY, l = 0.f, acc[8] = {};
  for (int j = 0; j < keys; ++j) {
    const half* kj = k + (size_t)(first + j) * row + h * head_dim;
    const half* vj = v + (size_t)(first + j) * row + h * head_dim;
    float s = 0.f;
    for (int d = threadIdx.x; d < head_dim; d += 32) s += __half2float(qi[d]) * __half2float(kj[d]);
    for (int w = 16; w; w >>= 1) s += __shfl_xor_sync(0xffffffffu, s, w);
    s *= softmax_scale;
    const float mn = fmaxf(m, s), a = __expf(m - mn), p = __expf(s - mn);
    for (int d = threadIdx.x, c = 0; d < head_dim; d += 32, ++c)
      acc[c] = acc[c] * a + p * __half2float(vj[d]);
    l = l * a + p;
    m = mn;
  }
  for (int d = threadIdx.x, c = 0; d < head_dim; d += 32, ++c)
    o[(size_t)(first + i) * row + h * head_dim + d] = __float2half(acc[c] / l);
}

void varlen_attention(const half* q, const half* k, const half* v, half* o, const int* cu_seqlens,
                      int batch_size, int max_seqlen, int num_heads, int head_dim,
                      float softmax_scale, bool causal, cudaStream_t stream) {
  dim3 grid((max_seqlen + 3) / 4, num_heads, batch_size), block(32, 4);
  varlen_attention_kernel<<<grid, block, 0, stream>>>(q, k, v, o, cu_seqlens, num_heads, head_dim,
                                                      softmax_scale, causal);
}
