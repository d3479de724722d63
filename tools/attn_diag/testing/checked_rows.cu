// Row-per-block attention in fp32, whole and with faults that attn-diag check tells apart. Lines that a
// test looks for end in [mark].
#include <attn_diag/kernels/bring.h>
#include <cuda_runtime.h>

#include <cmath>

enum Fault { kWhole, kEqualStores, kWarpOnly, kNoBarrier, kManyFaults };

constexpr int kThreads = 64;

template <int kFault>
__global__ void __launch_bounds__(kThreads) rows(const float* q, const float* k, const float* v,
                                                 float* o, float* lse, int S, int D, float scale) {
  __shared__ float sScores[128];
  __shared__ float sSum[1];
  __shared__ int sSeen[1];
  const long long head = (long long)blockIdx.y * S * D;
  const int row = blockIdx.x;
  if (kFault == kEqualStores) sSeen[0] = S;  // [equal stores]
  const int keys_at_once = kFault == kWarpOnly ? 32 : kThreads;
  if (threadIdx.x < keys_at_once)
    for (int j = threadIdx.x; j < S; j += keys_at_once) {
      float s = 0.0f;
      for (int d = 0; d < D; ++d) s += q[head + row * D + d] * k[head + j * D + d];
      sScores[j] = s * scale;  // [store of a score]
    }
  if (kFault != kWarpOnly && kFault != kNoBarrier && kFault != kManyFaults) __syncthreads();
  if (threadIdx.x == 0) {
    float m = -INFINITY, l = 0.0f;
    for (int j = 0; j < S; ++j) m = fmaxf(m, sScores[j]);   // [load of a score]
    for (int j = 0; j < S; ++j) l += expf(sScores[j] - m);  // [second load of a score]
    sSum[0] = l;
    lse[blockIdx.y * S + row] = m + logf(l);
  }
  __syncthreads();
  if (kFault == kManyFaults && sSeen[0] == 7) return;         // [load of nothing seen]
  if (kFault == kManyFaults && sScores[127] == 7.0f) return;  // [load of no score]
  for (int d = threadIdx.x; d < D; d += kThreads) {
    float sum = 0.0f;
    for (int j = 0; j < S; ++j)
      sum += expf(sScores[j] - (lse[blockIdx.y * S + row] - logf(sSum[0]))) * v[head + j * D + d];
    o[head + row * D + d] = sum / sSum[0];
  }
}

template <int kFault>
void call(const attn_diag::Call& c) {
  rows<kFault><<<dim3(c.seqlen(), c.heads()), kThreads, 0, c.stream()>>>(
      c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.lse(), c.seqlen(), c.head_dim(),
      c.scale());
}

template <int kFault>
attn_diag::Declaration rows_kernel(const char* name) {
  attn_diag::Declaration kernel;
  kernel.name = name;
  kernel.call = call<kFault>;
  kernel.dtypes = attn_diag::words::fp32;
  kernel.max_seqlen_k = 128;
  kernel.tile = {1, 64};
  return kernel;
}

ATTN_DIAG_EXPORT(rows_kernel<kWhole>("whole"), rows_kernel<kEqualStores>("equal"),
                 rows_kernel<kWarpOnly>("warp"), rows_kernel<kNoBarrier>("race"),
                 rows_kernel<kManyFaults>("many"));
