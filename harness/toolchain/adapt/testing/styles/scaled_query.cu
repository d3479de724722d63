#include <cuda_runtime.h>

// q is prescaled; q, k, v and out are [B * H, S, D].
__global__ void attend(const float* q, const float* k, const float* v, float* out, int S, int D) {
  extern __shared__ float p[];
  const int row = blockIdx.y * S + blockIdx.x, first = blockIdx.y * S;
  float m = -INFINITY, l = 0.f;
  for (int j = 0; j < S; ++j) {
    float dot = 0.f;
    for (int d = 0; d < D; ++d) dot += q[row * D + d] * k[(first + j) * D + d];
    p[j] = dot;
    m = fmaxf(m, dot);
  }
  for (int j = 0; j < S; ++j) l += expf(p[j] - m);
  for (int d = 0; d < D; ++d) {
    float sum = 0.f;
    for (int j = 0; j < S; ++j) sum += expf(p[j] - m) * v[(first + j) * D + d];
    out[row * D + d] = sum / l;
  }
}

void attention(const float* q, const float* k, const float* v, float* out, int BH, int S, int D,
               cudaStream_t stream) {
  attend<<<dim3(S, BH), 1, S * sizeof(float), stream>>>(q, k, v, out, S, D);
}
