#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>

// Cross attention of the decoder (speech model): text tokens look at the encoder's states.
//   Q   (B, Tdec, dModel)
//   KV  (B, Tenc, 2, dModel)     one projection, K then V
//   Out (B, Tdec, dModel)        dModel = nHead * 64
// Whole softmax row in shared memory. 4 decoder tokens per block so that KV is read less often.

static const int DH = 64;
static const int TOK = 4;

__global__ void crossAttnKernel(const half2* Q, const half2* KV, half2* Out, int Tdec, int Tenc,
                                int nHead) {
  extern __shared__ float sc[];  // TOK x Tenc
  __shared__ float2 qs[TOK][DH / 2];
  __shared__ float invSum[TOK];

  const int stride2 = nHead * DH / 2;  // half2 per dModel
  const int h = blockIdx.y, b = blockIdx.z;
  const int t0 = blockIdx.x * TOK;
  const int nTok = min(TOK, Tdec - t0);
  const half2* K = KV + (size_t)b * Tenc * 2 * stride2 + h * (DH / 2);
  const half2* V = K + stride2;

  if (threadIdx.x < TOK * (DH / 2)) {
    int t = threadIdx.x / (DH / 2), i = threadIdx.x % (DH / 2);
    qs[t][i] = t < nTok
                   ? __half22float2(Q[((size_t)b * Tdec + t0 + t) * stride2 + h * (DH / 2) + i])
                   : make_float2(0.f, 0.f);
  }
  __syncthreads();

  // 1. scores, a thread per encoder frame, all tokens at once
  for (int e = threadIdx.x; e < Tenc; e += blockDim.x) {
    float s[TOK] = {0.f, 0.f, 0.f, 0.f};
    const half2* kr = K + (size_t)e * 2 * stride2;
    for (int i = 0; i < DH / 2; i++) {
      float2 kf = __half22float2(kr[i]);
      for (int t = 0; t < TOK; t++) s[t] += qs[t][i].x * kf.x + qs[t][i].y * kf.y;
    }
    for (int t = 0; t < TOK; t++) sc[t * Tenc + e] = s[t] * 0.125f;  // 1/sqrt(64)
  }
  __syncthreads();

  // 2. softmax, a warp per token
  int w = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (w < TOK) {
    float* row = sc + w * Tenc;
    float mx = -INFINITY, sum = 0.f;
    for (int e = lane; e < Tenc; e += 32) mx = fmaxf(mx, row[e]);
    for (int o = 16; o; o >>= 1) mx = fmaxf(mx, __shfl_xor_sync(0xffffffff, mx, o));
    for (int e = lane; e < Tenc; e += 32) {
      row[e] = __expf(row[e] - mx);
      sum += row[e];
    }
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
    if (lane == 0) invSum[w] = 1.f / sum;
  }
  __syncthreads();

  // 3. weighted sum: 128 threads = 4 tokens x 32 half2 columns
  int t = threadIdx.x / (DH / 2), i = threadIdx.x % (DH / 2);
  if (t < nTok) {
    float2 acc = make_float2(0.f, 0.f);
    for (int e = 0; e < Tenc; e++) {
      float2 vf = __half22float2(V[(size_t)e * 2 * stride2 + i]);
      float p = sc[t * Tenc + e];
      acc.x += p * vf.x;
      acc.y += p * vf.y;
    }
    Out[((size_t)b * Tdec + t0 + t) * stride2 + h * (DH / 2) + i] =
        __floats2half2_rn(acc.x * invSum[t], acc.y * invSum[t]);
  }
}

void crossAttention(const half* Q, const half* KV, half* Out, int B, int Tdec, int Tenc, int nHead,
                    cudaStream_t s) {
  dim3 grid((Tdec + TOK - 1) / TOK, nHead, B);
  crossAttnKernel<<<grid, 128, TOK * Tenc * sizeof(float), s>>>((const half2*)Q, (const half2*)KV,
                                                                (half2*)Out, Tdec, Tenc, nHead);
}
