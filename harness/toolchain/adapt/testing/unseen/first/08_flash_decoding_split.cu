// Flash-Decoding: split the KV sequence over blocks, then merge partial results.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>

#define DIM 128
#define NTHREADS 128

__inline__ __device__ float blockReduceSum(float val, float* buf) {
  const int lane = threadIdx.x & 31, wid = threadIdx.x >> 5;
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) val += __shfl_xor_sync(0xffffffff, val, o);
  __syncthreads();
  if (lane == 0) buf[wid] = val;
  __syncthreads();
  val = 0.f;
#pragma unroll
  for (int w = 0; w < NTHREADS / 32; w++) val += buf[w];
  return val;
}

// q:        [B, H, DIM]
// k/v:      [B, S, Hkv, DIM]
// part_o:   [B, H, num_splits, DIM]   normalised inside the split
// part_lse: [B, H, num_splits]
__global__ void decode_split_kernel(const __half* __restrict__ q, const __half* __restrict__ k,
                                    const __half* __restrict__ v, float* __restrict__ part_o,
                                    float* __restrict__ part_lse, int H, int Hkv, int S,
                                    int split_len, float scale) {
  __shared__ float buf[NTHREADS / 32];
  const int h = blockIdx.x, b = blockIdx.y, split = blockIdx.z;
  const int num_splits = gridDim.z;
  const int kvh = h / (H / Hkv);
  const int d = threadIdx.x;

  const float qv = __half2float(q[(b * H + h) * DIM + d]) * scale;
  const int start = split * split_len;
  const int end = min(S, start + split_len);

  float m = -INFINITY, l = 0.f, acc = 0.f;
  for (int s = start; s < end; s++) {
    const size_t off = (((size_t)b * S + s) * Hkv + kvh) * DIM + d;
    const float logit = blockReduceSum(qv * __half2float(k[off]), buf);
    const float mn = fmaxf(m, logit);
    const float c = __expf(m - mn), p = __expf(logit - mn);
    l = l * c + p;
    acc = acc * c + p * __half2float(v[off]);
    m = mn;
  }

  const size_t idx = ((size_t)b * H + h) * num_splits + split;
  part_o[idx * DIM + d] = l > 0.f ? acc / l : 0.f;
  if (d == 0) part_lse[idx] = l > 0.f ? m + logf(l) : -INFINITY;
}

__global__ void decode_combine_kernel(const float* __restrict__ part_o,
                                      const float* __restrict__ part_lse, __half* __restrict__ out,
                                      int num_splits) {
  const int bh = blockIdx.x;
  const int d = threadIdx.x;
  const float* lse = part_lse + (size_t)bh * num_splits;

  float mx = -INFINITY;
  for (int i = 0; i < num_splits; i++) mx = fmaxf(mx, lse[i]);
  float sum = 0.f, acc = 0.f;
  for (int i = 0; i < num_splits; i++) {
    const float w = expf(lse[i] - mx);
    sum += w;
    acc += w * part_o[((size_t)bh * num_splits + i) * DIM + d];
  }
  out[(size_t)bh * DIM + d] = __float2half(acc / sum);
}

size_t flash_decode_workspace_size(int B, int H, int num_splits) {
  return (size_t)B * H * num_splits * (DIM + 1) * sizeof(float);
}

void flash_decode(const __half* q, const __half* k, const __half* v, __half* out, void* workspace,
                  int B, int H, int Hkv, int S, int num_splits, cudaStream_t stream) {
  float* part_o = reinterpret_cast<float*>(workspace);
  float* part_lse = part_o + (size_t)B * H * num_splits * DIM;
  const int split_len = (S + num_splits - 1) / num_splits;
  const float scale = 1.f / sqrtf((float)DIM);

  dim3 grid(H, B, num_splits);
  decode_split_kernel<<<grid, NTHREADS, 0, stream>>>(q, k, v, part_o, part_lse, H, Hkv, S,
                                                     split_len, scale);
  decode_combine_kernel<<<B * H, DIM, 0, stream>>>(part_o, part_lse, out, num_splits);
}
