// Copyright (c) 2024, the authors. Forward only.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <stdexcept>
#include <string>

#define CUDA_CHECK(call)                                                                       \
  do {                                                                                         \
    cudaError_t status_ = call;                                                                \
    if (status_ != cudaSuccess)                                                                \
      throw std::runtime_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " + \
                               cudaGetErrorString(status_));                                   \
  } while (0)

#define BOOL_SWITCH(COND, CONST_NAME, ...)      \
  [&] {                                         \
    if (COND) {                                 \
      constexpr static bool CONST_NAME = true;  \
      return __VA_ARGS__();                     \
    } else {                                    \
      constexpr static bool CONST_NAME = false; \
      return __VA_ARGS__();                     \
    }                                           \
  }()

#define FP16_SWITCH(COND, ...)         \
  [&] {                                \
    if (COND) {                        \
      using elem_type = __half;        \
      return __VA_ARGS__();            \
    } else {                           \
      using elem_type = __nv_bfloat16; \
      return __VA_ARGS__();            \
    }                                  \
  }()

#define HEADDIM_SWITCH(HEADDIM, ...)                      \
  [&] {                                                   \
    if (HEADDIM <= 32) {                                  \
      constexpr static int kHeadDim = 32;                 \
      return __VA_ARGS__();                               \
    } else if (HEADDIM <= 64) {                           \
      constexpr static int kHeadDim = 64;                 \
      return __VA_ARGS__();                               \
    } else if (HEADDIM <= 128) {                          \
      constexpr static int kHeadDim = 128;                \
      return __VA_ARGS__();                               \
    }                                                     \
    throw std::runtime_error("only head dims up to 128"); \
  }()

// Q is scaled once, as it is read, and kept in the element type; head dims between are padded with zeros.
template <typename T, int kHeadDim, bool kCausal>
__global__ void __launch_bounds__(64)
    attn_fwd(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
             T* __restrict__ o, float* __restrict__ lse, int nheads, int seqlen_q, int seqlen_k,
             int headdim, float softmax_scale) {
  constexpr int kBlockM = 64, kBlockN = 16;  // thread <-> query
  __shared__ T k_smem[kBlockN][kHeadDim];
  __shared__ T v_smem[kBlockN][kHeadDim];
  const int bh = blockIdx.y, m = blockIdx.x * kBlockM + threadIdx.x;
  q += int64_t(bh) * seqlen_q * headdim;
  k += int64_t(bh) * seqlen_k * headdim;
  v += int64_t(bh) * seqlen_k * headdim;
  o += int64_t(bh) * seqlen_q * headdim;

  T rq[kHeadDim];
  float ro[kHeadDim];
#pragma unroll
  for (int d = 0; d < kHeadDim; ++d) {
    rq[d] = (m < seqlen_q && d < headdim) ? T(float(q[int64_t(m) * headdim + d]) * softmax_scale)
                                          : T(0.f);
    ro[d] = 0.f;
  }
  float mx = -INFINITY, l = 0.f;

  const int n_end = kCausal ? min(seqlen_k, (int)(blockIdx.x + 1) * kBlockM) : seqlen_k;
  for (int n0 = 0; n0 < n_end; n0 += kBlockN) {
    __syncthreads();
    for (int i = threadIdx.x; i < kBlockN * kHeadDim; i += kBlockM) {
      const int n = i / kHeadDim, d = i % kHeadDim;
      const bool in = n0 + n < seqlen_k && d < headdim;
      k_smem[n][d] = in ? k[int64_t(n0 + n) * headdim + d] : T(0.f);
      v_smem[n][d] = in ? v[int64_t(n0 + n) * headdim + d] : T(0.f);
    }
    __syncthreads();

    float s[kBlockN], mx_new = mx;
#pragma unroll
    for (int n = 0; n < kBlockN; ++n) {
      float x = 0.f;
#pragma unroll
      for (int d = 0; d < kHeadDim; ++d) x += float(rq[d]) * float(k_smem[n][d]);
      const bool visible = n0 + n < seqlen_k && (!kCausal || n0 + n <= m);
      s[n] = visible ? x : -INFINITY;
      mx_new = fmaxf(mx_new, s[n]);
    }
    const float alpha = __expf(mx - mx_new);
    l *= alpha;
#pragma unroll
    for (int d = 0; d < kHeadDim; ++d) ro[d] *= alpha;
#pragma unroll
    for (int n = 0; n < kBlockN; ++n) {
      const float p = __expf(s[n] - mx_new);
      l += p;
#pragma unroll
      for (int d = 0; d < kHeadDim; ++d) ro[d] += p * float(v_smem[n][d]);
    }
    mx = mx_new;
  }

  if (m >= seqlen_q) return;
  for (int d = 0; d < headdim; ++d) o[int64_t(m) * headdim + d] = T(ro[d] / l);
  if (lse) lse[int64_t(bh) * seqlen_q + m] = mx + logf(l);
}

void mha_fwd(void* o, float* lse, const void* q, const void* k, const void* v, int batch,
             int nheads, int seqlen_q, int seqlen_k, int headdim, float softmax_scale, bool is_fp16,
             bool is_causal, cudaStream_t stream) {
  const dim3 grid((seqlen_q + 63) / 64, batch * nheads);
  FP16_SWITCH(is_fp16, [&] {
    BOOL_SWITCH(is_causal, kCausal, [&] {
      HEADDIM_SWITCH(headdim, [&] {
        attn_fwd<elem_type, kHeadDim, kCausal><<<grid, 64, 0, stream>>>(
            static_cast<const elem_type*>(q), static_cast<const elem_type*>(k),
            static_cast<const elem_type*>(v), static_cast<elem_type*>(o), lse, nheads, seqlen_q,
            seqlen_k, headdim, softmax_scale);
      });
    });
  });
  CUDA_CHECK(cudaGetLastError());
}
