#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <float.h>
#include <math.h>

// Generation-phase multi head attention (one new token per sequence), fp16.
// The K cache is stored as [batch, heads, head_dim / X, max_seq_len, X] with X = 8 (16 byte chunks)
// so that consecutive threads (= timesteps) read consecutive 16 byte words.
// The V cache is [batch, heads, max_seq_len, head_dim].

#define X 8

struct Masked_mha_params {
  half* out;      // [batch, heads, head_dim]
  const half* q;  // [batch, heads, head_dim]
  const half* k_cache;
  const half* v_cache;
  const int* length_per_sample;  // [batch], tokens in the cache, incl. the current one
  int batch_size;
  int num_heads;
  int head_dim;
  int max_seq_len;
  float inv_sqrt_dh;
};

template <int Dh, int THREADS_PER_BLOCK>
__global__ void masked_mha_kernel(Masked_mha_params params) {
  extern __shared__ float qk_smem[];
  __shared__ float q_smem[Dh];
  __shared__ float red_smem[THREADS_PER_BLOCK / 32];

  const int hi = blockIdx.x;
  const int bi = blockIdx.y;
  const int bhi = bi * params.num_heads + hi;
  const int tidx = threadIdx.x;
  const int tlength = params.length_per_sample[bi];

  for (int d = tidx; d < Dh; d += THREADS_PER_BLOCK)
    q_smem[d] = __half2float(params.q[bhi * Dh + d]);
  __syncthreads();

  const half* k_ptr = params.k_cache + (size_t)bhi * params.max_seq_len * Dh;
  float qk_max = -FLT_MAX;
  for (int ti = tidx; ti < tlength; ti += THREADS_PER_BLOCK) {
    float qk = 0.f;
    for (int c = 0; c < Dh / X; ++c) {
      const uint4 chunk =
          *reinterpret_cast<const uint4*>(k_ptr + ((size_t)c * params.max_seq_len + ti) * X);
      const half* kx = reinterpret_cast<const half*>(&chunk);
#pragma unroll
      for (int x = 0; x < X; ++x) qk += q_smem[c * X + x] * __half2float(kx[x]);
    }
    qk *= params.inv_sqrt_dh;
    qk_smem[ti] = qk;
    qk_max = fmaxf(qk_max, qk);
  }

#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2)
    qk_max = fmaxf(qk_max, __shfl_xor_sync(uint32_t(-1), qk_max, mask));
  if (tidx % 32 == 0) red_smem[tidx / 32] = qk_max;
  __syncthreads();
  for (int w = 0; w < THREADS_PER_BLOCK / 32; ++w) qk_max = fmaxf(qk_max, red_smem[w]);
  __syncthreads();

  float sum = 0.f;
  for (int ti = tidx; ti < tlength; ti += THREADS_PER_BLOCK) {
    const float logit = __expf(qk_smem[ti] - qk_max);
    sum += logit;
    qk_smem[ti] = logit;
  }
#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2) sum += __shfl_xor_sync(uint32_t(-1), sum, mask);
  if (tidx % 32 == 0) red_smem[tidx / 32] = sum;
  __syncthreads();
  sum = 0.f;
  for (int w = 0; w < THREADS_PER_BLOCK / 32; ++w) sum += red_smem[w];
  const float inv_sum = __fdividef(1.f, sum + 1.e-6f);

  const half* v_ptr = params.v_cache + (size_t)bhi * params.max_seq_len * Dh;
  for (int d = tidx; d < Dh; d += THREADS_PER_BLOCK) {
    float out = 0.f;
    for (int ti = 0; ti < tlength; ++ti)
      out += qk_smem[ti] * __half2float(v_ptr[(size_t)ti * Dh + d]);
    params.out[bhi * Dh + d] = __float2half(out * inv_sum);
  }
}

#define LAUNCH_MMHA(DH, THDS) masked_mha_kernel<DH, THDS><<<grid, THDS, smem_sz, stream>>>(params)

void masked_multihead_attention(const Masked_mha_params& params, const cudaStream_t& stream) {
  const dim3 grid(params.num_heads, params.batch_size);
  const size_t smem_sz = params.max_seq_len * sizeof(float);
  switch (params.head_dim) {
    case 32:
      LAUNCH_MMHA(32, 64);
      break;
    case 64:
      LAUNCH_MMHA(64, 64);
      break;
    case 128:
      LAUNCH_MMHA(128, 128);
      break;
    default:
      break;
  }
}
