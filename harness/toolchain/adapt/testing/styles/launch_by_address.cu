#include <cuda_runtime.h>
#include <math.h>
__global__ void sdpa_rows(const float* q, const float* k, const float* v, float* out, int seqlen,
                          int head_dim, float scale) {
  int i = blockIdx.x;
  size_t base = (size_t)blockIdx.y * seqlen * head_dim;
  if (threadIdx.x) return;
  float m = -INFINITY, l = 0;
  for (int d = 0; d < head_dim; ++d) out[base + (size_t)i * head_dim + d] = 0;
  for (int j = 0; j < seqlen; ++j) {
    float s = 0;
    for (int d = 0; d < head_dim; ++d)
      s += q[base + (size_t)i * head_dim + d] * k[base + (size_t)j * head_dim + d];
    s *= scale;
    float mn = fmaxf(m, s), a = expf(m - mn), p = expf(s - mn);
    for (int d = 0; d < head_dim; ++d) {
      float* o = &out[base + (size_t)i * head_dim + d];
      *o = *o * a + p * v[base + (size_t)j * head_dim + d];
    }
    l = l * a + p;
    m = mn;
  }
  for (int d = 0; d < head_dim; ++d) out[base + (size_t)i * head_dim + d] /= l;
}
int main() {
  int batch = 2, num_heads = 2, seqlen = 40, head_dim = 64;
  float scale = 1.0f / sqrtf((float)head_dim);
  float *q, *k, *v, *out;
  size_t n = (size_t)batch * num_heads * seqlen * head_dim * 4;
  cudaMalloc((void**)&q, n);
  cudaMalloc((void**)&k, n);
  cudaMalloc((void**)&v, n);
  cudaMalloc((void**)&out, n);
  void* args[] = {&q, &k, &v, &out, &seqlen, &head_dim, &scale};
  cudaLaunchKernel((const void*)sdpa_rows, dim3(seqlen, batch * num_heads), dim3(32), args, 0, 0);
  cudaDeviceSynchronize();
}
