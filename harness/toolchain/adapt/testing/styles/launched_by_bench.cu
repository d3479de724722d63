#include <cuda_runtime.h>
#include <math.h>
#include <cstdio>
constexpr int BLOCK_Q = 32;
constexpr int BLOCK_KV = 16;
constexpr int HEAD_DIM = 64;
__global__ void flash_v2(const float* __restrict__ Q, const float* __restrict__ K,
                         const float* __restrict__ V, float* __restrict__ O, int seq_len,
                         float softmax_scale) {
  extern __shared__ float smem[];
  float* sK = smem;
  float* sV = smem + BLOCK_KV * HEAD_DIM;
  const int tid = threadIdx.x;
  const int hd = blockIdx.x;
  const int q_row = blockIdx.y * BLOCK_Q + tid;
  const long base = (long)hd * seq_len * HEAD_DIM;
  float o[HEAD_DIM];
  for (int d = 0; d < HEAD_DIM; ++d) o[d] = 0.f;
  float m_prev = -INFINITY, l = 0.f;
  for (int kv = 0; kv < seq_len; kv += BLOCK_KV) {
    for (int i = tid; i < BLOCK_KV * HEAD_DIM; i += blockDim.x) {
      int r = i / HEAD_DIM;
      sK[i] = kv + r < seq_len ? K[base + (long)kv * HEAD_DIM + i] : 0.f;
      sV[i] = kv + r < seq_len ? V[base + (long)kv * HEAD_DIM + i] : 0.f;
    }
    __syncthreads();
    if (q_row < seq_len)
      for (int j = 0; j < BLOCK_KV && kv + j < seq_len; ++j) {
        float s = 0.f;
        for (int d = 0; d < HEAD_DIM; ++d)
          s += Q[base + (long)q_row * HEAD_DIM + d] * sK[j * HEAD_DIM + d];
        s *= softmax_scale;
        float m_new = fmaxf(m_prev, s);
        float alpha = __expf(m_prev - m_new), p = __expf(s - m_new);
        l = l * alpha + p;
        for (int d = 0; d < HEAD_DIM; ++d) o[d] = o[d] * alpha + p * sV[j * HEAD_DIM + d];
        m_prev = m_new;
      }
    __syncthreads();
  }
  if (q_row < seq_len)
    for (int d = 0; d < HEAD_DIM; ++d) O[base + (long)q_row * HEAD_DIM + d] = o[d] / l;
}
void benchmark(int batch, int num_heads, int seq_len) {
  float *q, *k, *v, *o;
  size_t n = (size_t)batch * num_heads * seq_len * HEAD_DIM;
  cudaMalloc(&q, n * sizeof(float));
  cudaMalloc(&k, n * sizeof(float));
  cudaMalloc(&v, n * sizeof(float));
  cudaMalloc(&o, n * sizeof(float));
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  int smem_size = 2 * BLOCK_KV * HEAD_DIM * sizeof(float);
  dim3 grid(batch * num_heads, (seq_len + BLOCK_Q - 1) / BLOCK_Q);
  for (int i = 0; i < 5; ++i)
    flash_v2<<<grid, BLOCK_Q, smem_size>>>(q, k, v, o, seq_len, 1.f / sqrtf(HEAD_DIM));
  cudaEventRecord(start);
  for (int i = 0; i < 100; ++i)
    flash_v2<<<grid, BLOCK_Q, smem_size>>>(q, k, v, o, seq_len, 1.f / sqrtf(HEAD_DIM));
  cudaEventRecord(stop);
  cudaEventSynchronize(stop);
  float ms;
  cudaEventElapsedTime(&ms, start, stop);
  printf("%f\n", ms / 100);
}
