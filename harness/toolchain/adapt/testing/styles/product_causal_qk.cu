#include <cuda_runtime.h>
#include <math.h>
__global__ void masked_scores(const float* q, const float* k, float* scores, int seqlen,
                              int head_dim, float scale, bool causal) {
  const int row = blockIdx.x, bh = blockIdx.y;
  for (int j = threadIdx.x; j < seqlen; j += blockDim.x) {
    float s = 0.f;
    for (int d = 0; d < head_dim; ++d)
      s += q[((size_t)bh * seqlen + row) * head_dim + d] *
           k[((size_t)bh * seqlen + j) * head_dim + d];
    scores[((size_t)bh * seqlen + row) * seqlen + j] = causal && j > row ? -INFINITY : s * scale;
  }
}
void launch_scores(const float* q, const float* k, float* scores, int batch_size, int num_heads,
                   int seqlen, int head_dim, float softmax_scale, bool is_causal) {
  masked_scores<<<dim3(seqlen, batch_size * num_heads), 64>>>(q, k, scores, seqlen, head_dim,
                                                              softmax_scale, is_causal);
}
