#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
__global__ void qk_kernel(const half* Q, const half* K, half* S, int N, int d, float scale) {
  int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  size_t bh = blockIdx.z;
  if (i >= N || j >= N) return;
  float s = 0.f;
  for (int x = 0; x < d; ++x)
    s += __half2float(Q[(bh * N + i) * d + x]) * __half2float(K[(bh * N + j) * d + x]);
  S[(bh * N + i) * N + j] = __float2half(s * scale);
}
__global__ void row_softmax(half* S, int N) {
  half* row = S + ((size_t)blockIdx.y * N + blockIdx.x) * N;
  if (threadIdx.x) return;
  float mx = -INFINITY, sum = 0.f;
  for (int j = 0; j < N; ++j) mx = fmaxf(mx, __half2float(row[j]));
  for (int j = 0; j < N; ++j) sum += expf(__half2float(row[j]) - mx);
  for (int j = 0; j < N; ++j) row[j] = __float2half(expf(__half2float(row[j]) - mx) / sum);
}
__global__ void pv_kernel(const half* P, const half* V, half* O, int N, int d) {
  int i = blockIdx.x;
  size_t bh = blockIdx.y;
  for (int x = threadIdx.x; x < d; x += blockDim.x) {
    float a = 0.f;
    for (int j = 0; j < N; ++j)
      a += __half2float(P[(bh * N + i) * N + j]) * __half2float(V[(bh * N + j) * d + x]);
    O[(bh * N + i) * d + x] = __float2half(a);
  }
}
void attention_3pass(const half* Q, const half* K, const half* V, half* S, half* O, int batch,
                     int heads, int N, int d, float scale, cudaStream_t stream) {
  dim3 block(16, 16), grid((N + 15) / 16, (N + 15) / 16, batch * heads);
  qk_kernel<<<grid, block, 0, stream>>>(Q, K, S, N, d, scale);
  row_softmax<<<dim3(N, batch * heads), 32, 0, stream>>>(S, N);
  pv_kernel<<<dim3(N, batch * heads), 64, 0, stream>>>(S, V, O, N, d);
}
