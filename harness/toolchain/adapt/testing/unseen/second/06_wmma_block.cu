// Fused attention with the WMMA API. Blog post code, see part 3 ("tensor cores at last").
//
// One block = one warp group of 4 warps = 64 queries of one (batch, head). Every warp owns 16 rows.
// HEAD_DIM is a compile time constant, rebuild for another one.

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>
#include <cstdio>
#include <vector>

using namespace nvcuda;

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif

const int kWarps = 4;
const int kRows = 16;        // per warp
const int kKeys = 32;        // per iteration
const int kLdS = kKeys + 4;  // floats
const int kLdP = kKeys + 8;  // halves
const int kLdO = HEAD_DIM + 4;

struct WarpScratch {
  float s[kRows * kLdS];
  half p[kRows * kLdP];
  float o[kRows * kLdO];
};

struct Smem {
  half q[kWarps * kRows * HEAD_DIM];
  half k[kKeys * HEAD_DIM];
  half v[kKeys * HEAD_DIM];
  WarpScratch w[kWarps];
};

__global__ void attention_wmma(const half* __restrict__ q, const half* __restrict__ k,
                               const half* __restrict__ v, half* __restrict__ out, int seq_len,
                               float scale) {
  extern __shared__ __align__(128) unsigned char raw[];
  Smem& sm = *reinterpret_cast<Smem*>(raw);

  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const size_t head = (size_t)blockIdx.y * seq_len * HEAD_DIM;
  const int q0 = blockIdx.x * kWarps * kRows;

  for (int i = threadIdx.x; i < kWarps * kRows * HEAD_DIM; i += blockDim.x) {
    int row = q0 + i / HEAD_DIM;
    sm.q[i] = row < seq_len ? q[head + (size_t)q0 * HEAD_DIM + i] : __float2half(0.0f);
  }
  WarpScratch& ws = sm.w[warp];
  for (int i = lane; i < kRows * kLdO; i += 32) ws.o[i] = 0.0f;

  // two lanes per row in the softmax
  const int srow = lane / 2;
  const int shalf = lane % 2;
  float row_max = -1e30f, row_sum = 0.0f;

  for (int k0 = 0; k0 < seq_len; k0 += kKeys) {
    __syncthreads();
    for (int i = threadIdx.x; i < kKeys * HEAD_DIM; i += blockDim.x) {
      bool ok = k0 + i / HEAD_DIM < seq_len;
      sm.k[i] = ok ? k[head + (size_t)k0 * HEAD_DIM + i] : __float2half(0.0f);
      sm.v[i] = ok ? v[head + (size_t)k0 * HEAD_DIM + i] : __float2half(0.0f);
    }
    __syncthreads();

    // S = Q K^T
    for (int n = 0; n < kKeys; n += 16) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
      wmma::fill_fragment(c, 0.0f);
      for (int d = 0; d < HEAD_DIM; d += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
        wmma::load_matrix_sync(a, sm.q + warp * kRows * HEAD_DIM + d, HEAD_DIM);
        wmma::load_matrix_sync(b, sm.k + n * HEAD_DIM + d, HEAD_DIM);
        wmma::mma_sync(c, a, b, c);
      }
      wmma::store_matrix_sync(ws.s + n, c, kLdS, wmma::mem_row_major);
    }
    __syncwarp();

    // online softmax
    float m = row_max;
    for (int j = shalf; j < kKeys; j += 2)
      if (k0 + j < seq_len) m = fmaxf(m, ws.s[srow * kLdS + j] * scale);
    m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 1));
    float sum = 0.0f;
    for (int j = shalf; j < kKeys; j += 2) {
      float p = k0 + j < seq_len ? __expf(ws.s[srow * kLdS + j] * scale - m) : 0.0f;
      sum += p;
      ws.p[srow * kLdP + j] = __float2half(p);
    }
    sum += __shfl_xor_sync(0xffffffff, sum, 1);
    float alpha = __expf(row_max - m);
    row_sum = row_sum * alpha + sum;
    row_max = m;
    for (int d = shalf; d < HEAD_DIM; d += 2) ws.o[srow * kLdO + d] *= alpha;
    __syncwarp();

    // O += P V
    for (int d = 0; d < HEAD_DIM; d += 16) {
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
      wmma::load_matrix_sync(c, ws.o + d, kLdO, wmma::mem_row_major);
      for (int n = 0; n < kKeys; n += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
        wmma::load_matrix_sync(a, ws.p + n, kLdP);
        wmma::load_matrix_sync(b, sm.v + n * HEAD_DIM + d, HEAD_DIM);
        wmma::mma_sync(c, a, b, c);
      }
      wmma::store_matrix_sync(ws.o + d, c, kLdO, wmma::mem_row_major);
    }
    __syncwarp();
  }

  int row = q0 + warp * kRows + srow;
  if (row < seq_len)
    for (int d = shalf; d < HEAD_DIM; d += 2)
      out[head + (size_t)row * HEAD_DIM + d] = __float2half(ws.o[srow * kLdO + d] / row_sum);
}

cudaError_t launch_attention_wmma(half* out, const half* q, const half* k, const half* v,
                                  int batch_heads, int seq_len, float scale,
                                  cudaStream_t stream = 0) {
  cudaError_t e = cudaFuncSetAttribute(attention_wmma, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       sizeof(Smem));
  if (e != cudaSuccess) return e;
  dim3 grid((seq_len + kWarps * kRows - 1) / (kWarps * kRows), batch_heads);
  attention_wmma<<<grid, kWarps * 32, sizeof(Smem), stream>>>(q, k, v, out, seq_len, scale);
  return cudaGetLastError();
}
