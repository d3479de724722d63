// Mistral style sliding window attention (prefill).
// token i attends to tokens max(0, i - window + 1) .. i
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>

#define NUM_THREADS 128

struct MaxOp {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct SumOp {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename Op>
__device__ float blockAllReduce(float val, Op op, float init) {
  __shared__ float shared[32];
  int lane = threadIdx.x % 32;
  int wid = threadIdx.x / 32;
  for (int offset = 16; offset > 0; offset /= 2)
    val = op(val, __shfl_down_sync(0xffffffff, val, offset));
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  if (wid == 0) {
    val = lane < blockDim.x / 32 ? shared[lane] : init;
    for (int offset = 16; offset > 0; offset /= 2)
      val = op(val, __shfl_down_sync(0xffffffff, val, offset));
    if (lane == 0) shared[0] = val;
  }
  __syncthreads();
  float result = shared[0];
  __syncthreads();
  return result;
}

__global__ void swa_prefill(const half* __restrict__ q,  // [bs, nh, sl, hd]
                            const half* __restrict__ k,  // [bs, nkv, sl, hd]
                            const half* __restrict__ v,  // [bs, nkv, sl, hd]
                            int window, int sl, int nh, int nkv, int hd,
                            half* __restrict__ o)  // [bs, nh, sl, hd]
{
  extern __shared__ float sm[];
  float* sq = sm;      // hd
  float* p = sm + hd;  // window

  int i = blockIdx.x;
  int h = blockIdx.y % nh;
  int b = blockIdx.y / nh;
  int kvh = h * nkv / nh;
  float scale = rsqrtf((float)hd);

  const half* qrow = q + (((size_t)b * nh + h) * sl + i) * hd;
  const half* kb = k + ((size_t)b * nkv + kvh) * sl * hd;
  const half* vb = v + ((size_t)b * nkv + kvh) * sl * hd;

  for (int d = threadIdx.x; d < hd; d += blockDim.x) sq[d] = __half2float(qrow[d]) * scale;
  __syncthreads();

  int first = max(0, i - window + 1);
  int count = i - first + 1;

  float mx = -CUDART_INF_F;
  for (int j = threadIdx.x; j < count; j += blockDim.x) {
    const half* krow = kb + (size_t)(first + j) * hd;
    float s = 0.f;
    for (int d = 0; d < hd; d += 2) {
      float2 kk = __half22float2(*reinterpret_cast<const half2*>(krow + d));
      s += sq[d] * kk.x + sq[d + 1] * kk.y;
    }
    p[j] = s;
    mx = fmaxf(mx, s);
  }
  mx = blockAllReduce(mx, MaxOp(), -CUDART_INF_F);

  float sum = 0.f;
  for (int j = threadIdx.x; j < count; j += blockDim.x) {
    p[j] = __expf(p[j] - mx);
    sum += p[j];
  }
  sum = blockAllReduce(sum, SumOp(), 0.f);

  half* orow = o + (((size_t)b * nh + h) * sl + i) * hd;
  for (int d = threadIdx.x; d < hd; d += blockDim.x) {
    float acc = 0.f;
    for (int j = 0; j < count; j++) acc += p[j] * __half2float(vb[(size_t)(first + j) * hd + d]);
    orow[d] = __float2half_rn(acc / sum);
  }
}

void sliding_window_attention(const half* q, const half* k, const half* v, half* o, int bs, int nh,
                              int nkv, int sl, int hd, int window, cudaStream_t stream) {
  dim3 grid(sl, bs * nh);
  size_t smem = (hd + window) * sizeof(float);
  swa_prefill<<<grid, NUM_THREADS, smem, stream>>>(q, k, v, window, sl, nh, nkv, hd, o);
}
