// INT8 Q and K by dp4a, V in half. q_scale, k_scale: [batch, heads]
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void sage_rows(const char4* __restrict__ q, const char4* __restrict__ k,
                          const half* __restrict__ v, const float* __restrict__ q_scale,
                          const float* __restrict__ k_scale, half* __restrict__ out, int heads,
                          int n, int d, float softmax_scale) {
  const int head = blockIdx.y, batch = blockIdx.z;
  const int idx = batch * heads + head;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float factor = q_scale[idx] * k_scale[idx] * softmax_scale;
  float m = -INFINITY, l = 0.f, acc[128];
  for (int c = 0; c < d; ++c) acc[c] = 0.f;
  for (int j = 0; j < n; ++j) {
    int dot = 0;
    for (int c = 0; c < d / 4; ++c) {
      const char4 a = q[((size_t)idx * n + i) * (d / 4) + c],
                  b = k[((size_t)idx * n + j) * (d / 4) + c];
      dot += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    const float s = dot * factor;
    const float next = fmaxf(m, s), alpha = expf(m - next), p = expf(s - next);
    m = next;
    l = l * alpha + p;
    for (int c = 0; c < d; ++c)
      acc[c] = acc[c] * alpha + p * __half2float(v[((size_t)idx * n + j) * d + c]);
  }
  for (int c = 0; c < d; ++c) out[((size_t)idx * n + i) * d + c] = __float2half(acc[c] / l);
}

void sage_attention(const char4* q, const char4* k, const half* v, const float* q_scale,
                    const float* k_scale, half* out, int batch, int heads, int n, int d,
                    float softmax_scale) {
  sage_rows<<<dim3((n + 63) / 64, heads, batch), 64>>>(q, k, v, q_scale, k_scale, out, heads, n, d,
                                                       softmax_scale);
}
