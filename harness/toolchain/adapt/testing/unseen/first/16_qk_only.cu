#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cmath>

// Attention logits only:  S[b,h,i,j] = scale * sum_d Q[b,h,i,d] * K[b,h,j,d]
// 64x64 output tile, 16x16 threads, 4x4 outputs per thread.

static const int BM = 64;
static const int BN = 64;
static const int BK = 16;
static const int TM = 4;
static const int TN = 4;

__global__ void qk_scores_kernel(const __half* Q, const __half* K, float* S, int len_q, int len_k,
                                 int head_dim, float scale) {
  __shared__ float Qs[BK][BM];
  __shared__ float Ks[BK][BN];

  const int bh = blockIdx.z;
  const int row0 = blockIdx.y * BM;
  const int col0 = blockIdx.x * BN;
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
  const int nthreads = blockDim.x * blockDim.y;

  Q += (size_t)bh * len_q * head_dim;
  K += (size_t)bh * len_k * head_dim;
  S += (size_t)bh * len_q * len_k;

  float acc[TM][TN] = {};

  for (int k0 = 0; k0 < head_dim; k0 += BK) {
    for (int e = tid; e < BM * BK; e += nthreads) {
      int r = e / BK, c = e % BK;
      bool in = row0 + r < len_q && k0 + c < head_dim;
      Qs[c][r] = in ? __half2float(Q[(size_t)(row0 + r) * head_dim + k0 + c]) : 0.f;
    }
    for (int e = tid; e < BN * BK; e += nthreads) {
      int r = e / BK, c = e % BK;
      bool in = col0 + r < len_k && k0 + c < head_dim;
      Ks[c][r] = in ? __half2float(K[(size_t)(col0 + r) * head_dim + k0 + c]) : 0.f;
    }
    __syncthreads();

#pragma unroll
    for (int kk = 0; kk < BK; kk++) {
      float a[TM], b[TN];
      for (int i = 0; i < TM; i++) a[i] = Qs[kk][threadIdx.y * TM + i];
      for (int j = 0; j < TN; j++) b[j] = Ks[kk][threadIdx.x * TN + j];
      for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j++) acc[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }

  for (int i = 0; i < TM; i++) {
    int r = row0 + threadIdx.y * TM + i;
    if (r >= len_q) continue;
    for (int j = 0; j < TN; j++) {
      int c = col0 + threadIdx.x * TN + j;
      if (c < len_k) S[(size_t)r * len_k + c] = acc[i][j] * scale;
    }
  }
}

void compute_qk_scores(const __half* Q, const __half* K, float* S, int batch, int heads, int len_q,
                       int len_k, int head_dim, cudaStream_t stream) {
  dim3 block(BN / TN, BM / TM);
  dim3 grid((len_k + BN - 1) / BN, (len_q + BM - 1) / BM, batch * heads);
  qk_scores_kernel<<<grid, block, 0, stream>>>(Q, K, S, len_q, len_k, head_dim,
                                               1.0f / sqrtf((float)head_dim));
}
