#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
__global__ void softmax_v_kernel(const float* scores, const half* v, half* o, int seqlen,
                                 int head_dim) {
  const int i = blockIdx.x;
  const size_t bh = blockIdx.y;
  const float* s = scores + (bh * seqlen + i) * seqlen;
  float mx = -INFINITY, sum = 0.f;
  for (int j = 0; j < seqlen; ++j) mx = fmaxf(mx, s[j]);
  for (int j = 0; j < seqlen; ++j) sum += expf(s[j] - mx);
  for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
    float acc = 0.f;
    for (int j = 0; j < seqlen; ++j)
      acc += expf(s[j] - mx) * __half2float(v[(bh * seqlen + j) * head_dim + d]);
    o[(bh * seqlen + i) * head_dim + d] = __float2half(acc / sum);
  }
}
void softmax_times_v(const float* scores, const half* v, half* o, int batch, int heads, int seqlen,
                     int head_dim) {
  softmax_v_kernel<<<dim3(seqlen, batch * heads), 64>>>(scores, v, o, seqlen, head_dim);
}
