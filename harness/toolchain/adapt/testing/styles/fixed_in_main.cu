#include <cuda_runtime.h>
#include <math.h>
#include <vector>
template <int kSeqLen, int kHeadDim, int kThreads>
__global__ void kernel_v1(const float* q, const float* k, const float* v, float* o, float scale) {
  const int row = blockIdx.x;
  const long off = (long)blockIdx.y * kSeqLen * kHeadDim;
  __shared__ float s_p[kSeqLen];
  for (int j = threadIdx.x; j < kSeqLen; j += kThreads) {
    float s = 0;
    for (int d = 0; d < kHeadDim; ++d) s += q[off + row * kHeadDim + d] * k[off + j * kHeadDim + d];
    s_p[j] = s * scale;
  }
  __syncthreads();
  float m = -INFINITY, sum = 0;
  for (int j = 0; j < kSeqLen; ++j) m = fmaxf(m, s_p[j]);
  for (int j = 0; j < kSeqLen; ++j) {
    float p = expf(s_p[j] - m);
    sum += p;
  }
  for (int d = threadIdx.x; d < kHeadDim; d += kThreads) {
    float a = 0;
    for (int j = 0; j < kSeqLen; ++j) a += expf(s_p[j] - m) * v[off + j * kHeadDim + d];
    o[off + row * kHeadDim + d] = a / sum;
  }
}
int main() {
  constexpr int B = 1, H = 2, S = 80, D = 32;
  constexpr size_t n = B * H * S * D;
  float *q, *k, *v, *o;
  cudaMalloc(&q, n * 4);
  cudaMalloc(&k, n * 4);
  cudaMalloc(&v, n * 4);
  cudaMalloc(&o, n * 4);
  kernel_v1<S, D, 64><<<dim3(S, B * H), 64>>>(q, k, v, o, 1.f / sqrtf((float)D));
  return (int)cudaDeviceSynchronize();
}
