#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cassert>

// qkv: [batch, seqlen, 3, nheads, headdim] (bf16), out: [batch, seqlen, nheads, headdim]

using bf16 = __nv_bfloat16;

#define HEADDIM_SWITCH(HD, ...)   \
  [&] {                           \
    if (HD == 64) {               \
      constexpr int kHD = 64;     \
      return __VA_ARGS__();       \
    } else if (HD == 80) {        \
      constexpr int kHD = 80;     \
      return __VA_ARGS__();       \
    } else if (HD == 128) {       \
      constexpr int kHD = 128;    \
      return __VA_ARGS__();       \
    } else {                      \
      assert(false && "headdim"); \
    }                             \
  }()

template <int kHD>
struct SharedStorage {
  bf16 k[32][kHD];
  bf16 v[32][kHD];
};

template <int kHD>
__global__ void fmha_qkvpacked_kernel(const bf16* __restrict__ qkv, bf16* __restrict__ out,
                                      const int seqlen, const int nheads, const float scale_log2,
                                      const bool is_causal) {
  extern __shared__ __align__(16) unsigned char raw_smem[];
  auto& smem = *reinterpret_cast<SharedStorage<kHD>*>(raw_smem);

  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int bidb = blockIdx.y / nheads;
  const int bidh = blockIdx.y % nheads;
  const size_t token_stride = (size_t)3 * nheads * kHD;
  const bf16* base = qkv + (size_t)bidb * seqlen * token_stride + (size_t)bidh * kHD;
  const bf16* kbase = base + (size_t)nheads * kHD;
  const bf16* vbase = base + (size_t)2 * nheads * kHD;

  float q[kHD], o[kHD];
#pragma unroll
  for (int d = 0; d < kHD; ++d) {
    q[d] = i < seqlen ? __bfloat162float(base[i * token_stride + d]) * scale_log2 : 0.f;
    o[d] = 0.f;
  }

  float m = -INFINITY, l = 0.f;
  const int n_end = is_causal ? min(seqlen, int((blockIdx.x + 1) * blockDim.x)) : seqlen;
  for (int n0 = 0; n0 < n_end; n0 += 32) {
    for (int t = threadIdx.x; t < 32 * kHD; t += blockDim.x) {
      const int n = t / kHD, d = t % kHD;
      if (n0 + n < seqlen) {
        smem.k[n][d] = kbase[(n0 + n) * token_stride + d];
        smem.v[n][d] = vbase[(n0 + n) * token_stride + d];
      }
    }
    __syncthreads();
    const int n_valid = min(32, seqlen - n0);
    for (int n = 0; n < n_valid; ++n) {
      if (is_causal && n0 + n > i) break;
      float s = 0.f;
#pragma unroll
      for (int d = 0; d < kHD; ++d) s = fmaf(q[d], __bfloat162float(smem.k[n][d]), s);
      if (s > m) {
        const float corr = exp2f(m - s);
        l *= corr;
#pragma unroll
        for (int d = 0; d < kHD; ++d) o[d] *= corr;
        m = s;
      }
      const float p = exp2f(s - m);
      l += p;
#pragma unroll
      for (int d = 0; d < kHD; ++d) o[d] = fmaf(p, __bfloat162float(smem.v[n][d]), o[d]);
    }
    __syncthreads();
  }

  if (i < seqlen) {
    bf16* dst = out + (((size_t)bidb * seqlen + i) * nheads + bidh) * kHD;
#pragma unroll
    for (int d = 0; d < kHD; ++d) dst[d] = __float2bfloat16_rn(o[d] / l);
  }
}

void fmha_qkvpacked(const bf16* qkv, bf16* out, int batch, int seqlen, int nheads, int headdim,
                    float softmax_scale, bool is_causal, cudaStream_t stream) {
  constexpr int kThreads = 64;
  const float scale_log2 = softmax_scale * 1.4426950408889634f;
  dim3 grid((seqlen + kThreads - 1) / kThreads, batch * nheads);
  HEADDIM_SWITCH(headdim, [&] {
    constexpr size_t smem_bytes = sizeof(SharedStorage<kHD>);
    if (smem_bytes >= 48 * 1024)
      cudaFuncSetAttribute(fmha_qkvpacked_kernel<kHD>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           (int)smem_bytes);
    fmha_qkvpacked_kernel<kHD>
        <<<grid, kThreads, smem_bytes, stream>>>(qkv, out, seqlen, nheads, scale_log2, is_causal);
  });
}
