#pragma once
// int8 KV cache, symmetric, one scale per token and head (computed when the token was appended)
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>

namespace kvq {

struct CacheView {
  const int8_t* data;  // [batch, max_tokens, kv_heads, head_dim]
  const float* scale;  // [batch, max_tokens, kv_heads]
  int max_tokens;
};

template <int HD>
struct Partial {
  float m, l, o[HD];
};

template <int HD, int NWARP>
__global__ void decode_i8(half* __restrict__ out, const half* __restrict__ q, CacheView kc,
                          CacheView vc, int ctx, int n_head, int n_kv, float softmax_scale) {
  static_assert(HD % 128 == 0 || HD == 64, "lanes read char4 or char2");
  constexpr int VEC = HD / 32;
  const int head = blockIdx.x, b = blockIdx.y;
  const int kvh = head * n_kv / n_head;
  const int lane = threadIdx.x, warp = threadIdx.y;

  float qr[VEC], o[VEC] = {0.f};
  for (int i = 0; i < VEC; i++)
    qr[i] = __half2float(q[((size_t)b * n_head + head) * HD + lane * VEC + i]) * softmax_scale;

  float m = -INFINITY, l = 0.f;
  for (int t = warp; t < ctx; t += NWARP) {
    const size_t tok = ((size_t)b * kc.max_tokens + t) * n_kv + kvh;
    int8_t kk[VEC], vv[VEC];
    if constexpr (VEC == 4) {
      *(char4*)kk = *(const char4*)(kc.data + tok * HD + lane * VEC);
      *(char4*)vv = *(const char4*)(vc.data + tok * HD + lane * VEC);
    } else {
      *(char2*)kk = *(const char2*)(kc.data + tok * HD + lane * VEC);
      *(char2*)vv = *(const char2*)(vc.data + tok * HD + lane * VEC);
    }
    float s = 0.f;
    for (int i = 0; i < VEC; i++) s += qr[i] * (float)kk[i];
    for (int x = 16; x; x /= 2) s += __shfl_xor_sync(0xffffffff, s, x);
    s *= kc.scale[tok];  // dequantise the dot, not the row

    const float mn = fmaxf(m, s);
    const float c = __expf(m - mn), p = __expf(s - mn);
    l = l * c + p;
    const float pv = p * vc.scale[tok];
    for (int i = 0; i < VEC; i++) o[i] = o[i] * c + pv * (float)vv[i];
    m = mn;
  }

  __shared__ Partial<HD> part[NWARP];
  for (int i = 0; i < VEC; i++) part[warp].o[lane * VEC + i] = o[i];
  if (lane == 0) {
    part[warp].m = m;
    part[warp].l = l;
  }
  __syncthreads();

  float M = -INFINITY, L = 0.f;
  for (int w = 0; w < NWARP; w++) M = fmaxf(M, part[w].m);
  for (int w = 0; w < NWARP; w++) L += part[w].l * __expf(part[w].m - M);
  for (int d = warp * 32 + lane; d < HD; d += NWARP * 32) {
    float acc = 0.f;
    for (int w = 0; w < NWARP; w++) acc += part[w].o[d] * __expf(part[w].m - M);
    out[((size_t)b * n_head + head) * HD + d] = __float2half(acc / L);
  }
}

inline bool decode_attention_i8(half* out, const half* q, const CacheView& k, const CacheView& v,
                                int batch, int ctx, int n_head, int n_kv, int head_dim,
                                float softmax_scale, cudaStream_t s = nullptr) {
  dim3 grid(n_head, batch), block(32, 4);
  if (head_dim == 64)
    decode_i8<64, 4><<<grid, block, 0, s>>>(out, q, k, v, ctx, n_head, n_kv, softmax_scale);
  else if (head_dim == 128)
    decode_i8<128, 4><<<grid, block, 0, s>>>(out, q, k, v, ctx, n_head, n_kv, softmax_scale);
  else
    return false;
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace kvq
