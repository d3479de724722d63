/* SWA prefill for the 7B port.  hidden layout [B][S][H][D], bf16.
 *
 * token i attends to tokens  max(0, i - window + 1) .. i      (window counts the token itself)
 *
 * band of scores fits in smem, so no online softmax: pass 1 scores+max, pass 2 exp+sum, pass 3 PV.
 */
#include <assert.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define SWA_THREADS 64
#define SWA_MAX_BAND 4096

static __device__ float swa_dot(const __nv_bfloat162* a, const __nv_bfloat162* b, int n2) {
  float acc = 0.f;
  for (int i = 0; i < n2; i++) {
    float2 x = __bfloat1622float2(a[i]);
    float2 y = __bfloat1622float2(b[i]);
    acc += x.x * y.x;
    acc += x.y * y.y;
  }
  return acc;
}

__global__ void swa_prefill_kernel(const __nv_bfloat16* xq, const __nv_bfloat16* xk,
                                   const __nv_bfloat16* xv, __nv_bfloat16* xo, int S, int H,
                                   int KVH, int D, int window, float scale) {
  extern __shared__ float band[];
  __shared__ float warp_red[2][SWA_THREADS / 32];

  const int i = blockIdx.x;
  const int h = blockIdx.y;
  const int b = blockIdx.z;
  const int kvh = h / (H / KVH);
  const int lo = max(0, i - window + 1);
  const int n = i - lo + 1;

  const __nv_bfloat162* q = (const __nv_bfloat162*)(xq + (((int64_t)b * S + i) * H + h) * D);

  float mx = -INFINITY;
  for (int j = threadIdx.x; j < n; j += SWA_THREADS) {
    const __nv_bfloat162* k =
        (const __nv_bfloat162*)(xk + (((int64_t)b * S + lo + j) * KVH + kvh) * D);
    float s = swa_dot(q, k, D / 2) * scale;
    band[j] = s;
    mx = fmaxf(mx, s);
  }
  for (int o = 16; o > 0; o >>= 1) mx = fmaxf(mx, __shfl_xor_sync(0xffffffff, mx, o));
  if ((threadIdx.x & 31) == 0) warp_red[0][threadIdx.x >> 5] = mx;
  __syncthreads();
  mx = fmaxf(warp_red[0][0], warp_red[0][1]);

  float sum = 0.f;
  for (int j = threadIdx.x; j < n; j += SWA_THREADS) {
    float e = __expf(band[j] - mx);
    band[j] = e;
    sum += e;
  }
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
  if ((threadIdx.x & 31) == 0) warp_red[1][threadIdx.x >> 5] = sum;
  __syncthreads();
  const float rden = 1.f / (warp_red[1][0] + warp_red[1][1]);

  for (int d = threadIdx.x; d < D; d += SWA_THREADS) {
    const __nv_bfloat16* v = xv + (((int64_t)b * S + lo) * KVH + kvh) * D + d;
    float acc = 0.f;
    for (int j = 0; j < n; j++) acc += band[j] * __bfloat162float(v[(int64_t)j * KVH * D]);
    xo[(((int64_t)b * S + i) * H + h) * D + d] = __float2bfloat16(acc * rden);
  }
}

void swa_prefill(__nv_bfloat16* xo, const __nv_bfloat16* xq, const __nv_bfloat16* xk,
                 const __nv_bfloat16* xv, int B, int S, int H, int KVH, int D, int window,
                 float scale) {
  int band = window < S ? window : S;
  assert(D % 2 == 0 && H % KVH == 0 && band <= SWA_MAX_BAND);
  dim3 grid(S, H, B);
  swa_prefill_kernel<<<grid, SWA_THREADS, band * sizeof(float)>>>(xq, xk, xv, xo, S, H, KVH, D,
                                                                  window, scale);
}
