// Multi-head attention forward, one thread block per (batch, head, query row).
// Scores for the row live in shared memory.
#include <cuda_runtime.h>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                                       \
  do {                                                                                         \
    cudaError_t err_ = (call);                                                                 \
    if (err_ != cudaSuccess) {                                                                 \
      fprintf(stderr, "CUDA error %s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
      exit(EXIT_FAILURE);                                                                      \
    }                                                                                          \
  } while (0)

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

__device__ __forceinline__ float warp_max(float v) {
  for (int off = 16; off > 0; off >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, off));
  return v;
}

__device__ __forceinline__ float warp_sum(float v) {
  for (int off = 16; off > 0; off >>= 1) v += __shfl_xor_sync(0xffffffff, v, off);
  return v;
}

__global__ void mha_forward_kernel(const float* __restrict__ Q, const float* __restrict__ K,
                                   const float* __restrict__ V, float* __restrict__ O,
                                   int num_heads, int seq_len, int head_dim, float scale) {
  extern __shared__ float smem[];
  float* scores = smem;           // [seq_len]
  float* q_row = smem + seq_len;  // [head_dim]
  __shared__ float red[kWarps];

  const int row = blockIdx.x;
  const int head = blockIdx.y;
  const int batch = blockIdx.z;
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;

  const size_t base = ((size_t)batch * num_heads + head) * seq_len * head_dim;
  const float* k = K + base;
  const float* v = V + base;

  for (int d = tid; d < head_dim; d += kThreads) q_row[d] = Q[base + (size_t)row * head_dim + d];
  __syncthreads();

  float local_max = -FLT_MAX;
  for (int j = tid; j < seq_len; j += kThreads) {
    float dot = 0.f;
    for (int d = 0; d < head_dim; ++d) dot += q_row[d] * k[(size_t)j * head_dim + d];
    dot *= scale;
    scores[j] = dot;
    local_max = fmaxf(local_max, dot);
  }
  local_max = warp_max(local_max);
  if (lane == 0) red[warp] = local_max;
  __syncthreads();
  float row_max = red[0];
  for (int w = 1; w < kWarps; ++w) row_max = fmaxf(row_max, red[w]);
  __syncthreads();

  float local_sum = 0.f;
  for (int j = tid; j < seq_len; j += kThreads) {
    float e = expf(scores[j] - row_max);
    scores[j] = e;
    local_sum += e;
  }
  local_sum = warp_sum(local_sum);
  if (lane == 0) red[warp] = local_sum;
  __syncthreads();
  float row_sum = 0.f;
  for (int w = 0; w < kWarps; ++w) row_sum += red[w];
  const float inv = 1.f / row_sum;

  for (int d = tid; d < head_dim; d += kThreads) {
    float acc = 0.f;
    for (int j = 0; j < seq_len; ++j) acc += scores[j] * v[(size_t)j * head_dim + d];
    O[base + (size_t)row * head_dim + d] = acc * inv;
  }
}

void mha_forward(const float* d_Q, const float* d_K, const float* d_V, float* d_O, int batch_size,
                 int num_heads, int seq_len, int head_dim, cudaStream_t stream) {
  const float scale = 1.0f / sqrtf((float)head_dim);
  dim3 grid(seq_len, num_heads, batch_size);
  size_t smem = (seq_len + head_dim) * sizeof(float);
  mha_forward_kernel<<<grid, kThreads, smem, stream>>>(d_Q, d_K, d_V, d_O, num_heads, seq_len,
                                                       head_dim, scale);
  CUDA_CHECK(cudaGetLastError());
}
