// Half precision in, single precision out, as kernels with fp32 accumulators often leave it.
#include <cuda_fp16.h>
#include <math.h>

template <int BLOCK, int D>
__global__ void attention_rows(const half* Q, const half* K, const half* V, float* O, int N,
                               float scale) {
  const int row = blockIdx.x * BLOCK + threadIdx.x, h = blockIdx.y;
  if (row >= N) return;
  float m = -INFINITY, l = 0, acc[D] = {};
  const half* q = Q + ((size_t)h * N + row) * D;
  for (int j = 0; j < N; ++j) {
    const size_t at = ((size_t)h * N + j) * D;
    float x = 0;
    for (int d = 0; d < D; ++d) x += __half2float(q[d]) * __half2float(K[at + d]);
    x *= scale;
    const float top = fmaxf(m, x), a = __expf(m - top), p = __expf(x - top);
    l = l * a + p;
    for (int d = 0; d < D; ++d) acc[d] = acc[d] * a + p * __half2float(V[at + d]);
    m = top;
  }
  for (int d = 0; d < D; ++d) O[((size_t)h * N + row) * D + d] = acc[d] / l;
}

void launch_attention(const half* Q, const half* K, const half* V, float* O, int B, int H, int N,
                      int D, cudaStream_t stream) {
  const float scale = 1.f / sqrtf((float)D);
  const dim3 grid((N + 63) / 64, B * H);
  if (D == 32) attention_rows<64, 32><<<grid, 64, 0, stream>>>(Q, K, V, O, N, scale);
  if (D == 64) attention_rows<64, 64><<<grid, 64, 0, stream>>>(Q, K, V, O, N, scale);
}
