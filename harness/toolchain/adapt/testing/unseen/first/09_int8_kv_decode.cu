#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>

// Decode attention over an int8-quantised KV cache.
// Every (batch, kv head, token) has its own scale: x = int8 * scale.
//
//   query        [batch, num_heads, HeadDim]                    half
//   k_cache      [batch, num_kv_heads, max_len, HeadDim]        int8
//   v_cache      [batch, num_kv_heads, max_len, HeadDim]        int8
//   k_scales     [batch, num_kv_heads, max_len]                 float
//   v_scales     [batch, num_kv_heads, max_len]                 float
//   seq_lens     [batch]      number of valid tokens
//   output       [batch, num_heads, HeadDim]                    half

template <int HeadDim, int NumWarps>
__global__ void int8_kv_decode_attention(half* __restrict__ output, const half* __restrict__ query,
                                         const int8_t* __restrict__ k_cache,
                                         const int8_t* __restrict__ v_cache,
                                         const float* __restrict__ k_scales,
                                         const float* __restrict__ v_scales,
                                         const int* __restrict__ seq_lens, const int num_kv_heads,
                                         const int max_len, const float softmax_scale) {
  constexpr int VPT = HeadDim / 32;
  __shared__ float sm_m[NumWarps];
  __shared__ float sm_l[NumWarps];
  __shared__ float sm_o[NumWarps][HeadDim];

  const int head_idx = blockIdx.x;
  const int num_heads = gridDim.x;
  const int batch_idx = blockIdx.y;
  const int kv_head_idx = head_idx / (num_heads / num_kv_heads);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int ctx_len = seq_lens[batch_idx];

  const int64_t token_base = ((int64_t)batch_idx * num_kv_heads + kv_head_idx) * max_len;
  const half* q = query + ((int64_t)batch_idx * num_heads + head_idx) * HeadDim;

  float qf[VPT], of[VPT];
#pragma unroll
  for (int i = 0; i < VPT; ++i) {
    qf[i] = __half2float(q[lane * VPT + i]) * softmax_scale;
    of[i] = 0.f;
  }

  float m = -1e30f, l = 0.f;
  for (int t = warp; t < ctx_len; t += NumWarps) {
    const int8_t* k = k_cache + (token_base + t) * HeadDim + lane * VPT;
    const int8_t* v = v_cache + (token_base + t) * HeadDim + lane * VPT;
    float dot = 0.f;
#pragma unroll
    for (int i = 0; i < VPT; ++i) dot += qf[i] * static_cast<float>(k[i]);
#pragma unroll
    for (int o = 16; o > 0; o /= 2) dot += __shfl_xor_sync(0xffffffff, dot, o);
    dot *= k_scales[token_base + t];

    const float m_new = fmaxf(m, dot);
    const float corr = __expf(m - m_new);
    const float p = __expf(dot - m_new);
    const float pv = p * v_scales[token_base + t];
    l = l * corr + p;
#pragma unroll
    for (int i = 0; i < VPT; ++i) of[i] = of[i] * corr + pv * static_cast<float>(v[i]);
    m = m_new;
  }

  if (lane == 0) {
    sm_m[warp] = m;
    sm_l[warp] = l;
  }
#pragma unroll
  for (int i = 0; i < VPT; ++i) sm_o[warp][lane * VPT + i] = of[i];
  __syncthreads();

  float m_all = sm_m[0];
  for (int w = 1; w < NumWarps; ++w) m_all = fmaxf(m_all, sm_m[w]);
  float l_all = 0.f;
  for (int w = 0; w < NumWarps; ++w) l_all += sm_l[w] * __expf(sm_m[w] - m_all);

  half* o = output + ((int64_t)batch_idx * num_heads + head_idx) * HeadDim;
  for (int d = threadIdx.x; d < HeadDim; d += NumWarps * 32) {
    float acc = 0.f;
    for (int w = 0; w < NumWarps; ++w) acc += sm_o[w][d] * __expf(sm_m[w] - m_all);
    o[d] = __float2half(l_all > 0.f ? acc / l_all : 0.f);
  }
}

void invoke_int8_kv_decode_attention(half* output, const half* query, const int8_t* k_cache,
                                     const int8_t* v_cache, const float* k_scales,
                                     const float* v_scales, const int* seq_lens, int batch,
                                     int num_heads, int num_kv_heads, int head_dim, int max_len,
                                     float softmax_scale, cudaStream_t stream) {
  constexpr int kNumWarps = 4;
  const dim3 grid(num_heads, batch);
  const dim3 block(kNumWarps * 32);
  switch (head_dim) {
    case 64:
      int8_kv_decode_attention<64, kNumWarps>
          <<<grid, block, 0, stream>>>(output, query, k_cache, v_cache, k_scales, v_scales,
                                       seq_lens, num_kv_heads, max_len, softmax_scale);
      break;
    case 128:
      int8_kv_decode_attention<128, kNumWarps>
          <<<grid, block, 0, stream>>>(output, query, k_cache, v_cache, k_scales, v_scales,
                                       seq_lens, num_kv_heads, max_len, softmax_scale);
      break;
    default:
      break;
  }
}
