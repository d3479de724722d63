// KV cache in bytes with a zero point, one pair of numbers for each KV head; grouped queries.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

__device__ __forceinline__ float dequant(uint8_t x, float scale, float zero) {
  return ((float)x - zero) * scale;
}

__global__ void gqa_u8(const half* q, const uint8_t* k, const uint8_t* v, const half* k_scale,
                       const half* k_zero, const half* v_scale, const half* v_zero, half* o,
                       int n_heads, int n_kv_heads, int seqlen, int head_dim, float scale) {
  const int t = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  const int kv_head = h / (n_heads / n_kv_heads);
  const float ks = __half2float(k_scale[kv_head]), kz = __half2float(k_zero[kv_head]);
  const float vs = __half2float(v_scale[kv_head]), vz = __half2float(v_zero[kv_head]);
  const half* qr = q + (((size_t)b * n_heads + h) * seqlen + t) * head_dim;
  const size_t kv = ((size_t)b * n_kv_heads + kv_head) * seqlen;
  extern __shared__ float p[];
  float mx = -INFINITY, sum = 0.f;
  for (int j = 0; j < seqlen; ++j) {
    float s = 0.f;
    for (int d = 0; d < head_dim; ++d)
      s += __half2float(qr[d]) * dequant(k[(kv + j) * head_dim + d], ks, kz);
    if (threadIdx.x == 0) p[j] = s * scale;
    mx = fmaxf(mx, s * scale);
  }
  __syncthreads();
  for (int j = 0; j < seqlen; ++j) sum += __expf(p[j] - mx);
  for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
    float acc = 0.f;
    for (int j = 0; j < seqlen; ++j)
      acc += __expf(p[j] - mx) * dequant(v[(kv + j) * head_dim + d], vs, vz);
    o[(((size_t)b * n_heads + h) * seqlen + t) * head_dim + d] = __float2half(acc / sum);
  }
}

void launch_gqa_u8(const half* q, const uint8_t* k, const uint8_t* v, const half* k_scale,
                   const half* k_zero, const half* v_scale, const half* v_zero, half* o, int batch,
                   int n_heads, int n_kv_heads, int seqlen, int head_dim, float scale) {
  gqa_u8<<<dim3(seqlen, n_heads, batch), 32, seqlen * sizeof(float)>>>(
      q, k, v, k_scale, k_zero, v_scale, v_zero, o, n_heads, n_kv_heads, seqlen, head_dim, scale);
}
