/*
 * One generation step. The qkv row of the current token is the output of the fused QKV projection;
 * its k and v are appended to the caches at position `step`, then the token attends to 0 .. step.
 */
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
struct Masked_mha_params {
  const T* qkv;  // [batch][(num_heads + 2 * num_kv_heads) * size_per_head]
  T* k_cache;    // [batch][num_kv_heads][memory_max_len][size_per_head]
  T* v_cache;    // [batch][num_kv_heads][memory_max_len][size_per_head]
  T* out;        // [batch][num_heads * size_per_head]
  int batch_size, num_heads, num_kv_heads, size_per_head;
  int memory_max_len;
  int step;
  float inv_sqrt_dh;
};

template <typename T>
__global__ void append_kv_kernel(Masked_mha_params<T> p) {
  const int kvh = blockIdx.x, b = blockIdx.y, d = threadIdx.x;
  const T* row = p.qkv + (size_t)b * (p.num_heads + 2 * p.num_kv_heads) * p.size_per_head;
  const size_t at =
      (((size_t)b * p.num_kv_heads + kvh) * p.memory_max_len + p.step) * p.size_per_head + d;
  p.k_cache[at] = row[(p.num_heads + kvh) * p.size_per_head + d];
  p.v_cache[at] = row[(p.num_heads + p.num_kv_heads + kvh) * p.size_per_head + d];
}

// block: one head of one sequence, size_per_head threads (a multiple of 32)
template <typename T>
__global__ void masked_multihead_attention_kernel(Masked_mha_params<T> p) {
  extern __shared__ float smem[];
  const int dh = p.size_per_head;
  float* q_smem = smem;            // dh
  float* red_smem = q_smem + dh;   // 32
  float* qk_smem = red_smem + 32;  // step + 1

  const int hi = blockIdx.x, bi = blockIdx.y, tid = threadIdx.x;
  const int lane = tid % 32, warp = tid / 32, warps = blockDim.x / 32;
  const int kvh = hi / (p.num_heads / p.num_kv_heads);
  const T* k = p.k_cache + ((size_t)bi * p.num_kv_heads + kvh) * p.memory_max_len * dh;
  const T* v = p.v_cache + ((size_t)bi * p.num_kv_heads + kvh) * p.memory_max_len * dh;

  q_smem[tid] = (float)p.qkv[((size_t)bi * (p.num_heads + 2 * p.num_kv_heads) + hi) * dh + tid];
  __syncthreads();

  float qk_max = -3.4e38f;
  for (int ti = warp; ti <= p.step; ti += warps) {
    float qk = 0.f;
    for (int d = lane; d < dh; d += 32) qk += q_smem[d] * (float)k[(size_t)ti * dh + d];
    for (int mask = 16; mask > 0; mask >>= 1) qk += __shfl_xor_sync(0xffffffffu, qk, mask);
    qk *= p.inv_sqrt_dh;
    if (lane == 0) qk_smem[ti] = qk;
    qk_max = fmaxf(qk_max, qk);
  }
  if (lane == 0) red_smem[warp] = qk_max;
  __syncthreads();
  qk_max = red_smem[lane % warps];
  for (int mask = 16; mask > 0; mask >>= 1)
    qk_max = fmaxf(qk_max, __shfl_xor_sync(0xffffffffu, qk_max, mask));

  // every thread adds up all logits of its own: the same number in each of them
  float sum = 0.f, acc = 0.f;
  for (int ti = 0; ti <= p.step; ++ti) {
    const float logit = __expf(qk_smem[ti] - qk_max);
    sum += logit;
    acc += logit * (float)v[(size_t)ti * dh + tid];
  }
  p.out[((size_t)bi * p.num_heads + hi) * dh + tid] = (T)(acc / (sum + 1.e-20f));
}

template <typename T>
void invokeMaskedMultiheadAttention(const Masked_mha_params<T>& params, cudaStream_t stream) {
  append_kv_kernel<T>
      <<<dim3(params.num_kv_heads, params.batch_size), params.size_per_head, 0, stream>>>(params);
  const size_t smem = (params.size_per_head + 32 + params.step + 1) * sizeof(float);
  masked_multihead_attention_kernel<T>
      <<<dim3(params.num_heads, params.batch_size), params.size_per_head, smem, stream>>>(params);
}

template void invokeMaskedMultiheadAttention(const Masked_mha_params<float>&, cudaStream_t);
template void invokeMaskedMultiheadAttention(const Masked_mha_params<__half>&, cudaStream_t);
