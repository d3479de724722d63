// scores = alpha * Q K^T, upper triangle -inf if asked; register-tiled, 64x64 per block, 4x4 per thread
// The softmax lives in another file (fused with dropout).
#include <cuda_runtime.h>
#include <math_constants.h>

namespace {
constexpr int BM = 64, BN = 64, BK = 16, TM = 4, TN = 4;
}

__global__ __launch_bounds__(256) void batched_qk_gemm(int M, int N, int K, float alpha,
                                                       const float* __restrict__ A,
                                                       long long strideA,
                                                       const float* __restrict__ B,
                                                       long long strideB, float* __restrict__ C,
                                                       long long strideC, bool lower) {
  A += blockIdx.z * strideA;
  B += blockIdx.z * strideB;
  C += blockIdx.z * strideC;
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  const int ty = threadIdx.x / (BN / TN), tx = threadIdx.x % (BN / TN);

  if (lower && n0 > m0 + BM - 1) {  // nothing to multiply here
    for (int i = 0; i < TM; i++)
      for (int j = 0; j < TN; j++) {
        int m = m0 + ty * TM + i, n = n0 + tx * TN + j;
        if (m < M && n < N) C[(long long)m * N + n] = -CUDART_INF_F;
      }
    return;
  }

  __shared__ float As[BK][BM + 4], Bs[BK][BN + 4];
  float acc[TM][TN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int t = threadIdx.x; t < BM * BK; t += 256) {
      int r = t / BK, c = t % BK;
      As[c][r] = (m0 + r < M && k0 + c < K) ? A[(long long)(m0 + r) * K + k0 + c] : 0.f;
      Bs[c][r] = (n0 + r < N && k0 + c < K) ? B[(long long)(n0 + r) * K + k0 + c] : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; k++) {
      float4 a = *reinterpret_cast<const float4*>(&As[k][ty * TM]);
      float4 b = *reinterpret_cast<const float4*>(&Bs[k][tx * TN]);
      float ar[TM] = {a.x, a.y, a.z, a.w}, br[TN] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) acc[i][j] += ar[i] * br[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; i++)
    for (int j = 0; j < TN; j++) {
      int m = m0 + ty * TM + i, n = n0 + tx * TN + j;
      if (m < M && n < N)
        C[(long long)m * N + n] = (lower && n > m) ? -CUDART_INF_F : alpha * acc[i][j];
    }
}

void attention_scores(const float* query, const float* key, float* scores, int batch, int heads,
                      int q_len, int k_len, int head_size, float alpha, bool causal,
                      cudaStream_t stream) {
  dim3 grid((k_len + BN - 1) / BN, (q_len + BM - 1) / BM, batch * heads);
  batched_qk_gemm<<<grid, 256, 0, stream>>>(
      q_len, k_len, head_size, alpha, query, (long long)q_len * head_size, key,
      (long long)k_len * head_size, scores, (long long)q_len * k_len, causal);
}
