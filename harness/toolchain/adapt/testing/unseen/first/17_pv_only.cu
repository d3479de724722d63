#include <cuda_runtime.h>

// context = probs @ value
//   probs:   [bsz, n_head, q_len, kv_len]  (already softmax'ed)
//   value:   [bsz, n_head, kv_len, hsize]
//   context: [bsz, q_len, n_head, hsize]   (heads merged back)
__global__ void attn_context_kernel(float* context, const float* probs, const float* value,
                                    int n_head, int q_len, int kv_len, int hsize) {
  int q = blockIdx.x;
  int h = blockIdx.y;
  int b = blockIdx.z;

  extern __shared__ float s_probs[];

  const float* p = probs + (((size_t)b * n_head + h) * q_len + q) * kv_len;
  const float* v = value + ((size_t)b * n_head + h) * kv_len * hsize;

  for (int j = threadIdx.x; j < kv_len; j += blockDim.x) s_probs[j] = p[j];
  __syncthreads();

  for (int d = threadIdx.x; d < hsize; d += blockDim.x) {
    float acc = 0.f;
#pragma unroll 4
    for (int j = 0; j < kv_len; ++j) acc = fmaf(s_probs[j], v[(size_t)j * hsize + d], acc);
    context[(((size_t)b * q_len + q) * n_head + h) * hsize + d] = acc;
  }
}

void launch_attn_context(float* context, const float* probs, const float* value, int bsz,
                         int n_head, int q_len, int kv_len, int hsize, cudaStream_t stream) {
  dim3 grid(q_len, n_head, bsz);
  int threads = hsize < 32 ? 32 : (hsize > 256 ? 256 : (hsize + 31) / 32 * 32);
  attn_context_kernel<<<grid, threads, kv_len * sizeof(float), stream>>>(
      context, probs, value, n_head, q_len, kv_len, hsize);
}
