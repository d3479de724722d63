#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cfloat>

// Decode attention over a static KV cache, split along the sequence ("flash decoding").
//
// query      [bsz, n_heads, head_dim]            the one new token of each sequence
// k_cache    [bsz, max_seq, n_kv_heads, head_dim]
// v_cache    [bsz, max_seq, n_kv_heads, head_dim]
// seq_lens   [bsz]                                valid entries, the new token included
// tmp_out    [bsz, n_heads, n_splits, head_dim]   fp32, unnormalised
// tmp_ms     [bsz, n_heads, n_splits, 2]          (max, sum)
// out        [bsz, n_heads, head_dim]

namespace engine {

constexpr int kHeadDim = 128;
constexpr int kChunk = 32;  // keys scored at a time
constexpr int kThreads = 128;

__global__ void decode_split_kernel(const half* query, const half* k_cache, const half* v_cache,
                                    const int* seq_lens, float* tmp_out, float2* tmp_ms,
                                    int n_heads, int n_kv_heads, int max_seq, float scale) {
  const int split = blockIdx.x, head = blockIdx.y, seq = blockIdx.z;
  const int n_splits = gridDim.x;
  const int kv_head = head / (n_heads / n_kv_heads);
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;

  const int len = seq_lens[seq];
  const int n_chunks = (len + kChunk - 1) / kChunk;
  const int per_split = (n_chunks + n_splits - 1) / n_splits;
  const int begin = split * per_split * kChunk;
  const int end = min(len, begin + per_split * kChunk);

  __shared__ float q_s[kHeadDim];
  __shared__ float logits[kChunk];
  q_s[tid] = __half2float(query[(seq * n_heads + head) * kHeadDim + tid]) * scale;
  __syncthreads();

  const size_t row = (size_t)n_kv_heads * kHeadDim;
  const half* k = k_cache + (size_t)seq * max_seq * row + kv_head * kHeadDim;
  const half* v = v_cache + (size_t)seq * max_seq * row + kv_head * kHeadDim;

  float m = -FLT_MAX, l = 0.f, o = 0.f;  // thread tid owns column tid of the output
  for (int base = begin; base < end; base += kChunk) {
    for (int j = warp; j < kChunk; j += kThreads / 32) {
      float dot = 0.f;
      if (base + j < end) {
        const half2* kr = reinterpret_cast<const half2*>(k + (base + j) * row);
        for (int i = lane; i < kHeadDim / 2; i += 32) {
          const float2 f = __half22float2(kr[i]);
          dot += q_s[2 * i] * f.x + q_s[2 * i + 1] * f.y;
        }
      }
      for (int s = 16; s > 0; s >>= 1) dot += __shfl_xor_sync(0xffffffff, dot, s);
      if (lane == 0) logits[j] = base + j < end ? dot : -FLT_MAX;
    }
    __syncthreads();

    float m_new = m;
    for (int j = 0; j < kChunk; ++j) m_new = fmaxf(m_new, logits[j]);
    const float correction = __expf(m - m_new);
    l *= correction;
    o *= correction;
    const int valid = min(kChunk, end - base);
    for (int j = 0; j < valid; ++j) {
      const float p = __expf(logits[j] - m_new);
      l += p;
      o += p * __half2float(v[(base + j) * row + tid]);
    }
    m = m_new;
    __syncthreads();
  }

  const size_t slot = (size_t)(seq * n_heads + head) * n_splits + split;
  tmp_out[slot * kHeadDim + tid] = o;
  if (tid == 0) tmp_ms[slot] = make_float2(m, l);
}

__global__ void decode_combine_kernel(const float* tmp_out, const float2* tmp_ms, half* out,
                                      int n_splits) {
  const size_t head = blockIdx.x;
  const int tid = threadIdx.x;
  float m = -FLT_MAX;
  for (int s = 0; s < n_splits; ++s) m = fmaxf(m, tmp_ms[head * n_splits + s].x);
  float l = 0.f, o = 0.f;
  for (int s = 0; s < n_splits; ++s) {
    const float2 ms = tmp_ms[head * n_splits + s];
    const float w = __expf(ms.x - m);
    l += w * ms.y;
    o += w * tmp_out[(head * n_splits + s) * kHeadDim + tid];
  }
  out[head * kHeadDim + tid] = __float2half(o / l);
}

size_t flash_decoding_workspace_size(int bsz, int n_heads, int n_splits) {
  return (size_t)bsz * n_heads * n_splits * (kHeadDim + 2) * sizeof(float);
}

void flash_decoding(half* out, const half* query, const half* k_cache, const half* v_cache,
                    const int* seq_lens, void* workspace, int bsz, int n_heads, int n_kv_heads,
                    int max_seq, int n_splits, float scale, cudaStream_t stream) {
  float2* tmp_ms = static_cast<float2*>(workspace);
  float* tmp_out = reinterpret_cast<float*>(tmp_ms + (size_t)bsz * n_heads * n_splits);
  decode_split_kernel<<<dim3(n_splits, n_heads, bsz), kThreads, 0, stream>>>(
      query, k_cache, v_cache, seq_lens, tmp_out, tmp_ms, n_heads, n_kv_heads, max_seq, scale);
  decode_combine_kernel<<<bsz * n_heads, kHeadDim, 0, stream>>>(tmp_out, tmp_ms, out, n_splits);
}

}  // namespace engine
