// Single-query attention over a paged KV cache.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>

#define WARP_SIZE 32
#define DIVIDE_ROUND_UP(a, b) (((a) + (b)-1) / (b))

template <typename T>
__device__ inline float to_float(T x);
template <>
__device__ inline float to_float(__half x) {
  return __half2float(x);
}
template <>
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline __half from_float(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_float(float x) {
  return __float2bfloat16_rn(x);
}

template <int NUM_WARPS>
__device__ inline float block_reduce(float* red, float x, bool is_max) {
  for (int mask = WARP_SIZE / 2; mask >= 1; mask /= 2) {
    const float y = __shfl_xor_sync(0xffffffff, x, mask);
    x = is_max ? fmaxf(x, y) : x + y;
  }
  __syncthreads();
  if (threadIdx.x % WARP_SIZE == 0) red[threadIdx.x / WARP_SIZE] = x;
  __syncthreads();
  x = red[0];
  for (int w = 1; w < NUM_WARPS; ++w) x = is_max ? fmaxf(x, red[w]) : x + red[w];
  return x;
}

// Grid: (num_heads, num_seqs)
template <typename scalar_t, int HEAD_SIZE, int BLOCK_SIZE, int NUM_THREADS>
__global__ void paged_attention_kernel(
    scalar_t* __restrict__ out,            // [num_seqs, num_heads, head_size]
    const scalar_t* __restrict__ q,        // [num_seqs, num_heads, head_size]
    const scalar_t* __restrict__ k_cache,  // [num_blocks, num_kv_heads, head_size/x, block_size, x]
    const scalar_t* __restrict__ v_cache,  // [num_blocks, num_kv_heads, head_size, block_size]
    const int num_kv_heads, const float scale,
    const int* __restrict__ block_tables,  // [num_seqs, max_num_blocks_per_seq]
    const int* __restrict__ seq_lens,      // [num_seqs]
    const int max_num_blocks_per_seq, const int q_stride, const int kv_block_stride,
    const int kv_head_stride) {
  constexpr int NUM_WARPS = NUM_THREADS / WARP_SIZE;
  constexpr int x = 16 / sizeof(scalar_t);
  const int head_idx = blockIdx.x, seq_idx = blockIdx.y;
  const int kv_head_idx = head_idx / (gridDim.x / num_kv_heads);
  const int seq_len = seq_lens[seq_idx];
  const int* block_table = block_tables + seq_idx * max_num_blocks_per_seq;

  extern __shared__ float logits[];  // seq_len rounded up to whole blocks
  __shared__ float q_shared[HEAD_SIZE];
  __shared__ float red[NUM_WARPS];

  for (int i = threadIdx.x; i < HEAD_SIZE; i += NUM_THREADS)
    q_shared[i] = to_float(q[(size_t)seq_idx * q_stride + head_idx * HEAD_SIZE + i]);
  __syncthreads();

  float qk_max = -INFINITY;
  for (int token = threadIdx.x; token < seq_len; token += NUM_THREADS) {
    const scalar_t* k_ptr = k_cache + (size_t)block_table[token / BLOCK_SIZE] * kv_block_stride +
                            (size_t)kv_head_idx * kv_head_stride + token % BLOCK_SIZE * x;
    float qk = 0.f;
    for (int i = 0; i < HEAD_SIZE; ++i)
      qk += q_shared[i] * to_float(k_ptr[i / x * BLOCK_SIZE * x + i % x]);
    qk *= scale;
    logits[token] = qk;
    qk_max = fmaxf(qk_max, qk);
  }
  qk_max = block_reduce<NUM_WARPS>(red, qk_max, true);

  float exp_sum = 0.f;
  for (int token = threadIdx.x; token < seq_len; token += NUM_THREADS) {
    const float val = __expf(logits[token] - qk_max);
    logits[token] = val;
    exp_sum += val;
  }
  exp_sum = block_reduce<NUM_WARPS>(red, exp_sum, false);
  const float inv_sum = __fdividef(1.f, exp_sum);

  // one warp per element of the output, lanes over tokens
  const int warp_idx = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
  for (int i = warp_idx; i < HEAD_SIZE; i += NUM_WARPS) {
    float acc = 0.f;
    for (int token = lane; token < seq_len; token += WARP_SIZE) {
      const scalar_t* v_ptr = v_cache + (size_t)block_table[token / BLOCK_SIZE] * kv_block_stride +
                              (size_t)kv_head_idx * kv_head_stride + i * BLOCK_SIZE +
                              token % BLOCK_SIZE;
      acc += logits[token] * inv_sum * to_float(*v_ptr);
    }
    for (int mask = WARP_SIZE / 2; mask >= 1; mask /= 2)
      acc += __shfl_xor_sync(0xffffffff, acc, mask);
    if (lane == 0)
      out[((size_t)seq_idx * gridDim.x + head_idx) * HEAD_SIZE + i] = from_float<scalar_t>(acc);
  }
}

#define LAUNCH_PAGED_ATTENTION(HEAD_SIZE)                                                     \
  case HEAD_SIZE:                                                                             \
    paged_attention_kernel<T, HEAD_SIZE, BLOCK_SIZE, 128><<<grid, 128, shared_mem, stream>>>( \
        out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens,      \
        max_num_blocks_per_seq, num_heads * head_size, num_kv_heads * head_size * BLOCK_SIZE, \
        head_size * BLOCK_SIZE);                                                              \
    break;

template <typename T, int BLOCK_SIZE = 16>
void paged_attention(T* out, const T* query, const T* key_cache, const T* value_cache, int num_seqs,
                     int num_heads, int num_kv_heads, int head_size, float scale,
                     const int* block_tables, const int* seq_lens, int max_num_blocks_per_seq,
                     int max_seq_len, cudaStream_t stream) {
  const int padded = DIVIDE_ROUND_UP(max_seq_len, BLOCK_SIZE) * BLOCK_SIZE;
  const int shared_mem = padded * sizeof(float);
  dim3 grid(num_heads, num_seqs);
  switch (head_size) {
    LAUNCH_PAGED_ATTENTION(64)
    LAUNCH_PAGED_ATTENTION(80)
    LAUNCH_PAGED_ATTENTION(128)
    default:
      fprintf(stderr, "paged_attention: head size %d is not supported\n", head_size);
      abort();
  }
}

template void paged_attention<__half>(__half*, const __half*, const __half*, const __half*, int,
                                      int, int, int, float, const int*, const int*, int, int,
                                      cudaStream_t);
template void paged_attention<__nv_bfloat16>(__nv_bfloat16*, const __nv_bfloat16*,
                                             const __nv_bfloat16*, const __nv_bfloat16*, int, int,
                                             int, int, float, const int*, const int*, int, int,
                                             cudaStream_t);
