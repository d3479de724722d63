// Kernels whose static shared memory is laid out as nvcc does. One row a block of 32 threads; fp32, BHSD.
#include <attn_diag/kernels/bring.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

struct State {
  __device__ State() {}
  float m, l;
};

__device__ void attend_row(const float* q, const float* k, const float* v, float* o, float* lse,
                           int sk, int d, float scale) {
  const int i = blockIdx.x, h = blockIdx.y, sq = gridDim.x;
  if (threadIdx.x != 0) return;
  const float* row = q + (h * sq + i) * d;
  float m = -INFINITY, l = 0;
  for (int j = 0; j < sk; ++j) {
    float s = 0;
    for (int x = 0; x < d; ++x) s += row[x] * k[(h * sk + j) * d + x];
    m = fmaxf(m, s * scale);
  }
  for (int x = 0; x < d; ++x) o[(h * sq + i) * d + x] = 0;
  for (int j = 0; j < sk; ++j) {
    float s = 0;
    for (int x = 0; x < d; ++x) s += row[x] * k[(h * sk + j) * d + x];
    const float p = expf(s * scale - m);
    l += p;
    for (int x = 0; x < d; ++x) o[(h * sq + i) * d + x] += p * v[(h * sk + j) * d + x];
  }
  for (int x = 0; x < d; ++x) o[(h * sq + i) * d + x] /= l;
  lse[h * sq + i] = m + logf(l);
}
#define ARGS \
  const float *q, const float *k, const float *v, float *o, float *lse, int sk, int d, float scale
#define PASS q, k, v, o, lse, sk, d, scale
template <class T>
__device__ void load_tile(T* tile) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a;
  for (int e = threadIdx.x; e < 256; e += 32) tile[e] = T(1.0f);
  __syncwarp();
  wmma::load_matrix_sync(a, tile, 16);
}
__global__ void aligned_16(ARGS) {
  __shared__ State state[2];
  __shared__ alignas(16) half tile[16 * 16];  // at 16
  state[threadIdx.x % 2].m = 1;
  load_tile(tile);
  attend_row(PASS);
  if (threadIdx.x == 0 && state[0].m > 1) o[0] = 0;
}
__global__ void undeclared_first(ARGS) {
  __shared__ half tile[16 * 16];
  load_tile(tile);
  attend_row(PASS);
}
__global__ void undeclared_behind(ARGS) {
  __shared__ half a[3];
  __shared__ half tile[16 * 16];  // at 6
  if (threadIdx.x < 3) a[threadIdx.x] = half(0.0f);
  load_tile(tile);
  attend_row(PASS);
  if (threadIdx.x == 0 && a[0] > half(1.0f)) o[0] = 0;
}
__global__ void behind_unread(ARGS) {
  __shared__ half never[3];
  __shared__ State state[1];
  __shared__ half a[3];
  __shared__ half tile[16 * 16];  // at 0: nvcc leaves out what is only stored to
  if (threadIdx.x < 3) a[threadIdx.x] = half(0.0f);
  if (threadIdx.x == 0) state[0].m = 1;
  load_tile(tile);
  attend_row(PASS);
}
template <bool kOther>
__device__ void tile_behind(ARGS) {
  __shared__ half tile[16 * 16];  // behind what the caller has
  load_tile(tile);
  attend_row(PASS);
}
template <bool kOther>
__global__ void behind_other_branch(ARGS) {
  __shared__ half a[3];
  __shared__ half tile[16 * 16];  // at 0: the branch that uses `a` is not of this instance
  if (kOther) {
    a[threadIdx.x % 3] = half(q[0]);
    __syncwarp();
    o[0] = a[1];
  }
  load_tile(tile);
  attend_row(PASS);
}
__global__ void of_a_function(ARGS) {
  __shared__ float a[8];
  a[threadIdx.x % 8] = 1;
  __syncwarp();
  if (a[sk % 8] > 0) tile_behind<false>(PASS);
}
__global__ void past_end_by_little(ARGS) {
  __shared__ half p[15 * 24];  // 720 bytes: the next variable begins 48 bytes behind it
  __shared__ half b[32];
  b[threadIdx.x] = half(0.0f);
  for (int i = threadIdx.x; i < 15 * 24 + 16; i += 32) p[i + sk - sk] = half(1.0f);
  attend_row(PASS);
}
__global__ void past_end(ARGS) {
  __shared__ float a[32];
  __shared__ float b[32];
  a[threadIdx.x] = b[threadIdx.x] = 0;
  if (threadIdx.x == 3) a[threadIdx.x + sk + 25] = 1;
  attend_row(PASS);
}
__global__ void past_dynamic(ARGS) {
  extern __shared__ float s[];
  s[threadIdx.x] = 0;
  if (threadIdx.x == 3) s[32 + sk] = 1;
  attend_row(PASS);
}
__global__ void zero_sized(ARGS) {
  __shared__ float none[0];
  __shared__ float b[32];
  b[threadIdx.x] = 0;
  none[threadIdx.x] = 0;
  attend_row(PASS);
}
__global__ void local_atomic(ARGS) {
  int count[2] = {0, 0};
  atomicAdd(&count[sk % 2], 1);
  attend_row(PASS);
  if (count[sk % 2] > 1) o[0] = 0;
}
__global__ void misaligned(ARGS) {
  __shared__ alignas(16) float a[64];
  a[threadIdx.x] = 0;
  *reinterpret_cast<float4*>(a + sk % 2 + 1) = make_float4(q[0], q[1], q[2], q[3]);
  attend_row(PASS);
}
__global__ void null_store(ARGS) {
  attend_row(PASS);
  if (blockIdx.x == 1) *reinterpret_cast<float*>(threadIdx.x * 4) = 0;
}
#define ONE(kernel, bytes)                                                                   \
  {                                                                                          \
    .name = #kernel,                                                                         \
    .call =                                                                                  \
        [](const attn_diag::Call& c) {                                                       \
          kernel<<<dim3(c.seqlen_q(), c.batch() * c.heads()), 32, bytes>>>(                  \
              c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.lse(), c.seqlen_k(), \
              c.head_dim(), c.scale());                                                      \
        },                                                                                   \
    .dtypes = fp32                                                                           \
  }
ATTN_DIAG_EXPORT(ONE(aligned_16, 0), ONE(undeclared_first, 0), ONE(undeclared_behind, 0),
                 ONE(behind_unread, 0), ONE(behind_other_branch<false>, 0), ONE(of_a_function, 0),
                 ONE(past_end_by_little, 0), ONE(past_end, 0), ONE(past_dynamic, 128),
                 ONE(zero_sized, 0), ONE(local_atomic, 0), ONE(misaligned, 0), ONE(null_store, 0));
