#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>

// MQA/GQA decode with an e4m3 KV cache; one dequant scale for K and one for V (per tensor).
// A block handles one kv head of one sequence and all the query heads in its group.

namespace {

constexpr int BLOCK_N = 32;

template <int D, int GROUP>
__global__ void fp8_decode_kernel(const __nv_bfloat16* __restrict__ xq,
                                  const __nv_fp8_e4m3* __restrict__ cache_k,
                                  const __nv_fp8_e4m3* __restrict__ cache_v,
                                  __nv_bfloat16* __restrict__ xo, int n_kv_heads, int kv_len,
                                  float k_scale, float v_scale, float softmax_scale) {
  __shared__ float s_q[GROUP][D];
  __shared__ float s_p[GROUP][BLOCK_N];
  __shared__ float s_m[GROUP], s_l[GROUP], s_c[GROUP];

  const int kvh = blockIdx.x;
  const int b = blockIdx.y;
  const int tid = threadIdx.x;  // D threads
  const int n_heads = n_kv_heads * GROUP;

  for (int g = 0; g < GROUP; ++g)
    s_q[g][tid] = __bfloat162float(xq[((size_t)b * n_heads + kvh * GROUP + g) * D + tid]) *
                  softmax_scale * k_scale;
  if (tid < GROUP) {
    s_m[tid] = -INFINITY;
    s_l[tid] = 0.f;
  }
  float acc[GROUP];
  for (int g = 0; g < GROUP; ++g) acc[g] = 0.f;
  __syncthreads();

  // cache: [B, kv_len, n_kv_heads, D]
  const size_t row = (size_t)n_kv_heads * D;
  const __nv_fp8_e4m3* kp = cache_k + (size_t)b * kv_len * row + (size_t)kvh * D;
  const __nv_fp8_e4m3* vp = cache_v + (size_t)b * kv_len * row + (size_t)kvh * D;

  for (int n0 = 0; n0 < kv_len; n0 += BLOCK_N) {
    const int nn = min(BLOCK_N, kv_len - n0);
    for (int i = tid; i < GROUP * nn; i += D) {
      const int g = i / nn, n = i % nn;
      float s = 0.f;
      for (int d = 0; d < D; ++d) s += s_q[g][d] * float(kp[(n0 + n) * row + d]);
      s_p[g][n] = s;
    }
    __syncthreads();
    if (tid < GROUP) {
      float m = s_m[tid];
      for (int n = 0; n < nn; ++n) m = fmaxf(m, s_p[tid][n]);
      const float c = __expf(s_m[tid] - m);
      float l = s_l[tid] * c;
      for (int n = 0; n < nn; ++n) {
        const float p = __expf(s_p[tid][n] - m);
        s_p[tid][n] = p;
        l += p;
      }
      s_m[tid] = m;
      s_l[tid] = l;
      s_c[tid] = c;
    }
    __syncthreads();
    for (int g = 0; g < GROUP; ++g) acc[g] *= s_c[g];
    for (int n = 0; n < nn; ++n) {
      const float v = float(vp[(n0 + n) * row + tid]);
      for (int g = 0; g < GROUP; ++g) acc[g] += s_p[g][n] * v;
    }
    __syncthreads();
  }

  for (int g = 0; g < GROUP; ++g)
    xo[((size_t)b * n_heads + kvh * GROUP + g) * D + tid] =
        __float2bfloat16(acc[g] / s_l[g] * v_scale);
}

}  // namespace

// returns false when the configuration has no kernel
bool fp8_decode_attention(const __nv_bfloat16* xq, const __nv_fp8_e4m3* cache_k,
                          const __nv_fp8_e4m3* cache_v, __nv_bfloat16* xo, int bsz, int n_heads,
                          int n_kv_heads, int kv_len, int head_dim, float k_scale, float v_scale,
                          cudaStream_t stream) {
  const float softmax_scale = rsqrtf((float)head_dim);
  const int group = n_heads / n_kv_heads;
  dim3 grid(n_kv_heads, bsz);
  if (head_dim == 64 && group == 4)
    fp8_decode_kernel<64, 4><<<grid, 64, 0, stream>>>(xq, cache_k, cache_v, xo, n_kv_heads, kv_len,
                                                      k_scale, v_scale, softmax_scale);
  else if (head_dim == 128 && group == 8)
    fp8_decode_kernel<128, 8><<<grid, 128, 0, stream>>>(xq, cache_k, cache_v, xo, n_kv_heads,
                                                        kv_len, k_scale, v_scale, softmax_scale);
  else if (head_dim == 128 && group == 1)
    fp8_decode_kernel<128, 1><<<grid, 128, 0, stream>>>(xq, cache_k, cache_v, xo, n_kv_heads,
                                                        kv_len, k_scale, v_scale, softmax_scale);
  else
    return false;
  return true;
}
