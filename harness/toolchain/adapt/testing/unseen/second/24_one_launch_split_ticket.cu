#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#include <cstdint>

// Split-KV in ONE launch: the block that finishes last for a row block (atomic ticket) merges the
// splits, so that no combine kernel is needed. Double-buffered async copies for K and V.
// [b, h, s, d] half, d = 64. Few queries (speculative decoding: 1 .. 8 draft tokens), long contexts.

template <int kQueries_, int kTile_, int kWarps_>
struct SplitKvConfig {
  static constexpr int kQueries = kQueries_;  // per block
  static constexpr int kTile = kTile_;
  static constexpr int kWarps = kWarps_;
  static constexpr int kDim = 64;
  static constexpr int kPitch = kDim + 8;  // halves; keeps 16-byte alignment
};

struct SplitKvArgs {
  const half *q, *k, *v;
  half* o;
  float* lse;
  float* acc_part;    // [b*h, q_blocks, splits, kQueries, kDim]   divided by its row sum
  float* lse_part;    // [b*h, q_blocks, splits, kQueries]
  unsigned* tickets;  // [b*h, q_blocks], zero before and after the launch
  int sq, sk, splits;
  float scale;
};

template <class C>
__device__ void stage_tile(half (*ks)[C::kPitch], half (*vs)[C::kPitch], const SplitKvArgs& a,
                           size_t kv, int first, int end) {
  for (int i = threadIdx.x; i < C::kTile * C::kDim / 8; i += C::kWarps * 32) {
    const int r = i / (C::kDim / 8), c = i % (C::kDim / 8) * 8;
    const bool ok = first + r < end;
    const size_t at = kv + (size_t)(ok ? first + r : 0) * C::kDim + c;
    __pipeline_memcpy_async(&ks[r][c], a.k + at, 16, ok ? 0 : 16);
    __pipeline_memcpy_async(&vs[r][c], a.v + at, 16, ok ? 0 : 16);
  }
  __pipeline_commit();
}

template <class C>
__global__ void split_kv_one_launch(SplitKvArgs a) {
  static_assert(C::kQueries == C::kWarps && C::kTile == 32, "one warp per query, one lane per key");
  __shared__ __align__(16) half ks[2][C::kTile][C::kPitch], vs[2][C::kTile][C::kPitch];
  __shared__ float qs[C::kQueries][C::kDim];
  __shared__ bool last_block;

  const int split = blockIdx.x, qb = blockIdx.y, bh = blockIdx.z;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = qb * C::kQueries + warp;
  const size_t kv = (size_t)bh * a.sk * C::kDim;

  const int tiles = (a.sk + C::kTile - 1) / C::kTile;
  const int per = (tiles + a.splits - 1) / a.splits;
  const int t0 = min(tiles, split * per), t1 = min(tiles, t0 + per);

  for (int d = lane; d < C::kDim; d += 32)
    qs[warp][d] = row < a.sq ? __half2float(a.q[((size_t)bh * a.sq + row) * C::kDim + d]) : 0.f;

  float m = -INFINITY, l = 0.f;
  float2 acc = {0.f, 0.f};  // columns 2 * lane and 2 * lane + 1
  if (t0 < t1) stage_tile<C>(ks[0], vs[0], a, kv, t0 * C::kTile, a.sk);
  for (int t = t0; t < t1; ++t) {
    const int cur = (t - t0) & 1;
    if (t + 1 < t1) {
      stage_tile<C>(ks[cur ^ 1], vs[cur ^ 1], a, kv, (t + 1) * C::kTile, a.sk);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    float s = 0.f;
    for (int d = 0; d < C::kDim; d += 2) {
      const float2 kf = __half22float2(*reinterpret_cast<const half2*>(&ks[cur][lane][d]));
      s += qs[warp][d] * kf.x + qs[warp][d + 1] * kf.y;
    }
    s = t * C::kTile + lane < a.sk ? s * a.scale : -INFINITY;
    float mt = s;
    for (int x = 1; x < 32; x *= 2) mt = fmaxf(mt, __shfl_xor_sync(~0u, mt, x));
    mt = fmaxf(mt, m);
    const float p = __expf(s - mt), f = __expf(m - mt);
    float ps = p;
    for (int x = 1; x < 32; x *= 2) ps += __shfl_xor_sync(~0u, ps, x);
    l = l * f + ps;
    m = mt;
    acc.x *= f, acc.y *= f;
    for (int j = 0; j < 32; ++j) {
      const float pj = __shfl_sync(~0u, p, j);
      const float2 vf = __half22float2(*reinterpret_cast<const half2*>(&vs[cur][j][2 * lane]));
      acc.x += pj * vf.x, acc.y += pj * vf.y;
    }
    __syncthreads();
  }

  const size_t group = (size_t)bh * gridDim.y + qb;
  const size_t slot = (group * a.splits + split) * C::kQueries + warp;
  const float inv = l > 0.f ? 1.f / l : 0.f;
  reinterpret_cast<float2*>(a.acc_part)[slot * 32 + lane] = make_float2(acc.x * inv, acc.y * inv);
  if (lane == 0) a.lse_part[slot] = l > 0.f ? m + __logf(l) : -INFINITY;

  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    last_block = atomicInc(&a.tickets[group], a.splits - 1) == (unsigned)a.splits - 1;
  __syncthreads();
  if (!last_block || row >= a.sq) return;
  __threadfence();

  const size_t first = group * a.splits * C::kQueries + warp;
  float top = -INFINITY, sum = 0.f;
  for (int i = 0; i < a.splits; ++i)
    top = fmaxf(top, __ldcg(a.lse_part + first + (size_t)i * C::kQueries));
  float2 o = {0.f, 0.f};
  for (int i = 0; i < a.splits; ++i) {
    const size_t at = first + (size_t)i * C::kQueries;
    const float w = __expf(__ldcg(a.lse_part + at) - top);
    const float2 part = __ldcg(reinterpret_cast<const float2*>(a.acc_part) + at * 32 + lane);
    sum += w;
    o.x += w * part.x, o.y += w * part.y;
  }
  reinterpret_cast<half2*>(a.o)[((size_t)bh * a.sq + row) * 32 + lane] =
      __floats2half2_rn(o.x / sum, o.y / sum);
  if (lane == 0) a.lse[(size_t)bh * a.sq + row] = top + logf(sum);
}

using DefaultConfig = SplitKvConfig<4, 32, 4>;

cudaError_t split_kv_attention(SplitKvArgs args, int batch_heads, cudaStream_t stream) {
  const int q_blocks = (args.sq + DefaultConfig::kQueries - 1) / DefaultConfig::kQueries;
  split_kv_one_launch<DefaultConfig>
      <<<dim3(args.splits, q_blocks, batch_heads), DefaultConfig::kWarps * 32, 0, stream>>>(args);
  return cudaGetLastError();
}
