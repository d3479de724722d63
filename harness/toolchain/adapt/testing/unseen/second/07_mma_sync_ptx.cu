#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cstdint>

// FA2-style forward, mma.sync.m16n8k16 bf16, 4 warps, Br = 64, Bc = 64, two-stage cp.async for K/V.
// Q K V O: [bs, head, len, DIM] contiguous, LSE: [bs, head, len]

typedef __nv_bfloat16 bf16;

#define LDMATRIX_X4(R0, R1, R2, R3, addr)                                        \
  asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0,%1,%2,%3}, [%4];\n" \
               : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3)                          \
               : "r"(addr))
#define LDMATRIX_X4_T(R0, R1, R2, R3, addr)                                            \
  asm volatile("ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 {%0,%1,%2,%3}, [%4];\n" \
               : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3)                                \
               : "r"(addr))
#define MMA_BF16(C, A0, A1, A2, A3, B0, B1)                     \
  asm volatile(                                                 \
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "    \
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n" \
      : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])          \
      : "r"(A0), "r"(A1), "r"(A2), "r"(A3), "r"(B0), "r"(B1))
#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))

__device__ __forceinline__ void cp_async16_zfill(uint32_t dst, const void* src, bool pred) {
  int n = pred ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(n));
}

__device__ __forceinline__ uint32_t pack2(float lo, float hi) {
  __nv_bfloat162 t = __floats2bfloat162_rn(lo, hi);
  return *reinterpret_cast<uint32_t*>(&t);
}

template <int DIM>
struct Tile {
  static constexpr int ROWS = 64, LD = DIM + 8, BYTES = ROWS * LD * 2;
  static __device__ void load(uint32_t dst, const bf16* src, int first, int len) {
    for (int i = threadIdx.x; i < ROWS * DIM / 8; i += 128) {
      int r = i / (DIM / 8), c = i % (DIM / 8) * 8;
      bool in = first + r < len;
      cp_async16_zfill(dst + (r * LD + c) * 2, src + (size_t)(in ? first + r : 0) * DIM + c, in);
    }
  }
};

template <int DIM, bool CAUSAL>
__global__ void __launch_bounds__(128) fa_mma(const bf16* Q, const bf16* K, const bf16* V, bf16* O,
                                              float* LSE, int len, float scale_log2) {
  extern __shared__ __align__(16) uint8_t smem[];
  using T = Tile<DIM>;
  const uint32_t sQ = (uint32_t)__cvta_generic_to_shared(smem);
  const uint32_t sK = sQ + T::BYTES, sV = sK + 2 * T::BYTES;

  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t4 = lane & 3;
  const int q0 = blockIdx.x * 64;
  const size_t off = (size_t)blockIdx.y * len * DIM;
  Q += off, K += off, V += off, O += off;

  const int n_tiles = CAUSAL ? min((len + 63) / 64, (int)blockIdx.x + 1) : (len + 63) / 64;

  T::load(sQ, Q, q0, len);
  T::load(sK, K, 0, len);
  T::load(sV, V, 0, len);
  CP_ASYNC_COMMIT();

  uint32_t qf[DIM / 16][4];
  float acc[DIM / 8][4] = {};
  float mrow[2] = {-INFINITY, -INFINITY}, lrow[2] = {0.f, 0.f};

  for (int it = 0; it < n_tiles; ++it) {
    const int buf = it & 1;
    if (it + 1 < n_tiles) {
      T::load(sK + (buf ^ 1) * T::BYTES, K, (it + 1) * 64, len);
      T::load(sV + (buf ^ 1) * T::BYTES, V, (it + 1) * 64, len);
      CP_ASYNC_COMMIT();
      CP_ASYNC_WAIT(1);
    } else {
      CP_ASYNC_WAIT(0);
    }
    __syncthreads();

    if (it == 0) {
#pragma unroll
      for (int kk = 0; kk < DIM / 16; ++kk) {
        uint32_t a = sQ + ((warp * 16 + (lane & 15)) * T::LD + kk * 16 + (lane >> 4) * 8) * 2;
        LDMATRIX_X4(qf[kk][0], qf[kk][1], qf[kk][2], qf[kk][3], a);
      }
    }

    float s[8][4] = {};
#pragma unroll
    for (int kk = 0; kk < DIM / 16; ++kk) {
#pragma unroll
      for (int nn = 0; nn < 4; ++nn) {
        uint32_t b0, b1, b2, b3;
        int key = nn * 16 + (lane & 7) + (lane >> 4) * 8;
        int col = kk * 16 + ((lane >> 3) & 1) * 8;
        LDMATRIX_X4(b0, b1, b2, b3, sK + buf * T::BYTES + (key * T::LD + col) * 2);
        MMA_BF16(s[2 * nn], qf[kk][0], qf[kk][1], qf[kk][2], qf[kk][3], b0, b1);
        MMA_BF16(s[2 * nn + 1], qf[kk][0], qf[kk][1], qf[kk][2], qf[kk][3], b2, b3);
      }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = q0 + warp * 16 + g + half * 8;
      float mx = mrow[half];
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n][half * 2 + e];
          const int key = it * 64 + n * 8 + t4 * 2 + e;
          x = (key < len && (!CAUSAL || key <= row)) ? x * scale_log2 : -INFINITY;
          mx = fmaxf(mx, x);
        }
      mx = fmaxf(mx, __shfl_xor_sync(0xffffffff, mx, 1));
      mx = fmaxf(mx, __shfl_xor_sync(0xffffffff, mx, 2));
      const float fix = exp2f(mrow[half] - mx);
      float sum = 0.f;
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n][half * 2 + e];
          x = exp2f(x - mx);
          sum += x;
        }
      lrow[half] = lrow[half] * fix + sum;  // this thread's columns only, summed up at the end
      mrow[half] = mx;
#pragma unroll
      for (int d = 0; d < DIM / 8; ++d) acc[d][half * 2] *= fix, acc[d][half * 2 + 1] *= fix;
    }

#pragma unroll
    for (int kk = 0; kk < 4; ++kk) {
      uint32_t a0 = pack2(s[2 * kk][0], s[2 * kk][1]), a1 = pack2(s[2 * kk][2], s[2 * kk][3]);
      uint32_t a2 = pack2(s[2 * kk + 1][0], s[2 * kk + 1][1]),
               a3 = pack2(s[2 * kk + 1][2], s[2 * kk + 1][3]);
#pragma unroll
      for (int d = 0; d < DIM / 16; ++d) {
        uint32_t b0, b1, b2, b3;
        int key = kk * 16 + (lane & 15);
        LDMATRIX_X4_T(b0, b1, b2, b3,
                      sV + buf * T::BYTES + (key * T::LD + d * 16 + (lane >> 4) * 8) * 2);
        MMA_BF16(acc[2 * d], a0, a1, a2, a3, b0, b1);
        MMA_BF16(acc[2 * d + 1], a0, a1, a2, a3, b2, b3);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float l = lrow[half];
    l += __shfl_xor_sync(0xffffffff, l, 1);
    l += __shfl_xor_sync(0xffffffff, l, 2);
    const int row = q0 + warp * 16 + g + half * 8;
    if (row >= len) continue;
    for (int d = 0; d < DIM / 8; ++d)
      *reinterpret_cast<uint32_t*>(O + (size_t)row * DIM + d * 8 + t4 * 2) =
          pack2(acc[d][half * 2] / l, acc[d][half * 2 + 1] / l);
    if (t4 == 0) LSE[(size_t)blockIdx.y * len + row] = mrow[half] * 0.6931471805599453f + logf(l);
  }
}

template <int DIM>
static cudaError_t go(const bf16* q, const bf16* k, const bf16* v, bf16* o, float* lse, int bs,
                      int head, int len, float scale, bool causal, cudaStream_t st) {
  auto kern = causal ? fa_mma<DIM, true> : fa_mma<DIM, false>;
  const int bytes = 5 * Tile<DIM>::BYTES;
  cudaError_t err =
      cudaFuncSetAttribute((const void*)kern, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (err != cudaSuccess) return err;
  kern<<<dim3((len + 63) / 64, bs * head), 128, bytes, st>>>(q, k, v, o, lse, len,
                                                             scale * 1.4426950408889634f);
  return cudaGetLastError();
}

cudaError_t flash_attn_bf16(const void* q, const void* k, const void* v, void* o, float* lse,
                            int bs, int head, int len, int dim, float scale, bool causal,
                            cudaStream_t st) {
  const bf16 *Q = (const bf16*)q, *K = (const bf16*)k, *V = (const bf16*)v;
  if (dim == 64) return go<64>(Q, K, V, (bf16*)o, lse, bs, head, len, scale, causal, st);
  if (dim == 128) return go<128>(Q, K, V, (bf16*)o, lse, bs, head, len, scale, causal, st);
  return cudaErrorInvalidValue;
}
