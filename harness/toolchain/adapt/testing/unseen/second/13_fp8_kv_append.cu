// Attention of a chunk of new queries against an fp8 (e4m3) KV cache that already holds the chunk.
// Queries are the LAST q_len positions of kv_len (causal). Output in bf16, LSE in base 2 for the merge kernel.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdexcept>

#define HEAD 64
#define QT 8   // queries per CTA, one warp each
#define KT 32  // keys per step, one per lane

using fp8 = __nv_fp8_e4m3;

static constexpr float kLog2e = 1.44269504088896340736f;

__global__ void __launch_bounds__(QT * 32)
    append_attention_fp8kv(__nv_bfloat16* o, float* lse2, const __nv_bfloat16* q, const fp8* kcache,
                           const fp8* vcache, float k_scale, float v_scale, float sm_scale,
                           int q_len, int kv_len) {
  __shared__ float qs[QT][HEAD];
  __shared__ float ks[KT][HEAD + 1];
  __shared__ float vs[KT][HEAD];

  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int bh = blockIdx.y;
  const int qi = blockIdx.x * QT + warp;
  const bool live = qi < q_len;
  const int last = kv_len - q_len + qi;  // last visible key of this query
  const float qk_scale = sm_scale * k_scale * kLog2e;

  for (int d = lane; d < HEAD; d += 32)
    qs[warp][d] = live ? __bfloat162float(q[((size_t)bh * q_len + qi) * HEAD + d]) : 0.f;

  float m = -INFINITY, l = 0.f, o0 = 0.f, o1 = 0.f;
  const int block_last = min(kv_len, kv_len - q_len + (int)(blockIdx.x + 1) * QT);
  for (int k0 = 0; k0 < block_last; k0 += KT) {
    __syncthreads();
    for (int t = threadIdx.x; t < KT * HEAD; t += QT * 32) {
      int r = t / HEAD, c = t % HEAD;
      size_t at = ((size_t)bh * kv_len + k0 + r) * HEAD + c;
      ks[r][c] = k0 + r < kv_len ? float(kcache[at]) : 0.f;
      vs[r][c] = k0 + r < kv_len ? float(vcache[at]) : 0.f;
    }
    __syncthreads();

    float s = 0.f;
#pragma unroll
    for (int d = 0; d < HEAD; d++) s += qs[warp][d] * ks[lane][d];
    s = (k0 + lane <= last && k0 + lane < kv_len) ? s * qk_scale : -INFINITY;

    float tile_m = s;
#pragma unroll
    for (int x = 16; x > 0; x >>= 1) tile_m = fmaxf(tile_m, __shfl_xor_sync(0xffffffff, tile_m, x));
    if (tile_m != -INFINITY) {
      float m_new = fmaxf(m, tile_m);
      float alpha = exp2f(m - m_new);
      float p = exp2f(s - m_new);
      float psum = p;
#pragma unroll
      for (int x = 16; x > 0; x >>= 1) psum += __shfl_xor_sync(0xffffffff, psum, x);
      l = l * alpha + psum;
      o0 *= alpha;
      o1 *= alpha;
#pragma unroll
      for (int j = 0; j < KT; j++) {
        float pj = __shfl_sync(0xffffffff, p, j);
        o0 += pj * vs[j][lane];
        o1 += pj * vs[j][lane + 32];
      }
      m = m_new;
    }
  }
  if (!live) return;
  float r = v_scale / l;
  __nv_bfloat16* dst = o + ((size_t)bh * q_len + qi) * HEAD;
  dst[lane] = __float2bfloat16(o0 * r);
  dst[lane + 32] = __float2bfloat16(o1 * r);
  if (lane == 0) lse2[(size_t)bh * q_len + qi] = m + log2f(l);
}

void AppendAttentionFp8KV(__nv_bfloat16* o, float* lse2, const __nv_bfloat16* q, const fp8* kcache,
                          const fp8* vcache, float k_scale, float v_scale, float sm_scale,
                          int batch, int heads, int q_len, int kv_len, int head_dim,
                          cudaStream_t stream) {
  if (head_dim != HEAD) throw std::invalid_argument("AppendAttentionFp8KV: head_dim");
  if (q_len > kv_len) throw std::invalid_argument("AppendAttentionFp8KV: q_len > kv_len");
  append_attention_fp8kv<<<dim3((q_len + QT - 1) / QT, batch * heads), QT * 32, 0, stream>>>(
      o, lse2, q, kcache, vcache, k_scale, v_scale, sm_scale, q_len, kv_len);
}
