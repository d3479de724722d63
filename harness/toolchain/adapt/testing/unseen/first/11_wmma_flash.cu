#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>
#include <cmath>

using namespace nvcuda;

// FlashAttention forward on tensor cores (wmma m16n16k16), fp16 in/out, fp32 accumulate.
// Layout of q, k, v, o: (batch, head, seq, 64)

constexpr int D = 64;
constexpr int Br = 64;  // 4 warps x 16 rows
constexpr int Bc = 32;
constexpr int WARPS = 4;
constexpr int THREADS = WARPS * 32;

__global__ void __launch_bounds__(THREADS)
    flash_wmma_kernel(const half* __restrict__ q, const half* __restrict__ k,
                      const half* __restrict__ v, half* __restrict__ o, int seqlen,
                      float softmax_scale) {
  __shared__ __align__(32) half sQ[Br * D];
  __shared__ __align__(32) half sK[Bc * D];
  __shared__ __align__(32) half sV[Bc * D];
  __shared__ __align__(32) float sS[Br * Bc];
  __shared__ __align__(32) half sP[Br * Bc];
  __shared__ __align__(32) float sO[Br * D];

  const int tid = threadIdx.x;
  const int warp = tid / 32;
  const int lane = tid % 32;
  const int q0 = blockIdx.x * Br;
  const size_t bh_off = (size_t)blockIdx.y * seqlen * D;

  for (int i = tid; i < Br * D; i += THREADS) {
    int r = q0 + i / D;
    sQ[i] = r < seqlen ? q[bh_off + (size_t)r * D + i % D] : __float2half(0.f);
    sO[i] = 0.f;
  }

  // two lanes share a row of the warp's 16-row strip
  const int my_row = warp * 16 + lane / 2;
  const int col0 = (lane & 1) * (Bc / 2);
  float m_run = -INFINITY, l_run = 0.f;

  for (int n0 = 0; n0 < seqlen; n0 += Bc) {
    __syncthreads();
    for (int i = tid; i < Bc * D; i += THREADS) {
      int r = n0 + i / D;
      sK[i] = r < seqlen ? k[bh_off + (size_t)r * D + i % D] : __float2half(0.f);
      sV[i] = r < seqlen ? v[bh_off + (size_t)r * D + i % D] : __float2half(0.f);
    }
    __syncthreads();

    // S = Q K^T
    for (int n = 0; n < Bc; n += 16) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
      wmma::fill_fragment(acc, 0.f);
      for (int kk = 0; kk < D; kk += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
        wmma::load_matrix_sync(a, sQ + warp * 16 * D + kk, D);
        wmma::load_matrix_sync(b, sK + n * D + kk, D);
        wmma::mma_sync(acc, a, b, acc);
      }
      wmma::store_matrix_sync(sS + warp * 16 * Bc + n, acc, Bc, wmma::mem_row_major);
    }
    __syncwarp();

    // online softmax
    float m_tile = -INFINITY;
    for (int c = col0; c < col0 + Bc / 2; c++) {
      if (n0 + c < seqlen) m_tile = fmaxf(m_tile, sS[my_row * Bc + c] * softmax_scale);
    }
    m_tile = fmaxf(m_tile, __shfl_xor_sync(0xffffffff, m_tile, 1));
    const float m_new = fmaxf(m_run, m_tile);
    const float alpha = expf(m_run - m_new);
    float l_tile = 0.f;
    for (int c = col0; c < col0 + Bc / 2; c++) {
      float p = n0 + c < seqlen ? expf(sS[my_row * Bc + c] * softmax_scale - m_new) : 0.f;
      sP[my_row * Bc + c] = __float2half(p);
      l_tile += p;
    }
    l_tile += __shfl_xor_sync(0xffffffff, l_tile, 1);
    l_run = l_run * alpha + l_tile;
    m_run = m_new;
    for (int c = (lane & 1) * (D / 2); c < ((lane & 1) + 1) * (D / 2); c++)
      sO[my_row * D + c] *= alpha;
    __syncwarp();

    // O += P V
    for (int n = 0; n < D; n += 16) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
      wmma::load_matrix_sync(acc, sO + warp * 16 * D + n, D, wmma::mem_row_major);
      for (int kk = 0; kk < Bc; kk += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
        wmma::load_matrix_sync(a, sP + warp * 16 * Bc + kk, Bc);
        wmma::load_matrix_sync(b, sV + kk * D + n, D);
        wmma::mma_sync(acc, a, b, acc);
      }
      wmma::store_matrix_sync(sO + warp * 16 * D + n, acc, D, wmma::mem_row_major);
    }
    __syncwarp();
  }

  const int row = q0 + my_row;
  if (row < seqlen) {
    for (int c = (lane & 1) * (D / 2); c < ((lane & 1) + 1) * (D / 2); c++)
      o[bh_off + (size_t)row * D + c] = __float2half(sO[my_row * D + c] / l_run);
  }
}

void flash_wmma_forward(const half* q, const half* k, const half* v, half* o, int batch, int nheads,
                        int seqlen, cudaStream_t stream = 0) {
  dim3 grid((seqlen + Br - 1) / Br, batch * nheads);
  flash_wmma_kernel<<<grid, THREADS, 0, stream>>>(q, k, v, o, seqlen, 1.0f / sqrtf((float)D));
}
