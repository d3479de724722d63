#include <cuda_runtime.h>
#include <math.h>
// tokens are [seq][heads][dim]
__global__ void attend(const float* q, const float* k, const float* v, float* o, int n_heads,
                       int n_tokens, int head_dim) {
  int h = blockIdx.y, i = blockIdx.x;
  if (threadIdx.x != 0) return;
  int row = n_heads * head_dim;
  float m = -INFINITY;
  float l = 0.f;
  float sc = 1.f / sqrtf((float)head_dim);
  for (int j = 0; j < n_tokens; ++j) {
    float s = 0;
    for (int d = 0; d < head_dim; ++d)
      s += q[i * row + h * head_dim + d] * k[j * row + h * head_dim + d];
    m = fmaxf(m, s * sc);
  }
  for (int d = 0; d < head_dim; ++d) o[i * row + h * head_dim + d] = 0;
  for (int j = 0; j < n_tokens; ++j) {
    float s = 0;
    for (int d = 0; d < head_dim; ++d)
      s += q[i * row + h * head_dim + d] * k[j * row + h * head_dim + d];
    float p = expf(s * sc - m);
    l += p;
    for (int d = 0; d < head_dim; ++d)
      o[i * row + h * head_dim + d] += p * v[j * row + h * head_dim + d];
  }
  for (int d = 0; d < head_dim; ++d) o[i * row + h * head_dim + d] /= l;
}
void mha(const float* q, const float* k, const float* v, float* o, int n_heads, int n_tokens,
         int head_dim) {
  attend<<<dim3(n_tokens, n_heads), 32>>>(q, k, v, o, n_heads, n_tokens, head_dim);
}
