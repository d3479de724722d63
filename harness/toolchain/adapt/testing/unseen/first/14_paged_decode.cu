#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cfloat>

#define DIVIDE_ROUND_UP(a, b) (((a) + (b)-1) / (b))
#define WARP_SIZE 32

namespace serving {

// Grid: (num_heads, num_seqs).
template <int HEAD_SIZE, int BLOCK_SIZE, int NUM_THREADS>
__global__ void paged_attention_kernel(
    half* __restrict__ out,            // [num_seqs, num_heads, head_size]
    const half* __restrict__ q,        // [num_seqs, num_heads, head_size]
    const half* __restrict__ k_cache,  // [num_blocks, block_size, num_kv_heads, head_size]
    const half* __restrict__ v_cache,  // [num_blocks, block_size, num_kv_heads, head_size]
    const int num_kv_heads, const float scale,
    const int* __restrict__ block_tables,  // [num_seqs, max_num_blocks_per_seq]
    const int* __restrict__ context_lens,  // [num_seqs]
    const int max_num_blocks_per_seq) {
  constexpr int NUM_WARPS = NUM_THREADS / WARP_SIZE;
  constexpr int ELEMS = HEAD_SIZE / WARP_SIZE;

  const int head_idx = blockIdx.x;
  const int num_heads = gridDim.x;
  const int seq_idx = blockIdx.y;
  const int kv_head_idx = head_idx / (num_heads / num_kv_heads);
  const int warp_idx = threadIdx.x / WARP_SIZE;
  const int lane = threadIdx.x % WARP_SIZE;

  const int context_len = context_lens[seq_idx];
  const int num_blocks = DIVIDE_ROUND_UP(context_len, BLOCK_SIZE);
  const int* block_table = block_tables + seq_idx * max_num_blocks_per_seq;

  extern __shared__ char shared_mem[];
  float* logits = reinterpret_cast<float*>(shared_mem);  // [context_len]
  __shared__ float red_smem[2 * NUM_WARPS];

  float q_vec[ELEMS];
  const half* q_ptr = q + ((int64_t)seq_idx * num_heads + head_idx) * HEAD_SIZE;
#pragma unroll
  for (int i = 0; i < ELEMS; i++) q_vec[i] = __half2float(q_ptr[lane + i * WARP_SIZE]);

  float qk_max = -FLT_MAX;
  for (int block_idx = warp_idx; block_idx < num_blocks; block_idx += NUM_WARPS) {
    const int64_t physical_block = block_table[block_idx];
    for (int off = 0; off < BLOCK_SIZE; off++) {
      const int token_idx = block_idx * BLOCK_SIZE + off;
      if (token_idx >= context_len) break;
      const half* k_ptr =
          k_cache + ((physical_block * BLOCK_SIZE + off) * num_kv_heads + kv_head_idx) * HEAD_SIZE;
      float qk = 0.f;
#pragma unroll
      for (int i = 0; i < ELEMS; i++) qk += q_vec[i] * __half2float(k_ptr[lane + i * WARP_SIZE]);
#pragma unroll
      for (int mask = WARP_SIZE / 2; mask >= 1; mask /= 2)
        qk += __shfl_xor_sync(0xffffffff, qk, mask);
      qk *= scale;
      if (lane == 0) logits[token_idx] = qk;
      qk_max = fmaxf(qk_max, qk);
    }
  }
  if (lane == 0) red_smem[warp_idx] = qk_max;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < NUM_WARPS; w++) qk_max = fmaxf(qk_max, red_smem[w]);

  float exp_sum = 0.f;
  for (int i = threadIdx.x; i < context_len; i += NUM_THREADS) {
    const float val = __expf(logits[i] - qk_max);
    logits[i] = val;
    exp_sum += val;
  }
#pragma unroll
  for (int mask = WARP_SIZE / 2; mask >= 1; mask /= 2)
    exp_sum += __shfl_xor_sync(0xffffffff, exp_sum, mask);
  if (lane == 0) red_smem[NUM_WARPS + warp_idx] = exp_sum;
  __syncthreads();
  exp_sum = 0.f;
#pragma unroll
  for (int w = 0; w < NUM_WARPS; w++) exp_sum += red_smem[NUM_WARPS + w];
  const float inv_sum = 1.f / (exp_sum + 1e-6f);

  half* out_ptr = out + ((int64_t)seq_idx * num_heads + head_idx) * HEAD_SIZE;
  for (int d = threadIdx.x; d < HEAD_SIZE; d += NUM_THREADS) {
    float acc = 0.f;
    for (int t = 0; t < context_len; t++) {
      const int64_t physical_block = block_table[t / BLOCK_SIZE];
      const half* v_ptr =
          v_cache +
          ((physical_block * BLOCK_SIZE + t % BLOCK_SIZE) * num_kv_heads + kv_head_idx) * HEAD_SIZE;
      acc += logits[t] * __half2float(v_ptr[d]);
    }
    out_ptr[d] = __float2half(acc * inv_sum);
  }
}

}  // namespace serving

void paged_attention(half* out, const half* query, const half* key_cache, const half* value_cache,
                     const int* block_tables, const int* context_lens, int num_seqs, int num_heads,
                     int num_kv_heads, int head_size, float scale, int max_num_blocks_per_seq,
                     int max_context_len, cudaStream_t stream) {
  constexpr int BLOCK_SIZE = 16;
  constexpr int NUM_THREADS = 128;
  dim3 grid(num_heads, num_seqs);
  size_t smem = DIVIDE_ROUND_UP(max_context_len, BLOCK_SIZE) * BLOCK_SIZE * sizeof(float);
#define CALL(HS)                                                                                \
  case HS:                                                                                      \
    serving::paged_attention_kernel<HS, BLOCK_SIZE, NUM_THREADS>                                \
        <<<grid, NUM_THREADS, smem, stream>>>(out, query, key_cache, value_cache, num_kv_heads, \
                                              scale, block_tables, context_lens,                \
                                              max_num_blocks_per_seq);                          \
    break
  switch (head_size) {
    CALL(64);
    CALL(96);
    CALL(128);
  }
#undef CALL
}
