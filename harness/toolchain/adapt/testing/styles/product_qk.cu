#include <cuda_fp16.h>
#include <cuda_runtime.h>
// Raw attention logits, to be scaled by whoever reads them.
__global__ void qk_logits_kernel(const half* Q, const half* K, half* scores, int N, int d) {
  int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  size_t bh = blockIdx.z;
  if (i >= N || j >= N) return;
  float s = 0.f;
  for (int x = 0; x < d; ++x)
    s += __half2float(Q[(bh * N + i) * d + x]) * __half2float(K[(bh * N + j) * d + x]);
  scores[(bh * N + i) * N + j] = __float2half(s);
}
void qk_logits(const half* Q, const half* K, half* scores, int batch, int heads, int N, int d,
               cudaStream_t stream) {
  dim3 block(16, 16), grid((N + 15) / 16, (N + 15) / 16, batch * heads);
  qk_logits_kernel<<<grid, block, 0, stream>>>(Q, K, scores, N, d);
}
