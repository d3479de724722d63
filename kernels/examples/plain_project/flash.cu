// A kernel as it stands in a project of its own: tiles in shared memory, a launcher, nothing of attn-diag.
//
// Layout [batch][heads][seqlen][head_dim]; a block per 32 queries of a head, a thread per query.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "flash.h"

constexpr int kBlockM = 32, kBlockN = 32;

template <int kHeadDim, bool kCausal>
__global__ void flash_fwd_kernel(const half* __restrict__ q, const half* __restrict__ k,
                                 const half* __restrict__ v, half* __restrict__ o,
                                 float* __restrict__ lse, int seqlen, float scale) {
  extern __shared__ half smem[];
  half* sK = smem;                       // (kBlockN, kHeadDim)
  half* sV = smem + kBlockN * kHeadDim;  // (kBlockN, kHeadDim)
  const int row = blockIdx.x * kBlockM + threadIdx.x;
  const size_t head = (size_t)blockIdx.y * seqlen * kHeadDim;

  float rQ[kHeadDim], rO[kHeadDim] = {}, m = -INFINITY, l = 0.0f;
  for (int d = 0; d < kHeadDim; ++d)
    rQ[d] = row < seqlen ? __half2float(q[head + (size_t)row * kHeadDim + d]) : 0.0f;

  const int last = kCausal ? min(seqlen, (int)(blockIdx.x + 1) * kBlockM) : seqlen;
  for (int n0 = 0; n0 < last; n0 += kBlockN) {
    __syncthreads();
    for (int i = threadIdx.x; i < kBlockN * kHeadDim; i += kBlockM) {
      const bool inside = n0 + i / kHeadDim < seqlen;
      sK[i] = inside ? k[head + (size_t)n0 * kHeadDim + i] : __float2half(0.0f);
      sV[i] = inside ? v[head + (size_t)n0 * kHeadDim + i] : __float2half(0.0f);
    }
    __syncthreads();
    for (int j = 0; j < kBlockN && n0 + j < seqlen; ++j) {
      if (kCausal && n0 + j > row) break;
      float s = 0.0f;
      for (int d = 0; d < kHeadDim; ++d) s += rQ[d] * __half2float(sK[j * kHeadDim + d]);
      s *= scale;
      const float m_new = fmaxf(m, s), rescale = __expf(m - m_new), p = __expf(s - m_new);
      for (int d = 0; d < kHeadDim; ++d)
        rO[d] = rO[d] * rescale + p * __half2float(sV[j * kHeadDim + d]);
      l = l * rescale + p;
      m = m_new;
    }
  }
  if (row >= seqlen) return;
  for (int d = 0; d < kHeadDim; ++d) o[head + (size_t)row * kHeadDim + d] = __float2half(rO[d] / l);
  lse[(size_t)blockIdx.y * seqlen + row] = m + logf(l);
}

template <int kHeadDim>
static void launch(const half* q, const half* k, const half* v, half* o, float* lse, int heads,
                   int seqlen, float scale, bool causal, cudaStream_t stream) {
  const dim3 grid((seqlen + kBlockM - 1) / kBlockM, heads);
  const size_t smem = 2 * kBlockN * kHeadDim * sizeof(half);
  if (causal)
    flash_fwd_kernel<kHeadDim, true>
        <<<grid, kBlockM, smem, stream>>>(q, k, v, o, lse, seqlen, scale);
  else
    flash_fwd_kernel<kHeadDim, false>
        <<<grid, kBlockM, smem, stream>>>(q, k, v, o, lse, seqlen, scale);
}

void flash_fwd(const half* q, const half* k, const half* v, half* o, float* lse, int batch,
               int heads, int seqlen, int head_dim, float scale, bool causal, cudaStream_t stream) {
  if (head_dim == 32)
    return launch<32>(q, k, v, o, lse, batch * heads, seqlen, scale, causal, stream);
  if (head_dim == 64)
    return launch<64>(q, k, v, o, lse, batch * heads, seqlen, scale, causal, stream);
}
