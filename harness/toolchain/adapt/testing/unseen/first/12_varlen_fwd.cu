// Variable-length ("packed") attention forward.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cmath>

#ifndef TILE_M
#define TILE_M 32
#endif
#ifndef TILE_N
#define TILE_N 32
#endif

/// q            (total_q, num_heads, head_dim)
/// k, v         (total_k, num_heads_k, head_dim)
/// out          (total_q, num_heads, head_dim)
/// cu_seqlens_* (batch_size + 1), starts of each sequence
/// With causal, the mask is aligned to the bottom right corner.
template <int kHeadDim>
__global__ void varlen_fwd_kernel(const half* q, const half* k, const half* v, half* out,
                                  const int* cu_seqlens_q, const int* cu_seqlens_k, int num_heads,
                                  int num_heads_k, float softmax_scale, bool causal) {
  const int batch = blockIdx.z;
  const int head = blockIdx.y;
  const int head_k = head / (num_heads / num_heads_k);

  const int q_begin = cu_seqlens_q[batch];
  const int k_begin = cu_seqlens_k[batch];
  const int seqlen_q = cu_seqlens_q[batch + 1] - q_begin;
  const int seqlen_k = cu_seqlens_k[batch + 1] - k_begin;
  if (blockIdx.x * TILE_M >= seqlen_q) return;

  __shared__ half s_k[TILE_N][kHeadDim];
  __shared__ half s_v[TILE_N][kHeadDim];

  const int i = blockIdx.x * TILE_M + threadIdx.y;  // query row inside the sequence
  const int lane = threadIdx.x;
  const int tid = threadIdx.y * 32 + lane;
  constexpr int kElts = kHeadDim / 32;
  const bool active = i < seqlen_q;

  float rq[kElts], ro[kElts];
  for (int e = 0; e < kElts; ++e) {
    rq[e] =
        active
            ? __half2float(q[((size_t)(q_begin + i) * num_heads + head) * kHeadDim + e * 32 + lane])
            : 0.f;
    ro[e] = 0.f;
  }

  const int last_key = causal ? i + seqlen_k - seqlen_q : seqlen_k - 1;
  float m = -INFINITY, l = 0.f;
  for (int n0 = 0; n0 < seqlen_k; n0 += TILE_N) {
    for (int x = tid; x < TILE_N * kHeadDim; x += TILE_M * 32) {
      const int n = x / kHeadDim, c = x % kHeadDim;
      if (n0 + n < seqlen_k) {
        const size_t src = ((size_t)(k_begin + n0 + n) * num_heads_k + head_k) * kHeadDim + c;
        s_k[n][c] = k[src];
        s_v[n][c] = v[src];
      }
    }
    __syncthreads();
    if (active) {
      for (int n = 0; n < TILE_N && n0 + n <= last_key && n0 + n < seqlen_k; ++n) {
        float s = 0.f;
        for (int e = 0; e < kElts; ++e) s += rq[e] * __half2float(s_k[n][e * 32 + lane]);
        for (int w = 16; w >= 1; w /= 2) s += __shfl_xor_sync(0xffffffff, s, w);
        s *= softmax_scale;
        const float m_new = fmaxf(m, s);
        const float a = __expf(m - m_new), p = __expf(s - m_new);
        l = l * a + p;
        for (int e = 0; e < kElts; ++e) ro[e] = ro[e] * a + p * __half2float(s_v[n][e * 32 + lane]);
        m = m_new;
      }
    }
    __syncthreads();
  }

  if (active)
    for (int e = 0; e < kElts; ++e)
      out[((size_t)(q_begin + i) * num_heads + head) * kHeadDim + e * 32 + lane] =
          __float2half(l > 0.f ? ro[e] / l : 0.f);
}

void mha_varlen_fwd(const half* q, const half* k, const half* v, half* out, const int* cu_seqlens_q,
                    const int* cu_seqlens_k, int batch_size, int max_seqlen_q, int max_seqlen_k,
                    int num_heads, int num_heads_k, int head_dim, float softmax_scale, bool causal,
                    cudaStream_t stream) {
  (void)max_seqlen_k;
  dim3 grid((max_seqlen_q + TILE_M - 1) / TILE_M, num_heads, batch_size);
  dim3 block(32, TILE_M);
  if (head_dim == 64)
    varlen_fwd_kernel<64><<<grid, block, 0, stream>>>(
        q, k, v, out, cu_seqlens_q, cu_seqlens_k, num_heads, num_heads_k, softmax_scale, causal);
  else if (head_dim == 128)
    varlen_fwd_kernel<128><<<grid, block, 0, stream>>>(
        q, k, v, out, cu_seqlens_q, cu_seqlens_k, num_heads, num_heads_k, softmax_scale, causal);
}
