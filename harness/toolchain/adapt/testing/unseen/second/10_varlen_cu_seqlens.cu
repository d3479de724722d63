#include <cuda_fp16.h>
#include <cuda_runtime.h>

// ragged batch:  q [total_q, nheads, D], k/v [total_k, nheads_k, D],  cu_seqlens: int32 [batch + 1]
// lse is [nheads, total_q]

enum class MaskType { kNone, kCausal };

template <int D, MaskType MASK>
__global__ void varlen_fwd_kernel(__half* __restrict__ out, float* __restrict__ lse,
                                  const __half* __restrict__ q, const __half* __restrict__ k,
                                  const __half* __restrict__ v,
                                  const int* __restrict__ cu_seqlens_q,
                                  const int* __restrict__ cu_seqlens_k, int nheads, int nheads_k,
                                  float sm_scale) {
  constexpr int BM = 16;
  constexpr int BN = 32;
  const int seq = blockIdx.z;
  const int head = blockIdx.y;
  const int q_beg = cu_seqlens_q[seq], q_len = cu_seqlens_q[seq + 1] - q_beg;
  const int k_beg = cu_seqlens_k[seq], k_len = cu_seqlens_k[seq + 1] - k_beg;
  const int m0 = blockIdx.x * BM;
  if (m0 >= q_len) return;
  const int hk = head / (nheads / nheads_k);

  // 8 warps; warp w handles rows w and w + 8 of the block. Lane j scores key j of the tile.
  const int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  __shared__ __half sQ[BM][D];
  __shared__ __half sK[BN][D + 2];
  __shared__ __half sV[BN][D];

  for (int i = threadIdx.x; i < BM * D; i += blockDim.x) {
    const int r = i / D, c = i - r * D;
    sQ[r][c] = m0 + r < q_len ? q[((size_t)(q_beg + m0 + r) * nheads + head) * D + c] : __half(0.f);
  }

  float o[2][D / 32] = {{0.f}};
  float mi[2] = {-INFINITY, -INFINITY}, li[2] = {0.f, 0.f};
  const int diag = k_len - q_len;
  const int n_end = MASK == MaskType::kCausal ? min(k_len, m0 + BM + diag) : k_len;

  for (int n0 = 0; n0 < n_end; n0 += BN) {
    __syncthreads();
    for (int i = threadIdx.x; i < BN * D; i += blockDim.x) {
      const int r = i / D, c = i - r * D;
      const bool in = n0 + r < k_len;
      const size_t at = ((size_t)(k_beg + n0 + r) * nheads_k + hk) * D + c;
      sK[r][c] = in ? k[at] : __half(0.f);
      sV[r][c] = in ? v[at] : __half(0.f);
    }
    __syncthreads();
    for (int u = 0; u < 2; ++u) {
      const int r = w + 8 * u, row = m0 + r;
      const int key = n0 + lane;
      float s = 0.f;
      for (int c = 0; c < D; ++c) s = fmaf(__half2float(sQ[r][c]), __half2float(sK[lane][c]), s);
      s *= sm_scale;
      if (key >= k_len || (MASK == MaskType::kCausal && key > row + diag)) s = -INFINITY;

      float mx = s;
      for (int d = 16; d; d >>= 1) mx = fmaxf(mx, __shfl_xor_sync(0xffffffffu, mx, d));
      mx = fmaxf(mx, mi[u]);
      if (mx == -INFINITY) continue;  // nothing visible so far (same for the whole warp)
      const float p = __expf(s - mx), corr = __expf(mi[u] - mx);
      float ps = p;
      for (int d = 16; d; d >>= 1) ps += __shfl_xor_sync(0xffffffffu, ps, d);
      li[u] = li[u] * corr + ps;
      mi[u] = mx;
      for (int t = 0; t < D / 32; ++t) o[u][t] *= corr;
      for (int j = 0; j < BN; ++j) {
        const float pj = __shfl_sync(0xffffffffu, p, j);
        for (int t = 0; t < D / 32; ++t)
          o[u][t] = fmaf(pj, __half2float(sV[j][t * 32 + lane]), o[u][t]);
      }
    }
  }

  const int total_q = cu_seqlens_q[gridDim.z];
  for (int u = 0; u < 2; ++u) {
    const int row = m0 + w + 8 * u;
    if (row >= q_len) continue;
    const float inv = li[u] > 0.f ? 1.f / li[u] : 0.f;
    for (int t = 0; t < D / 32; ++t)
      out[((size_t)(q_beg + row) * nheads + head) * D + t * 32 + lane] =
          __float2half(o[u][t] * inv);
    if (lane == 0 && lse != nullptr)
      lse[(size_t)head * total_q + q_beg + row] = li[u] > 0.f ? mi[u] + __logf(li[u]) : -INFINITY;
  }
}

int varlen_fwd(__half* out, float* lse, const __half* q, const __half* k, const __half* v,
               const int* cu_seqlens_q, const int* cu_seqlens_k, int batch, int max_seqlen_q,
               int nheads, int nheads_k, int head_dim, float sm_scale, MaskType mask,
               cudaStream_t stream) {
  const dim3 grid((max_seqlen_q + 15) / 16, nheads, batch), block(256);
#define LAUNCH(HD)                                                                    \
  if (head_dim == HD) {                                                               \
    if (mask == MaskType::kCausal)                                                    \
      varlen_fwd_kernel<HD, MaskType::kCausal><<<grid, block, 0, stream>>>(           \
          out, lse, q, k, v, cu_seqlens_q, cu_seqlens_k, nheads, nheads_k, sm_scale); \
    else                                                                              \
      varlen_fwd_kernel<HD, MaskType::kNone><<<grid, block, 0, stream>>>(             \
          out, lse, q, k, v, cu_seqlens_q, cu_seqlens_k, nheads, nheads_k, sm_scale); \
    return 0;                                                                         \
  }
  LAUNCH(64)
  LAUNCH(96)
  LAUNCH(128)
#undef LAUNCH
  return -1;
}
