#include <cuda_runtime.h>
#include <math.h>
// [batch, heads, seqlen, head_dim]
__global__ void attn_fwd(const float* q, const float* k, const float* v, float* o,
                         const float* sm_scale, int heads, int seqlen, int head_dim) {
  int i = blockIdx.x, h = blockIdx.y, b = blockIdx.z;
  if (threadIdx.x != 0) return;
  size_t base = ((size_t)b * heads + h) * seqlen * head_dim;
  float c = *sm_scale;
  float m = -INFINITY, l = 0;
  for (int j = 0; j < seqlen; ++j) {
    float s = 0;
    for (int d = 0; d < head_dim; ++d) s += q[base + i * head_dim + d] * k[base + j * head_dim + d];
    m = fmaxf(m, s * c);
  }
  for (int j = 0; j < seqlen; ++j) {
    float s = 0;
    for (int d = 0; d < head_dim; ++d) s += q[base + i * head_dim + d] * k[base + j * head_dim + d];
    l += expf(s * c - m);
  }
  for (int d = 0; d < head_dim; ++d) {
    float a = 0;
    for (int j = 0; j < seqlen; ++j) {
      float s = 0;
      for (int e = 0; e < head_dim; ++e)
        s += q[base + i * head_dim + e] * k[base + j * head_dim + e];
      a += expf(s * c - m) * v[base + j * head_dim + d];
    }
    o[base + i * head_dim + d] = a / l;
  }
}
void attention(const float* q, const float* k, const float* v, float* o, const float* sm_scale,
               int batch, int heads, int seqlen, int head_dim, cudaStream_t stream) {
  attn_fwd<<<dim3(seqlen, heads, batch), 32, 0, stream>>>(q, k, v, o, sm_scale, heads, seqlen,
                                                          head_dim);
}
