#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <math.h>
// decode step over a contiguous cache: q (n_heads, d), k and v (n_kv_heads, kv_len, d)
__global__ void decode(const __nv_bfloat16* q, const __nv_bfloat16* k_cache,
                       const __nv_bfloat16* v_cache, __nv_bfloat16* out, int n_heads,
                       int n_kv_heads, int q_len, int kv_len, int d, float scale) {
  int h = blockIdx.x, i = blockIdx.y;
  int hk = h / (n_heads / n_kv_heads);
  extern __shared__ float s_score[];
  const __nv_bfloat16* qr = q + ((size_t)h * q_len + i) * d;
  const __nv_bfloat16* kr = k_cache + (size_t)hk * kv_len * d;
  const __nv_bfloat16* vr = v_cache + (size_t)hk * kv_len * d;
  for (int j = threadIdx.x; j < kv_len; j += blockDim.x) {
    float s = 0;
    for (int x = 0; x < d; ++x)
      s += __bfloat162float(qr[x]) * __bfloat162float(kr[(size_t)j * d + x]);
    s_score[j] = s * scale;
  }
  __syncthreads();
  float m = -INFINITY, l = 0;
  for (int j = 0; j < kv_len; ++j) m = fmaxf(m, s_score[j]);
  for (int j = 0; j < kv_len; ++j) l += expf(s_score[j] - m);
  for (int x = threadIdx.x; x < d; x += blockDim.x) {
    float a = 0;
    for (int j = 0; j < kv_len; ++j)
      a += expf(s_score[j] - m) * __bfloat162float(vr[(size_t)j * d + x]);
    out[((size_t)h * q_len + i) * d + x] = __float2bfloat16(a / l);
  }
}
void launch_decode(const __nv_bfloat16* q, const __nv_bfloat16* k_cache,
                   const __nv_bfloat16* v_cache, __nv_bfloat16* out, int n_heads, int n_kv_heads,
                   int q_len, int kv_len, int d, float scale) {
  decode<<<dim3(n_heads, q_len), 64, kv_len * sizeof(float)>>>(q, k_cache, v_cache, out, n_heads,
                                                               n_kv_heads, q_len, kv_len, d, scale);
}
