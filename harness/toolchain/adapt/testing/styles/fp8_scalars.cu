// All three inputs in FP8 (E4M3), each with one descale factor on the host; the output in bf16.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

template <int kHeadDim>
__global__ void fp8_fwd_kernel(const __nv_fp8_e4m3* Q, const __nv_fp8_e4m3* K,
                               const __nv_fp8_e4m3* V, __nv_bfloat16* O, int H, int N,
                               float qk_scale, float descale_v) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  const size_t base = (size_t)(blockIdx.z * H + blockIdx.y) * N;
  float acc[kHeadDim] = {}, m = -1e30f, l = 0.f;
  for (int j = 0; j < N; ++j) {
    float s = 0.f;
    for (int d = 0; d < kHeadDim; ++d)
      s += float(Q[(base + i) * kHeadDim + d]) * float(K[(base + j) * kHeadDim + d]);
    s *= qk_scale;
    const float mn = fmaxf(m, s), a = __expf(m - mn), p = __expf(s - mn);
    l = l * a + p;
    m = mn;
    for (int d = 0; d < kHeadDim; ++d)
      acc[d] = acc[d] * a + p * float(V[(base + j) * kHeadDim + d]);
  }
  for (int d = 0; d < kHeadDim; ++d)
    O[(base + i) * kHeadDim + d] = __float2bfloat16(acc[d] * descale_v / l);
}

// Q, K, V: [B, H, N, D]
cudaError_t fp8_attention_fwd(const __nv_fp8_e4m3* Q, const __nv_fp8_e4m3* K,
                              const __nv_fp8_e4m3* V, __nv_bfloat16* O, float descale_q,
                              float descale_k, float descale_v, int B, int H, int N, int D,
                              float softmax_scale) {
  if (D != 64) return cudaErrorInvalidValue;
  fp8_fwd_kernel<64><<<dim3((N + 31) / 32, H, B), 32>>>(
      Q, K, V, O, H, N, softmax_scale * descale_q * descale_k, descale_v);
  return cudaGetLastError();
}
