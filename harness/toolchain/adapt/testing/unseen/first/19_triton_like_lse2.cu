// CUDA port of the Triton fused-attention tutorial (forward).
// M holds the log2 of the row sums:  M = max + log2(sum),  with everything in base 2.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define BLOCK_M 32
#define BLOCK_N 32
#define LOG2E 1.44269504f

template <int BLOCK_DMODEL, bool CAUSAL>
__global__ void _attn_fwd(const half* Q, const half* K, const half* V, float sm_scale, float* M,
                          half* Out, int stride_qz, int stride_qh, int stride_qm, int stride_kz,
                          int stride_kh, int stride_kn, int stride_vz, int stride_vh, int stride_vn,
                          int stride_oz, int stride_oh, int stride_om, int Z, int H, int N_CTX) {
  __shared__ half k_s[BLOCK_N][BLOCK_DMODEL];
  __shared__ half v_s[BLOCK_N][BLOCK_DMODEL];
  __shared__ float p_s[BLOCK_M][BLOCK_N + 1];
  // 4 threads share a query row, each one owns BLOCK_DMODEL / 4 columns
  constexpr int TPR = 4;
  constexpr int COLS = BLOCK_DMODEL / TPR;

  const int start_m = blockIdx.x;
  const int off_z = blockIdx.y / H;
  const int off_h = blockIdx.y % H;
  const int r = threadIdx.x / TPR;
  const int c = threadIdx.x % TPR;
  const int m = start_m * BLOCK_M + r;

  Q += (long long)off_z * stride_qz + (long long)off_h * stride_qh;
  K += (long long)off_z * stride_kz + (long long)off_h * stride_kh;
  V += (long long)off_z * stride_vz + (long long)off_h * stride_vh;
  Out += (long long)off_z * stride_oz + (long long)off_h * stride_oh;

  const float qk_scale = sm_scale * LOG2E;
  float q[COLS], acc[COLS];
  for (int i = 0; i < COLS; i++) {
    q[i] = m < N_CTX ? __half2float(Q[m * stride_qm + c * COLS + i]) : 0.f;
    acc[i] = 0.f;
  }
  float m_i = -INFINITY, l_i = 0.f;

  const int hi = CAUSAL ? min((start_m + 1) * BLOCK_M, N_CTX) : N_CTX;
  for (int start_n = 0; start_n < hi; start_n += BLOCK_N) {
    for (int t = threadIdx.x; t < BLOCK_N * BLOCK_DMODEL; t += BLOCK_M * TPR) {
      const int n = t / BLOCK_DMODEL, d = t % BLOCK_DMODEL;
      const bool ok = start_n + n < N_CTX;
      k_s[n][d] = ok ? K[(start_n + n) * stride_kn + d] : __float2half(0.f);
      v_s[n][d] = ok ? V[(start_n + n) * stride_vn + d] : __float2half(0.f);
    }
    __syncthreads();

    // -- compute qk ----
    float m_ij = m_i;
    for (int n = 0; n < BLOCK_N; n++) {
      float qk = 0.f;
      for (int i = 0; i < COLS; i++) qk += q[i] * __half2float(k_s[n][c * COLS + i]);
      qk += __shfl_xor_sync(0xffffffff, qk, 1);
      qk += __shfl_xor_sync(0xffffffff, qk, 2);
      qk *= qk_scale;
      const bool keep = start_n + n < N_CTX && (!CAUSAL || start_n + n <= m);
      if (!keep) qk = -INFINITY;
      if (c == 0) p_s[r][n] = qk;
      m_ij = fmaxf(m_ij, qk);
    }
    __syncwarp();
    // -- update acc --
    const float m_safe = m_ij == -INFINITY ? 0.f : m_ij;
    const float alpha = exp2f(m_i - m_safe);
    l_i *= alpha;
    for (int i = 0; i < COLS; i++) acc[i] *= alpha;
    for (int n = 0; n < BLOCK_N; n++) {
      const float p = exp2f(p_s[r][n] - m_safe);
      l_i += p;
      for (int i = 0; i < COLS; i++) acc[i] += p * __half2float(v_s[n][c * COLS + i]);
    }
    m_i = m_ij;
    __syncthreads();
  }

  if (m < N_CTX) {
    for (int i = 0; i < COLS; i++) Out[m * stride_om + c * COLS + i] = __float2half(acc[i] / l_i);
    if (c == 0) M[(long long)blockIdx.y * N_CTX + m] = m_i + log2f(l_i);
  }
}

// q, k, v, o: (Z, H, N_CTX, HEAD_DIM) seen through their strides (last one is 1); M: (Z, H, N_CTX)
template <int HEAD_DIM>
void attn_fwd(const half* q, const half* k, const half* v, half* o, float* M, int Z, int H,
              int N_CTX, float sm_scale, bool causal, const int q_strides[3],
              const int k_strides[3], const int v_strides[3], const int o_strides[3],
              cudaStream_t stream) {
  dim3 grid((N_CTX + BLOCK_M - 1) / BLOCK_M, Z * H);
  auto kernel = causal ? &_attn_fwd<HEAD_DIM, true> : &_attn_fwd<HEAD_DIM, false>;
  kernel<<<grid, BLOCK_M * 4, 0, stream>>>(q, k, v, sm_scale, M, o, q_strides[0], q_strides[1],
                                           q_strides[2], k_strides[0], k_strides[1], k_strides[2],
                                           v_strides[0], v_strides[1], v_strides[2], o_strides[0],
                                           o_strides[1], o_strides[2], Z, H, N_CTX);
}

template void attn_fwd<64>(const half*, const half*, const half*, half*, float*, int, int, int,
                           float, bool, const int*, const int*, const int*, const int*,
                           cudaStream_t);
