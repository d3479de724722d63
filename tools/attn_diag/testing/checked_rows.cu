// Row-per-block attention in fp32, whole and with faults that attn-diag check tells apart. Lines that a
// test looks for end in [mark].
#include <attn_diag/kernels/bring.h>
#include <cuda_runtime.h>

#include <cmath>

enum Fault {
  kWhole,
  kEqualStores,
  kWarpOnly,
  kNoBarrier,
  kManyFaults,
  kScalesK,          // stores to one element of k, in the end
  kStoresQ,          // what is there already
  kAllReturn,        // at once: nothing is loaded or stored
  kNoLaunch,         // the host code returns first
  kStoresNothing,    // where o and lse are
  kUsesAbsentLane,   // a shuffle reads lanes that its mask does not name,
  kDropsAbsentLane,  // and only lanes that store nothing do
};

constexpr int kThreads = 64;

template <int kFault>
__global__ void __launch_bounds__(kThreads) rows(const float* q, const float* k, const float* v,
                                                 float* o, float* lse, int S, int D, float scale) {
  __shared__ float sScores[128];
  __shared__ float sSum[1];
  __shared__ int sSeen[1];
  const long long head = (long long)blockIdx.y * S * D;
  const int row = blockIdx.x;
  if (kFault == kAllReturn && S > 0) return;
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
    if (kFault != kStoresNothing) lse[blockIdx.y * S + row] = m + logf(l);
  }
  __syncthreads();
  if (kFault == kManyFaults && sSeen[0] == 7) return;         // [load of nothing seen]
  if (kFault == kManyFaults && sScores[127] == 7.0f) return;  // [load of no score]
  float one = 1.0f;
  if (kFault == kUsesAbsentLane || kFault == kDropsAbsentLane) {
    const unsigned half = threadIdx.x % 32 < 16 ? 0xFFFFu : 0xFFFF0000u;
    one =
        __shfl_down_sync(half, one, kFault == kUsesAbsentLane ? 16 : 8);  // [shuffle past the mask]
  }
  for (int d = threadIdx.x; d < D; d += kThreads) {
    float sum = 0.0f;
    for (int j = 0; j < S; ++j)
      sum += expf(sScores[j] - (lse[blockIdx.y * S + row] - logf(sSum[0]))) * v[head + j * D + d];
    if (kFault != kStoresNothing) o[head + row * D + d] = sum / sSum[0] * one;
  }
  if (kFault == kStoresQ && threadIdx.x == 0) {
    volatile float* first = const_cast<float*>(q) + head + row * D;
    *first = *first;
  }
}

__global__ void scales(float* k, int at) { k[at] *= 2.0f; }  // [store to k]

// Past the end of arrays by pointers, whose types do not say how many elements there are: `n` of 4.
__constant__ float c_table[4] = {1, 2, 3, 4};
__device__ float d_table[4] = {1, 2, 3, 4};
__device__ const float d_const[4] = {5, 6, 7, 8};
static __device__ constexpr float d_constexpr[4] = {1, 3, 5, 7};
__device__ alignas(1024) const float d_whole[256] = {1, 2};  // it ends where a page of memory may
__device__ inline float sum_of(const float* x, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i];  // [load of one of n]
  return sum;
}
__device__ inline void scale_all(float* x, int n, float by) {
  for (int i = 0; i < n; ++i) x[i] *= by;  // [store of one of n]
}
__device__ inline void add_at(float* x, int i) { x[i] += 1; }  // [store far away]
struct Softmax {
  float m, l, rO[4];
};
enum Array {
  kConstant,
  kDevice,
  kDeviceConst,
  kConstexpr,
  kWholePage,
  kLocal,
  kLocalLater,
  kMember,
  kEither,
  kEitherTurned,
  kFar
};
template <int kArray>
__global__ void walks(float* o, int n) {
  const int t = threadIdx.x;
  float sum = 0;
  if constexpr (kArray == kConstant) sum = sum_of(c_table, n);
  if constexpr (kArray == kDevice) sum = sum_of(d_table, n);
  if constexpr (kArray == kDeviceConst) sum = sum_of(d_const, n);
  if constexpr (kArray == kConstexpr) sum = sum_of(d_constexpr, n);
  if constexpr (kArray == kWholePage) sum = sum_of(d_whole + 252, n);
  if constexpr (kArray == kLocal) {
    float rSum[4] = {1, 2, 3, o[t]};
    sum = sum_of(rSum, n);
  }
  if constexpr (kArray == kLocalLater) {
    float rSum[4];
    for (int i = 0; i < 4; ++i) rSum[i] = i;
    sum = sum_of(rSum, n);
  }
  if constexpr (kArray == kMember) {
    Softmax rRow = {0, 1, {1, 2, 3, 4}};
    scale_all(rRow.rO, n, 2.0f);
    sum = rRow.rO[t % 4];
  }
  if constexpr (kArray == kEither) {
    float rEven[4] = {0, 2, 4, o[t]}, rOdd[8] = {1, 3, 5, 7, 9, 11, 13, o[t]};
    sum = sum_of(t % 2 == 0 ? rEven : rOdd, n);
  }
  if constexpr (kArray == kEitherTurned) {
    float rOdd[8] = {1, 3, 5, 7, 9, 11, 13, o[t]}, rEven[4] = {0, 2, 4, o[t]};
    sum = sum_of(t % 2 == 0 ? rEven : rOdd, n);
  }
  if constexpr (kArray == kFar) {
    float rFar[4] = {1, 2, 3, o[t]};
    add_at(rFar, n > 4 ? n * 100'000'000 : 0);
    sum = rFar[t % 4];
  }
  o[t] = sum;
}
template <int kArray>
attn_diag::Declaration walks_kernel(const char* name) {
  attn_diag::Declaration kernel;
  kernel.name = name;
  kernel.call = [](const attn_diag::Call& c) {
    cudaMemset(c.o<float>(), 0, c.heads() * c.seqlen() * c.head_dim() * sizeof(float));
    walks<kArray><<<1, 8>>>(c.o<float>(), c.seqlen());
  };
  kernel.dtypes = attn_diag::words::fp32;
  kernel.lse = attn_diag::Lse::kNone;
  return kernel;
}

template <int kFault>
void call(const attn_diag::Call& c) {
  if (kFault == kNoLaunch && c.seqlen() > 0) return;
  rows<kFault><<<dim3(c.seqlen(), c.heads()), kThreads, 0, c.stream()>>>(
      c.q<float>(), c.k<float>(), c.v<float>(), c.o<float>(), c.lse(), c.seqlen(), c.head_dim(),
      c.scale());
  if (kFault == kScalesK)
    scales<<<1, 1, 0, c.stream()>>>(const_cast<float*>(c.k<float>()), 3 * c.head_dim() + 5);
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
                 rows_kernel<kManyFaults>("many"), rows_kernel<kScalesK>("scales-k"),
                 rows_kernel<kStoresQ>("stores-q"), rows_kernel<kAllReturn>("all-return"),
                 rows_kernel<kUsesAbsentLane>("absent"), rows_kernel<kDropsAbsentLane>("dropped"),
                 rows_kernel<kNoLaunch>("no-launch"), rows_kernel<kStoresNothing>("no-stores"),
                 walks_kernel<kConstant>("c_table"), walks_kernel<kDevice>("d_table"),
                 walks_kernel<kDeviceConst>("d_const"), walks_kernel<kConstexpr>("d_constexpr"),
                 walks_kernel<kLocal>("rSum"), walks_kernel<kLocalLater>("rSum-later"),
                 walks_kernel<kMember>("rRow"), walks_kernel<kEither>("either"),
                 walks_kernel<kWholePage>("d_whole"), walks_kernel<kEitherTurned>("either-turned"),
                 walks_kernel<kFar>("rFar"));
